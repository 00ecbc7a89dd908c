"""Who may approve and sign requests for certificates, and say which authorities to trust for a signer.

These are the rights ``approve``, ``sign`` and ``attest`` on the signer.

Signers are no objects, only names in rules: ``signers.certificates.k8s.io``, by the signer's name or by ``domain/*``.
"""

from __future__ import annotations

from seamark.api.authorization import Attributes, Authorizer, User
from seamark.errors import Object
from seamark.kinds.admission import Operation, Plugin, Request
from seamark.kinds.kind import Kind
from seamark.kinds.resource import POD_CERTIFICATE_REQUESTS, SIGNING_REQUESTS, TRUST_BUNDLES
from seamark.kinds.values.fields import forbidden, refuse, show


class SignerRights(Plugin):
    """Refuses decisions and certificates by users who have no right to them."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def concerns(self, kind: Kind, operation: Operation, part: str) -> bool:
        if kind.resource == TRUST_BUNDLES:
            return operation in ("CREATE", "UPDATE")
        if kind.resource == POD_CERTIFICATE_REQUESTS:
            return part == "status"
        return kind.resource == SIGNING_REQUESTS and part in ("approval", "status")

    def validate(self, request: Request) -> None:
        if request.kind.resource == TRUST_BUNDLES:
            signer = request.obj["spec"].get("signerName", "")
            if signer and (request.old is None or request.old["spec"] != request.obj["spec"]):
                self._check(request, "attest", signer, "for")
            return
        old, verb = request.old, "approve" if request.part == "approval" else "sign"
        assert old is not None, "there is no subresource without an object"
        if request.kind.resource == POD_CERTIFICATE_REQUESTS:
            self._check_chain(request, old)
            return
        if verb == "sign" and all(
            request.obj["status"].get(field) == old["status"].get(field) for field in ("certificate", "conditions")
        ):
            return
        self._check(request, verb, old["spec"]["signerName"], "requests with")

    def _check_chain(self, request: Request, old: Object) -> None:
        """Certificates of Pods are checked where Kubernetes validates them, so the refusal is one of a mistake."""
        signer, field = old["spec"].get("signerName", ""), "certificateChain"
        if request.obj["status"].get(field) != old["status"].get(field) and not self._may(request, "sign", signer):
            said = f'User {show(request.user.name)} is not permitted to "sign" for signer {show(signer)}'
            raise refuse(request.kind.resource, request.name, [forbidden("spec.signerName", said)])

    def _check(self, request: Request, verb: str, signer: str, what: str) -> None:
        if not self._may(request, verb, signer):
            raise request.forbidden(f'user not permitted to {verb} {what} signerName "{signer}"')

    def _may(self, request: Request, verb: str, signer: str) -> bool:
        assert isinstance(request.user, User)
        for name in (signer, f"{signer.partition('/')[0]}/*"):
            asked = Attributes(verb, SIGNING_REQUESTS.group, "*", "signers", name=name)
            if self._authorizer.authorize(request.user, asked).allowed:
                return True
        return False
