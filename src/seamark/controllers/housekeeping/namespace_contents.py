"""What every namespace has from its beginning: a ``default`` ServiceAccount, and the CA to know the API server by.

Clients wait for these before they use a new namespace.  Both are made again when they are deleted; the certificate is
put right when somebody edits it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.access.informers import Informers
from seamark.controllers.housekeeping.everything import Thing
from seamark.controllers.workloads.writes import namespace_terminating
from seamark.errors import Object
from seamark.kinds.resource import CONFIGMAPS, NAMESPACES, SERVICE_ACCOUNTS, Resource
from seamark.rules.objects.metadata import Metadata, View
from seamark.runtime.loop import Key, Loop

DESCRIPTION = "kubernetes.io/description"
_DESCRIBED = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class Given(msgspec.Struct, frozen=True):
    """An object that every namespace is given.  ``data`` None: whatever somebody makes of it is all right."""

    controller: str
    resource: Resource
    name: str
    data: Mapping[str, str] | None = None
    annotations: Mapping[str, str] = {}


DEFAULT_ACCOUNT = Given("serviceaccount-controller", SERVICE_ACCOUNTS, "default")


def root_certificate(authority: str) -> Given:
    """The ConfigMap with the CA's certificate, PEM."""
    return Given(
        "root-ca-certificate-publisher-controller",
        CONFIGMAPS,
        "kube-root-ca.crt",
        data={"ca.crt": authority},
        annotations={DESCRIPTION: _DESCRIBED},
    )


class Held(View, frozen=True):
    """The object as a namespace has it."""

    metadata: Metadata
    data: dict[str, str] = msgspec.field(default_factory=dict)
    binary_data: dict[str, str] = msgspec.field(default_factory=dict)


def right(held: Held, given: Given) -> bool:
    """Whether the object may stay as it is."""
    if given.data is None:
        return True
    described = all(held.metadata.annotations.get(key) for key in given.annotations)
    return described and held.data == given.data and not held.binary_data


class NamespaceContents:
    """Gives one object to every namespace that is not on its way out."""

    def __init__(self, cluster: Cluster, informers: Informers, given: Given) -> None:
        self.name = given.controller
        self._cluster = cluster
        self._given = given
        self._namespaces = informers.of(NAMESPACES, as_=Thing)
        # Of all ConfigMaps only those of this name are followed.
        self._held = informers.of(given.resource, as_=Held, fields=f"metadata.name={given.name}")

    def attach(self, loop: Loop) -> None:
        def namespace_changed(_old: Thing | None, new: Thing | None) -> None:
            if new is not None and not new.metadata.deletion_timestamp:
                loop.add(new.metadata.name)

        def held_changed(old: Held | None, new: Held | None) -> None:
            present = new if new is not None else old
            assert present is not None
            if new is None or not right(new, self._given):
                loop.add(present.metadata.namespace)

        self._namespaces.on_change(namespace_changed)
        self._held.on_change(held_changed)

    async def synced(self) -> None:
        await self._namespaces.synced.wait()
        await self._held.synced.wait()

    async def reconcile(self, key: Key) -> None:
        namespace = self._namespaces.get(key)
        if namespace is None or namespace.metadata.deletion_timestamp:
            return
        held = self._held.get(self._given.name, key)
        try:
            if held is None:
                await self._give(key)
            elif not right(held, self._given):
                await self._put_right(key)
        except (errors.Conflict, errors.NotFound):
            return  # somebody else was faster, or the namespace is gone; if work is left, the change will say so
        except errors.Forbidden as error:
            if not namespace_terminating(error):
                raise

    async def _give(self, namespace: str) -> None:
        made: Object = {"metadata": {"name": self._given.name}}
        if self._given.data is not None:
            made["data"] = dict(self._given.data)
            made["metadata"]["annotations"] = dict(self._given.annotations)
        await self._cluster.create(self._given.resource, made, namespace=namespace)

    async def _put_right(self, namespace: str) -> None:
        found = await self._cluster.get(self._given.resource, self._given.name, namespace=namespace)
        annotations = (found["metadata"].get("annotations") or {}) | dict(self._given.annotations)
        mended = {key: value for key, value in found.items() if key != "binaryData"}
        mended["metadata"] = {**found["metadata"], "annotations": annotations}
        mended["data"] = dict(self._given.data or {})
        await self._cluster.update(self._given.resource, mended, namespace=namespace)
