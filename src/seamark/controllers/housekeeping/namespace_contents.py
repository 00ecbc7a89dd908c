"""Gives every namespace a ``default`` ServiceAccount, and the CA certificate that clients verify the API server with.

Clients wait for these before they use a new namespace.  Both are created again after a deletion; an edit of the
certificate is undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.access.informer import Informer, split_key
from seamark.controllers.housekeeping.everything import Bare
from seamark.errors import Object
from seamark.kinds.resource import CONFIGMAPS, NAMESPACES, SERVICE_ACCOUNTS, Resource
from seamark.rules.objects.metadata import ObjectView
from seamark.rules.objects.namespace import Namespace
from seamark.runtime.controller import Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

DESCRIPTION = "kubernetes.io/description"
_DESCRIBED = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class Given(msgspec.Struct, frozen=True):
    """An object that every namespace is given.  If ``data`` is None, users may change the object."""

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


class Held(ObjectView, frozen=True):
    """The object as a namespace has it."""

    data: dict[str, str] = msgspec.field(default_factory=dict)
    binary_data: dict[str, str] = msgspec.field(default_factory=dict)


def right(held: Held, given: Given) -> bool:
    """Whether the object needs no correction."""
    if given.data is None:
        return True
    described = all(held.metadata.annotations.get(key) for key in given.annotations)
    return described and held.data == given.data and not held.binary_data


class NamespaceContents(Controller):
    """Gives one object to every namespace that is not being deleted."""

    def __init__(self, manager: Manager, cluster: Cluster, given: Given) -> None:
        super().__init__(given.controller, manager)
        self._cluster = cluster
        self._given = given
        informers = manager.informers
        self._namespaces = self.watch(informers.of(NAMESPACES, as_=Namespace), self._namespace_changed)
        if given.data is None:
            held: Informer[Any] = informers.of(given.resource, as_=Bare)
        else:
            # Of all ConfigMaps only those of this name are followed.
            held = informers.of(given.resource, as_=Held, fields=f"metadata.name={given.name}")
        self._held = self.watch(held, self._held_changed)

    def _namespace_changed(self, key: Key, old: Namespace | None, new: Namespace | None) -> None:
        if new is not None and not new.metadata.deletion_timestamp:
            self.queue.add(key)

    def _held_changed(self, key: Key, old: Held | None, new: Held | None) -> None:
        namespace, name = split_key(key)
        if name == self._given.name and (new is None or not right(new, self._given)):
            self.queue.add(namespace)

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
            return  # another writer was first, or the namespace is gone; that change queues the key again
        except errors.Forbidden as error:
            if not error.namespace_terminating:
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
