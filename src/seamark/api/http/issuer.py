"""The documents by which others verify our tokens: OpenID Connect discovery, and the public keys (RFC 7517)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from seamark import errors
from seamark.api.http.messages import Request, Response
from seamark.api.identity.tokens import ServiceAccountTokens

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"
JWKS = "application/jwk-set+json"
_CACHED = (("Cache-Control", "public, max-age=3600"),)


class IssuerDiscovery:
    """Answers for both paths."""

    def __init__(self, tokens: ServiceAccountTokens, address: Callable[[], str]) -> None:
        """``address`` is where the keys are: a URL, known once the server listens."""
        self._tokens = tokens
        self._address = address

    def configuration(self, request: Request) -> Response:
        algorithms = {key.algorithm: None for key in self._tokens.keys.all}
        document = {
            "issuer": self._tokens.settings.issuers[0],
            "jwks_uri": self._address(),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": list(algorithms),
        }
        return Response(200, msgspec.json.encode(document), headers=_CACHED)

    def keys(self, request: Request) -> Response:
        accepted = [each.partition(";")[0].strip() for each in request.headers.get("accept", "").split(",")]
        if not {"", "*/*", "application/*", JWKS} & set(accepted):
            raise errors.NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {JWKS}", details={})
        document = {"keys": [key.published for key in self._tokens.keys.all]}
        return Response(200, msgspec.json.encode(document), JWKS, _CACHED)
