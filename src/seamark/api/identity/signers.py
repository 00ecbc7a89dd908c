"""Who may approve and sign CertificateSigningRequests, and say which authorities to trust for a signer.

These are the rights ``approve``, ``sign`` and ``attest`` on the signer.

Signers are no objects, only names in rules: ``signers.certificates.k8s.io``, by the signer's name or by ``domain/*``.
"""

from __future__ import annotations

from seamark.api.authorization import Attributes, Authorizer, User
from seamark.kinds.admission import Operation, Plugin, Request
from seamark.kinds.kind import Kind
from seamark.kinds.resource import SIGNING_REQUESTS, TRUST_BUNDLES


class SignerRights(Plugin):
    """Refuses decisions and certificates by users who have no right to them."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def concerns(self, kind: Kind, operation: Operation, part: str) -> bool:
        if kind.resource == TRUST_BUNDLES:
            return operation in ("CREATE", "UPDATE")
        return kind.resource == SIGNING_REQUESTS and part in ("approval", "status")

    def validate(self, request: Request) -> None:
        if request.kind.resource == TRUST_BUNDLES:
            signer = request.obj["spec"].get("signerName", "")
            if signer and (request.old is None or request.old["spec"] != request.obj["spec"]):
                self._check(request, "attest", signer, "for")
            return
        old, verb = request.old, "approve" if request.part == "approval" else "sign"
        assert old is not None, "there is no subresource without an object"
        if verb == "sign" and all(
            request.obj["status"].get(field) == old["status"].get(field) for field in ("certificate", "conditions")
        ):
            return
        self._check(request, verb, old["spec"]["signerName"], "requests with")

    def _check(self, request: Request, verb: str, signer: str, what: str) -> None:
        assert isinstance(request.user, User)
        for name in (signer, f"{signer.partition('/')[0]}/*"):
            asked = Attributes(verb, SIGNING_REQUESTS.group, "*", "signers", name=name)
            if self._authorizer.authorize(request.user, asked).allowed:
                return
        raise request.forbidden(f'user not permitted to {verb} {what} signerName "{signer}"')
