"""Takes ResourceClaims back from Pods that are done, and deletes those that were made for such a Pod."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.controllers.devices.claims_controller import NAME, claims_of
from seamark.errors import Object
from seamark.kinds.resource import PODS, RESOURCE_CLAIMS
from seamark.rules.objects.devices import Consumer, DeviceClaim
from seamark.rules.objects.pod import Pod
from seamark.runtime.controller import Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

# Keeps a claim that is allocated.
FINALIZER = "resource.kubernetes.io/delete-protection"


class ReleaseController(Controller):
    """One key is one claim."""

    def __init__(self, manager: Manager, cluster: Cluster) -> None:
        super().__init__(f"{NAME}-release", manager)
        self._cluster = cluster
        self._claims = self.watch(manager.informers.of(RESOURCE_CLAIMS, as_=DeviceClaim), self._claim_changed)
        self._pods = self.watch(manager.informers.of(PODS, as_=Pod), self._pod_changed)

    def _claim_changed(self, key: Key, old: DeviceClaim | None, new: DeviceClaim | None) -> None:
        if new is not None:
            self.queue.add(key)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is not None and pod.spec.resource_claims and (new is None or done(new)):
            for claim in claims_of(pod):
                self.queue.add(claim)

    async def reconcile(self, key: Key) -> None:
        claim = self._claims.by_key(key)
        if claim is None:
            return
        reserved = claim.status.reserved_for
        status: dict[str, Any] = {}
        consumers = [each for each in reserved if await self._needed(each, claim.metadata.namespace)]
        if len(consumers) < len(reserved):
            status["reservedFor"] = msgspec.to_builtins(consumers)
        given_up = not consumers and FINALIZER in claim.metadata.finalizers
        if given_up and (reserved or claim.metadata.deletion_timestamp is not None):
            # So that it can be allocated again, where its next user is.
            status["allocation"] = None
        with suppress(errors.NotFound):
            await self._write(claim, status, free=given_up and "allocation" in status)
            if not consumers and self._made_in_vain(claim):
                await self._cluster.delete(RESOURCE_CLAIMS, claim.metadata.name, namespace=claim.metadata.namespace)

    async def _needed(self, consumer: Consumer, namespace: str) -> bool:
        if consumer.api_group or consumer.resource != "pods":
            return True  # nothing is known about those
        pod = self._pods.get(consumer.name, namespace)
        if pod is None:
            # A Pod for which a scheduler reserves a claim may be too new to be known here.
            with suppress(errors.NotFound):
                pod = await self._cluster.get(PODS, consumer.name, namespace=namespace, as_=Pod)
        return pod is not None and pod.metadata.uid == consumer.uid and not done(pod)

    async def _write(self, claim: DeviceClaim, status: dict[str, Any], *, free: bool) -> None:
        if status:
            version = {"resourceVersion": claim.metadata.resource_version}
            await self._patch(claim, {"metadata": version, "status": status}, "status")
        if free:
            left = [each for each in claim.metadata.finalizers if each != FINALIZER]
            await self._patch(claim, {"metadata": {"uid": claim.metadata.uid, "finalizers": left}}, "")

    async def _patch(self, claim: DeviceClaim, patch: Object, subresource: str) -> None:
        meta = claim.metadata
        await self._cluster.patch(
            RESOURCE_CLAIMS, meta.name, patch, namespace=meta.namespace, subresource=subresource, as_=Receipt
        )

    def _made_in_vain(self, claim: DeviceClaim) -> bool:
        """Whether it was made for a Pod that needs it no more; where that is gone, the garbage collector deletes it."""
        owner = claim.metadata.controller
        if owner is None or (owner.api_version, owner.kind) != ("v1", "Pod"):
            return False
        pod = self._pods.get(owner.name, claim.metadata.namespace)
        return pod is not None and (pod.metadata.uid != owner.uid or done(pod))


def done(pod: Pod) -> bool:
    """Whether no container of it runs, or ever will."""
    return pod.finished or (pod.terminating and not pod.spec.node_name)
