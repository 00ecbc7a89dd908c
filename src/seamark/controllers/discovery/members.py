"""Which Pods each Service selects, kept up to date change by change.

Followers are told which Pod of which Service changed, and whether the Service must be handled because of it.  The cost
of a change depends on the labels that changed, not on the number of objects in the namespace.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from seamark.access.informer import Informer, split_key
from seamark.access.labels import ObjectsByLabels, SelectorsByLabels
from seamark.rules.membership import same, selects
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from seamark.runtime.following import Derived
from seamark.runtime.queue import Key


class Follower(Protocol):
    """A controller that keeps something per Service."""

    def service_changed(self, key: Key) -> None:
        """The Service is new, different or gone."""
        ...

    def pod_changed(self, key: Key, name: str, *, wake: bool) -> None:
        """This Pod joined, left or changed; without ``wake`` this can wait until the Service is next handled."""
        ...


class Members(Derived):
    """Services, Pods and Nodes, and which Service selects which Pods."""

    def __init__(self, *, services: Informer[Service], pods: Informer[Pod], nodes: Informer[Node]) -> None:
        super().__init__("members")
        self._services = self.watch(services, self._service_changed)
        self._pods = self.watch(pods, self._pod_changed)
        self._nodes = self.watch(nodes, self._node_changed)
        self._followers: list[Follower] = []
        self.reset()

    def reset(self) -> None:
        self._by_labels: ObjectsByLabels[str] = ObjectsByLabels()
        self._by_selector: SelectorsByLabels[Key] = SelectorsByLabels()
        self._by_node: dict[str, set[tuple[str, str]]] = {}

    def follow(self, follower: Follower) -> None:
        """Report every change to this controller."""
        self._followers.append(follower)

    # --- reading -----------------------------------------------------------------------------------

    def service(self, key: Key) -> Service | None:
        return self._services.by_key(key)

    def pod(self, service: Service, name: str) -> Pod | None:
        """The Pod of that name, if the Service selects it."""
        found = self._pods.get(name, service.metadata.namespace)
        return found if found is not None and selects(service, found) else None

    def pods(self, service: Service) -> Iterator[Pod]:
        """All Pods the Service selects."""
        namespace = service.metadata.namespace
        if not service.spec.selector:
            return
        for name in self._by_labels.select(namespace, service.spec.selector):
            found = self._pods.get(name, namespace)
            if found is not None:
                yield found

    def node_of(self, pod: Pod | None) -> Node | None:
        return self._nodes.by_key(pod.spec.node_name) if pod is not None and pod.spec.node_name else None

    # --- following ---------------------------------------------------------------------------------

    def _service_changed(self, key: Key, old: Service | None, new: Service | None) -> None:
        namespace, _ = split_key(key)
        if new is not None and new.spec.selector:
            self._by_selector.put(namespace, key, new.spec.selector)
        else:
            self._by_selector.remove(namespace, key)
        for follower in self._followers:
            follower.service_changed(key)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if old is not None and new is not None and same(old, new):
            return
        namespace, name = split_key(key)
        before = self._selectors_of(old)
        after = before if old is not None and new is not None and _same_labels(old, new) else self._selectors_of(new)
        if new is None:
            self._by_labels.remove(namespace, name)
        else:
            self._by_labels.put(namespace, name, new.metadata.labels)
        self._file(old, new)
        woken = _woken(old, new, before, after)
        for service in before | after:
            for follower in self._followers:
                follower.pod_changed(service, name, wake=service in woken)

    def _node_changed(self, node: Key, old: Node | None, new: Node | None) -> None:
        """A Node came, went or moved to another zone: its Pods are checked again when their Services are handled."""
        if old is not None and new is not None and old.zone == new.zone:
            return
        for namespace, name in self._by_node.get(node, ()):
            for service in self._selectors_of(self._pods.get(name, namespace)):
                for follower in self._followers:
                    follower.pod_changed(service, name, wake=False)

    def _selectors_of(self, pod: Pod | None) -> set[Key]:
        if pod is None:
            return set()
        return self._by_selector.matching(pod.metadata.namespace, pod.metadata.labels)

    def _file(self, old: Pod | None, new: Pod | None) -> None:
        before = old.spec.node_name if old is not None else ""
        after = new.spec.node_name if new is not None else ""
        if before == after:
            return
        if old is not None and before:
            pods = self._by_node[before]
            pods.discard((old.metadata.namespace, old.metadata.name))
            if not pods:
                del self._by_node[before]
        if new is not None and after:
            self._by_node.setdefault(after, set()).add((new.metadata.namespace, new.metadata.name))


def _same_labels(old: Pod, new: Pod) -> bool:
    return old.metadata.labels == new.metadata.labels


def _woken(old: Pod | None, new: Pod | None, before: set[Key], after: set[Key]) -> set[Key]:
    """The Services to handle because of a Pod's change, by Kubernetes' rules; a change of phase is not a reason.

    If only the labels changed, these are the Services that it joined or left; for the others nothing is different.
    """
    if old is None or new is None:
        return before | after
    gone = new.metadata.deletion_timestamp
    changed = gone is not None or old.metadata.deletion_timestamp is not None
    changed = changed or old.ready != new.ready or old.ips != new.ips
    relabelled = not _same_labels(old, new) or (old.spec.hostname, old.spec.subdomain) != (
        new.spec.hostname,
        new.spec.subdomain,
    )
    if changed:
        return before | after if relabelled else after
    return before ^ after if relabelled else set()
