"""CertificateSigningRequests: approves those of kubelets, signs the approved ones, and deletes them after their time.

The three controllers share one view of a request; what each does about it is a pure function here.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.errors import Object
from seamark.kinds.certificates import pkcs10, signers
from seamark.kinds.core.review import SubjectAccessReviewKind
from seamark.kinds.resource import SIGNING_REQUESTS
from seamark.kinds.values import times
from seamark.rules.objects.metadata import ObjectView, View
from seamark.runtime.controller import Again, Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

APPROVER = "certificate-approver"
SIGNER = "certificate-signer"
CLEANER = "certificate-cleaner"

HOUR = 3600.0
DECIDED_SECONDS = HOUR  # how long a request is kept that was decided and, if approved, signed
PENDING_SECONDS = 24 * HOUR  # how long a request without a decision is kept

# Signs a request: the PEM text, its usages, and for how many seconds, None if it says nothing.
Sign = Callable[[bytes, Sequence[str], int | None], bytes]


class Condition(View, frozen=True):
    type: str = ""
    status: str = ""
    last_update_time: str | None = None


class Spec(View, frozen=True):
    signer_name: str = ""
    request: str = ""
    usages: tuple[str, ...] = ()
    expiration_seconds: int | None = None
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str] | None] = msgspec.field(default_factory=dict)


class Status(View, frozen=True):
    conditions: tuple[Condition, ...] = ()
    certificate: str | None = None


class SigningRequest(ObjectView, frozen=True):
    spec: Spec = Spec()
    status: Status = Status()

    def has(self, *types: str) -> bool:
        return any(each.type in types for each in self.status.conditions)

    @property
    def pem(self) -> bytes:
        return b64decode(self.spec.request)


# --- decisions -----------------------------------------------------------------------------------------


def refusal(request: SigningRequest) -> str | None:
    """Why an approved request is not signed, "" if it is to be signed; None if there is nothing to do about it."""
    done = request.status.certificate or request.has("Denied", "Failed") or not request.has("Approved")
    if done or request.spec.signer_name not in signers.SIGNERS:
        return None
    try:
        wanted = pkcs10.wanted(pkcs10.parsed(request.pem))
    except pkcs10.RequestError as error:
        return str(error)
    return signers.mistake(request.spec.signer_name, wanted, request.spec.usages)


def rights_asked(request: SigningRequest) -> list[tuple[str, str]]:
    """The rights by one of which a kubelet's request is approved, each with the sentence for the approval."""
    spec = request.spec
    if spec.signer_name != signers.KUBELET_CLIENT or request.status.certificate or request.has("Approved", "Denied"):
        return []
    try:
        wanted = pkcs10.wanted(pkcs10.parsed(request.pem))
    except pkcs10.RequestError:
        return []
    if signers.mistake(spec.signer_name, wanted, spec.usages):
        return []
    rights = [("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")]
    if spec.username == wanted.common_name:
        own = "Auto approving self kubelet client certificate after SubjectAccessReview."
        rights.insert(0, ("selfnodeclient", own))
    return rights


def deadline(request: SigningRequest) -> float | None:
    """When a request is to be deleted; None if that depends on what becomes of it."""
    if not request.status.conditions:
        return _moment(request.metadata.creation_timestamp) + PENDING_SECONDS
    ends = [
        _moment(each.last_update_time) + DECIDED_SECONDS
        for each in request.status.conditions
        if each.type in ("Denied", "Failed") or (each.type == "Approved" and request.status.certificate)
    ]
    return min(ends, default=None)


def _moment(timestamp: str | None) -> float:
    return times.parse(timestamp) if timestamp else 0.0


# --- controllers ---------------------------------------------------------------------------------------


class RequestController(Controller):
    """What the three have in common: every change of a request is looked at."""

    def __init__(self, name: str, manager: Manager, cluster: Cluster) -> None:
        super().__init__(name, manager, workers=2)
        self._cluster = cluster
        self._clock = manager.clock
        self._requests = self.watch(manager.informers.of(SIGNING_REQUESTS, as_=SigningRequest), self._changed)

    def _changed(self, key: Key, old: SigningRequest | None, new: SigningRequest | None) -> None:
        if new is not None:
            self.queue.add(key)

    async def reconcile(self, key: Key) -> None:
        request = self._requests.by_key(key)
        if request is None:
            return
        try:
            await self.settle(request)
        except (errors.NotFound, errors.Conflict):
            return  # it changed, and the change queues it again

    async def settle(self, request: SigningRequest) -> None:
        raise NotImplementedError

    async def _add_condition(self, request: SigningRequest, subresource: str, condition: Object) -> None:
        found: Object = await self._cluster.get(SIGNING_REQUESTS, request.metadata.name)
        if found["metadata"]["resourceVersion"] != request.metadata.resource_version:
            return
        status = found["status"]
        conditions = [*(status.get("conditions") or ()), {"status": "True", **condition}]
        changed = {**found, "status": {**status, "conditions": conditions}}
        await self._cluster.update(SIGNING_REQUESTS, changed, subresource=subresource)


class Approver(RequestController):
    """Approves requests of kubelets that have the right to it."""

    async def settle(self, request: SigningRequest) -> None:
        for subresource, message in rights_asked(request):
            if await self._allowed(request.spec, subresource):
                condition = {"type": "Approved", "reason": "AutoApproved", "message": message}
                await self._add_condition(request, "approval", condition)
                return

    async def _allowed(self, spec: Spec, subresource: str) -> bool:
        asked = {
            "user": spec.username,
            "uid": spec.uid,
            "groups": list(spec.groups),
            "extra": spec.extra,
            "resourceAttributes": {
                "group": SIGNING_REQUESTS.group,
                "resource": SIGNING_REQUESTS.plural,
                "verb": "create",
                "subresource": subresource,
            },
        }
        review = await self._cluster.create(SubjectAccessReviewKind.resource, {"spec": asked})
        return bool(review["status"]["allowed"])


class Signer(RequestController):
    """Signs approved requests for our own signers."""

    def __init__(self, manager: Manager, cluster: Cluster, sign: Sign) -> None:
        super().__init__(SIGNER, manager, cluster)
        self._sign = sign

    async def settle(self, request: SigningRequest) -> None:
        sentence = refusal(request)
        if sentence is None:
            return
        if sentence:
            failed = {"type": "Failed", "reason": "SignerValidationFailure", "message": sentence}
            await self._add_condition(request, "status", failed)
            return
        found: Object = await self._cluster.get(SIGNING_REQUESTS, request.metadata.name)
        if found["metadata"]["resourceVersion"] != request.metadata.resource_version:
            return
        spec = request.spec
        certificate = b64encode(self._sign(request.pem, spec.usages, spec.expiration_seconds)).decode()
        signed = {**found, "status": {**found["status"], "certificate": certificate}}
        await self._cluster.update(SIGNING_REQUESTS, signed, subresource="status")


class Cleaner(RequestController):
    """Deletes requests after their time."""

    async def settle(self, request: SigningRequest) -> None:
        end = deadline(request)
        if end is None:
            return
        left = end - self._clock.time()
        if left > 0:
            raise Again(left, "its time has not come")
        meta = request.metadata
        await self._cluster.delete(SIGNING_REQUESTS, meta.name, uid=meta.uid, version=meta.resource_version)
