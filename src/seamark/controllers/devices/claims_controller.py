"""Makes the ResourceClaims for which Pods name a template; each belongs to its Pod and goes with it."""

from __future__ import annotations

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.access.correlation import Reference
from seamark.errors import Object
from seamark.kinds.resource import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from seamark.rules.objects.devices import DeviceClaim, DeviceClaimTemplate
from seamark.rules.objects.pod import Pod, PodDevices
from seamark.rules.objects.workloads import owner_reference
from seamark.runtime.controller import Controller, Expected
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

NAME = "resource-claim-controller"
# Which of the Pod's claims it is, in the Pod's own words.
POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
# With the five random letters behind it, a name of 63, as long as a label of DNS.
_LONGEST_BASE = 57
# So many Pods may share a claim.
_MOST_CONSUMERS = 256


class NoTemplate(Expected):
    """The template that a Pod names is not there."""


class ClaimsController(Controller):
    """One key is one Pod."""

    def __init__(self, manager: Manager, cluster: Cluster) -> None:
        super().__init__(NAME, manager)
        self._cluster = cluster
        self._recorder = manager.recorder(cluster, "resource_claim")
        self._users: dict[Key, set[Key]] = {}  # claim → the Pods that use it
        self._made: dict[tuple[str, str], DeviceClaim] = {}  # uid of a Pod, its word → a claim not seen yet
        informers = manager.informers
        self._templates = self.watch(
            informers.of(RESOURCE_CLAIM_TEMPLATES, as_=DeviceClaimTemplate), self._template_changed
        )
        self._claims = self.watch(informers.of(RESOURCE_CLAIMS, as_=DeviceClaim), self._claim_changed)
        self._owned = self._claims.index("owning-pod", owning_pod)
        self._pods = self.watch(informers.of(PODS, as_=Pod), self._pod_changed)
        self._naming = self._pods.index("claim-template", templates_of)

    def reset(self) -> None:
        self._users.clear()
        self._made.clear()

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None or not pod.spec.resource_claims:
            return
        for claim in () if old is None else claims_of(old):
            users = self._users.get(claim, set())
            users.discard(key)
            if not users:
                self._users.pop(claim, None)
        for claim in () if new is None else claims_of(new):
            self._users.setdefault(claim, set()).add(key)
        if new is not None and new.active:
            self.queue.add(key)

    def _claim_changed(self, key: Key, old: DeviceClaim | None, new: DeviceClaim | None) -> None:
        for claim in filter(None, (old, new)):
            for uid in owning_pod(claim):
                self._made.pop((uid, claim.metadata.annotations.get(POD_CLAIM, "")), None)
        for pod in self._users.get(key, ()):
            self.queue.add(pod)

    def _template_changed(self, key: Key, old: DeviceClaimTemplate | None, new: DeviceClaimTemplate | None) -> None:
        if old is None:
            for pod in self._naming.objects(key):
                self.queue.add(pod.metadata.key)

    async def reconcile(self, key: Key) -> None:
        pod = self._pods.by_key(key)
        if pod is None or not pod.active:
            return
        await self._tell(pod, [status for each in pod.spec.resource_claims if (status := await self._claim(pod, each))])
        if pod.spec.node_name:  # otherwise the scheduler reserves them
            await self._reserve(pod)

    async def _claim(self, pod: Pod, wanted: PodDevices) -> Object | None:
        """Have a claim made if there is none; what the Pod's status has to say of it, unless it says so."""
        known = pod.device_claims
        if wanted.resource_claim_template_name is None or (wanted.name in known and known[wanted.name] is None):
            return None
        there = self._claims.get(known.get(wanted.name) or "", pod.metadata.namespace)
        if there is not None and pod.metadata.uid in owning_pod(there):
            return None
        claim = self._found(pod, wanted) or await self._make(pod, wanted, wanted.resource_claim_template_name)
        return {"name": wanted.name, "resourceClaimName": claim.metadata.name}

    def _found(self, pod: Pod, wanted: PodDevices) -> DeviceClaim | None:
        """The claim that was made before, if the Pod's status does not tell yet."""
        for claim in self._owned.objects(pod.metadata.uid):
            if claim.metadata.annotations.get(POD_CLAIM) == wanted.name:
                return claim
        return self._made.get((pod.metadata.uid, wanted.name))

    async def _make(self, pod: Pod, wanted: PodDevices, name: str) -> DeviceClaim:
        namespace = pod.metadata.namespace
        template = self._templates.get(name, namespace)
        if template is None:
            missing = f'resource claim template "{name}": resourceclaimtemplate.resource.k8s.io "{name}" not found'
            raise NoTemplate(self._complain(pod, wanted, missing))
        try:
            made = await self._cluster.create(
                RESOURCE_CLAIMS, claim_for(pod, wanted, template), namespace=namespace, as_=DeviceClaim
            )
        except errors.ApiError as error:
            self._complain(pod, wanted, f"create ResourceClaim : {error}")
            raise
        if self._claims.by_key(made.metadata.key) is None:
            self._made[pod.metadata.uid, wanted.name] = made
        return made

    def _complain(self, pod: Pod, wanted: PodDevices, wrong: str) -> str:
        message = f"PodResourceClaim {wanted.name}: {wrong}"
        about = Reference.of(PODS, pod.metadata)
        self._recorder.record(about, "Warning", reason="FailedResourceClaimCreation", message=message)
        return message

    async def _tell(self, pod: Pod, statuses: list[Object]) -> None:
        if statuses:
            meta = pod.metadata
            patch = {"metadata": {"uid": meta.uid}, "status": {"resourceClaimStatuses": statuses}}
            await self._cluster.patch(
                PODS, meta.name, patch, namespace=meta.namespace, type="strategic", subresource="status", as_=Receipt
            )

    async def _reserve(self, pod: Pod) -> None:
        """Reserve claims that are allocated for a Pod which came to its node without the scheduler."""
        meta = pod.metadata
        for name in pod.device_claims.values():
            claim = self._claims.get(name or "", meta.namespace)
            if claim is None or claim.status.allocation is None:
                continue
            consumers = claim.status.reserved_for
            if len(consumers) < _MOST_CONSUMERS and all(each.uid != meta.uid for each in consumers):
                consumer = {"resource": "pods", "name": meta.name, "uid": meta.uid}
                patch = {
                    "metadata": {"resourceVersion": claim.metadata.resource_version},
                    "status": {"reservedFor": [consumer]},
                }
                await self._cluster.patch(
                    RESOURCE_CLAIMS,
                    claim.metadata.name,
                    patch,
                    namespace=meta.namespace,
                    type="strategic",
                    subresource="status",
                    as_=Receipt,
                )


def owning_pod(claim: DeviceClaim) -> tuple[str, ...]:
    """The uid of the Pod that a claim was made for."""
    owner = claim.metadata.controller
    return (owner.uid,) if owner is not None and (owner.api_version, owner.kind) == ("v1", "Pod") else ()


def templates_of(pod: Pod) -> list[Key]:
    """The keys of the templates that a Pod names."""
    if not pod.spec.resource_claims:  # as nearly all
        return []
    named = (each.resource_claim_template_name for each in pod.spec.resource_claims)
    return [f"{pod.metadata.namespace}/{name}" for name in dict.fromkeys(named) if name]


def claims_of(pod: Pod) -> list[Key]:
    """The keys of the claims that a Pod uses, as far as they have names."""
    return [f"{pod.metadata.namespace}/{name}" for name in pod.device_claims.values() if name]


def claim_for(pod: Pod, wanted: PodDevices, template: DeviceClaimTemplate) -> Object:
    """The claim for a Pod that names a template."""
    described = template.spec.metadata
    meta: Object = {
        "generateName": base_name(pod.metadata.name, wanted.name),
        "ownerReferences": [owner_reference(PODS, pod.metadata)],
        "annotations": {**(described.get("annotations") or {}), POD_CLAIM: wanted.name},
    }
    if described.get("labels"):
        meta["labels"] = described["labels"]
    return {"metadata": meta, "spec": template.spec.spec}


def base_name(pod: str, claim: str) -> str:
    """What the name of a claim begins with; both parts are cut alike, so that something is left of either."""
    whole = f"{pod}-{claim}-"
    if len(whole) <= _LONGEST_BASE:
        return whole
    return f"{pod[: len(pod) * _LONGEST_BASE // len(whole)]}-{claim[: len(claim) * _LONGEST_BASE // len(whole)]}"
