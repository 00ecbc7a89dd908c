"""Makes the claims that Pods describe among their volumes; each belongs to its Pod and goes with it."""

from __future__ import annotations

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.access.correlation import Reference
from seamark.errors import Object
from seamark.kinds.resource import PERSISTENT_VOLUME_CLAIMS, PODS
from seamark.rules.objects.pod import Pod, PodVolume
from seamark.rules.objects.storage import Claim
from seamark.rules.objects.workloads import owner_reference
from seamark.runtime.controller import Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

NAME = "ephemeral-volume-controller"


class EphemeralController(Controller):
    """One key is one Pod."""

    def __init__(self, manager: Manager, cluster: Cluster) -> None:
        super().__init__(NAME, manager)
        self._cluster = cluster
        self._recorder = manager.recorder(cluster, "ephemeral_volume")
        self._claims = self.watch(manager.informers.of(PERSISTENT_VOLUME_CLAIMS, as_=Claim), self._claim_changed)
        self._pods = self.watch(manager.informers.of(PODS, as_=Pod), self._pod_changed)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if old is None and new is not None and _described(new):
            self.queue.add(key)

    def _claim_changed(self, key: Key, old: Claim | None, new: Claim | None) -> None:
        if new is None and old is not None and (owner := old.metadata.controller) is not None and owner.kind == "Pod":
            self.queue.add(f"{old.metadata.namespace}/{owner.name}")

    async def reconcile(self, key: Key) -> None:
        pod = self._pods.by_key(key)
        if pod is None or not pod.active:
            return
        for volume in _described(pod):
            name = f"{pod.metadata.name}-{volume.name}"
            found = self._claims.by_key(f"{pod.metadata.namespace}/{name}")
            if found is None:
                await self._make(pod, volume, name)
            elif (owner := found.metadata.controller) is None or owner.uid != pod.metadata.uid:
                where = pod.metadata.namespace
                wrong = f"PVC {where}/{name} was not created for pod {where}/{pod.metadata.name} (pod is not owner)"
                self._complain(pod, volume, wrong)

    async def _make(self, pod: Pod, volume: PodVolume, name: str) -> None:
        try:
            await self._cluster.create(
                PERSISTENT_VOLUME_CLAIMS,
                claim_of(pod, volume, name),
                namespace=pod.metadata.namespace,
                as_=Receipt,
            )
        except errors.AlreadyExists:
            raise  # the claim is seen at the next try
        except errors.ApiError as error:
            self._complain(pod, volume, f"create PVC {name}: {error}")
            raise

    def _complain(self, pod: Pod, volume: PodVolume, wrong: str) -> None:
        about = Reference.of(PODS, pod.metadata)
        message = f"ephemeral volume {volume.name}: {wrong}"
        self._recorder.record(about, "Warning", reason="FailedBinding", message=message)


def _described(pod: Pod) -> list[PodVolume]:
    return [volume for volume in pod.spec.volumes if (volume.ephemeral or {}).get("volumeClaimTemplate")]


def claim_of(pod: Pod, volume: PodVolume, name: str) -> Object:
    """The claim for a volume that the Pod describes."""
    template: Object = (volume.ephemeral or {})["volumeClaimTemplate"]
    described = template.get("metadata") or {}
    meta: Object = {"name": name, "ownerReferences": [owner_reference(PODS, pod.metadata)]}
    meta |= {field: described[field] for field in ("labels", "annotations") if described.get(field)}
    return {"metadata": meta, "spec": template["spec"]}
