"""The documents by which others verify our tokens: OpenID Connect discovery, and the public keys (RFC 7517)."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import msgspec

from seamark import errors
from seamark.api.http.negotiate import MOST_TYPES
from seamark.api.http.wire.messages import Request, Response
from seamark.api.identity.tokens import ServiceAccountTokens

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"
JWKS = "application/jwk-set+json"
_CACHED = (("Cache-Control", "public, max-age=3600"),)


def keys_beside(url: str, host: str) -> str:
    """The address of the keys for a client that found the server at ``host``; ``url`` is the server's own address.

    One address would not do: Pods that run reach the server by its Service, and clients on this machine by loopback.
    """
    own = urlsplit(url)
    return own._replace(netloc=host or own.netloc, path=KEYS).geturl()


class IssuerDiscovery:
    """Answers for both paths."""

    def __init__(self, tokens: ServiceAccountTokens, url: Callable[[], str]) -> None:
        """``url`` is the server's own, known once it listens."""
        self._tokens = tokens
        self._url = url

    def configuration(self, request: Request) -> Response:
        algorithms = {key.algorithm: None for key in self._tokens.keys.all}
        settings = self._tokens.settings
        document = {
            "issuer": settings.issuers[0],
            "jwks_uri": settings.keys_address or keys_beside(self._url(), request.headers.get("host", "")),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": list(algorithms),
        }
        return Response(200, msgspec.json.encode(document), headers=_CACHED)

    def keys(self, request: Request) -> Response:
        listed = request.headers.get("accept", "").split(",", MOST_TYPES)[:MOST_TYPES]
        accepted = [each.partition(";")[0].strip() for each in listed]
        if not {"", "*/*", "application/*", JWKS} & set(accepted):
            raise errors.NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {JWKS}", details={})
        document = {"keys": [key.published for key in self._tokens.keys.all]}
        return Response(200, msgspec.json.encode(document), JWKS, _CACHED)
