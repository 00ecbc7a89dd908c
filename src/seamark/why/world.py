"""A cluster as it was read at one moment, indexed so that every question about a Service is a look-up.

A list that could not be read is None, never empty: a cluster still has nodes if they may not be listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from seamark.access.cluster import Unreadable
from seamark.access.labels import ObjectsByLabels
from seamark.kinds.resource import Resource
from seamark.kinds.wellknown import (
    POD_INDEX_LABEL,
    POD_NAME_LABEL,
    REGION_LABEL,
    REVISION_HASH_LABEL,
    TEMPLATE_HASH_LABEL,
    ZONE_LABEL,
)
from seamark.rules.objects.metadata import Metadata
from seamark.rules.objects.namespace import Namespace
from seamark.rules.objects.network import ServiceCIDR
from seamark.rules.objects.node import Node
from seamark.rules.routing.frontends import PlaceClaims
from seamark.why.views import (
    AnyWorkload,
    Endpoints,
    EndpointSlice,
    Event,
    Ingress,
    IngressClass,
    Key,
    NetworkPolicy,
    Pod,
    Service,
)

# Labels that tell replicas or generations of one workload apart; a selector is not meant to use them.
INSTANCE_LABELS = frozenset(
    (
        TEMPLATE_HASH_LABEL,
        REVISION_HASH_LABEL,
        "pod-template-generation",
        POD_NAME_LABEL,
        POD_INDEX_LABEL,
        "controller-uid",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
    )
)

# Labels that a Pod gets from its node; Pods of one workload differ in them, so no selector is meant to use them.
PLACE_LABELS = frozenset((ZONE_LABEL, REGION_LABEL))
_UNTELLING = INSTANCE_LABELS | PLACE_LABELS


class Refused(msgspec.Struct, frozen=True):
    """A list that may not be read, and the server's message."""

    resource: Resource
    namespace: str
    message: str

    def __str__(self) -> str:
        where = f' in namespace "{self.namespace}"' if self.namespace else " in the whole cluster"
        return f"permission missing: list {self.resource.qualified}{where if self.resource.namespaced else ''}"


class LeftOut(msgspec.Struct, frozen=True):
    """Objects of a list that cannot be decoded, so that the report, and every controller, goes without them."""

    resource: Resource
    objects: tuple[Unreadable, ...]

    def __str__(self) -> str:
        first = self.objects[0].metadata
        name = f"{first.namespace}/{first.name}" if first.namespace else first.name
        more = f" and {len(self.objects) - 1} more" if len(self.objects) > 1 else ""
        return (
            f"left out, because it cannot be decoded: {self.resource.qualified} {name}{more}: {self.objects[0].reason}"
        )


class Mistake(msgspec.Struct, frozen=True):
    """What the API server would refuse a manifest for."""

    kind: str
    namespace: str
    name: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name} in namespace {self.namespace} would be refused: {self.message}"


class Seen(msgspec.Struct, frozen=True):
    """The lists as they were read; None for those that could not be read, or were not needed.

    ``namespace`` is the only one that was read, "" if all were; ``also`` are further namespaces whose Services were
    read; ``elsewhere`` are Pods of other namespaces that the selector of one Service matches, and ``beyond`` the slices
    of Services of other namespaces that aliases lead to.  ``hypothetical`` says that the objects were read from
    manifests, and do not run yet.  ``refused`` is what could not be read, and ``mistakes`` is what the API server would
    not accept.
    """

    services: Sequence[Service]
    pods: Sequence[Pod]
    nodes: Sequence[Node] | None = None
    endpoints: Sequence[Endpoints] | None = None
    slices: Sequence[EndpointSlice] | None = None
    workloads: Sequence[AnyWorkload] | None = None
    cidrs: Sequence[ServiceCIDR] | None = None
    namespaces: Sequence[Namespace] | None = None
    events: Sequence[Event] | None = None
    ingresses: Sequence[Ingress] | None = None
    ingress_classes: Sequence[IngressClass] | None = None
    policies: Sequence[NetworkPolicy] | None = None
    elsewhere: Sequence[Pod] = ()
    beyond: Mapping[Key, Sequence[EndpointSlice]] = msgspec.field(default_factory=dict)
    namespace: str = ""
    also: tuple[str, ...] = ()
    now: float | None = None
    hypothetical: bool = False
    refused: tuple[Refused | LeftOut, ...] = ()
    mistakes: tuple[Mistake, ...] = ()


class Shape(msgspec.Struct, frozen=True):
    """Labels that some Pods have in common, or that a workload would give to its Pods."""

    labels: dict[str, str]
    pods: tuple[Pod, ...] = ()
    workload: AnyWorkload | None = None


class World:
    """The lists, and the questions that they answer."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self.now = seen.now
        self.surveyed: dict[Key, Service] = {service.key: service for service in seen.services}
        self.services = dict(self.surveyed)  # and those of other namespaces, which were read for their sake
        self.nodes: dict[str, Node] | None = None
        if seen.nodes is not None:
            self.nodes = {node.metadata.name: node for node in seen.nodes}

    def learn(self, **more: Any) -> None:
        """Add lists that were read later.  What was derived from the lists they replace is forgotten."""
        self.seen = msgspec.structs.replace(self.seen, **more)
        for derived in (
            "events_by_object",
            "endpoints",
            "_slices",
            "workloads_by_namespace",
            "_shapes",
            "policies_by_namespace",
        ):
            self.__dict__.pop(derived, None)

    def add_services(self, services: Iterable[Service]) -> None:
        """Add Services of other namespaces: too little was read there to report on them."""
        self.services |= {service.key: service for service in services}

    # --- Pods --------------------------------------------------------------------------------------

    @cached_property
    def pods(self) -> dict[Key, Pod]:
        return {pod.key: pod for pod in self.seen.pods}

    @cached_property
    def _pods_by_labels(self) -> ObjectsByLabels[str]:
        index: ObjectsByLabels[str] = ObjectsByLabels()
        for pod in self.seen.pods:
            index.put(pod.metadata.namespace, pod.metadata.name, pod.metadata.labels)
        return index

    def pods_of(self, service: Service) -> list[Pod]:
        """The Pods it selects, by name."""
        selector = service.spec.selector
        if not selector or service.external:
            return []
        return self.selected(service.metadata.namespace, selector)

    def selected(self, namespace: str, selector: Mapping[str, str]) -> list[Pod]:
        """The Pods of a namespace that have all these labels, by name."""
        return [self.pods[namespace, name] for name in sorted(self._pods_by_labels.select(namespace, selector))]

    def node_of(self, pod: Pod) -> Node | None:
        """The Pod's Node; a stand-in if Nodes could not be read, and None only if it is known to be missing."""
        if self.nodes is None:
            return Node(Metadata(pod.spec.node_name))
        return self.nodes.get(pod.spec.node_name)

    @cached_property
    def pods_by_namespace(self) -> dict[str, list[Pod]]:
        found: dict[str, list[Pod]] = {}
        for pod in self.seen.pods:
            found.setdefault(pod.metadata.namespace, []).append(pod)
        return found

    @cached_property
    def pods_by_address(self) -> dict[str, Pod]:
        """The Pods that have not ended; the first of those that share an address, as on a node's network."""
        return {address: pod for pod in reversed(self.seen.pods) if pod.active for address in pod.ips}

    @cached_property
    def workloads_by_namespace(self) -> dict[str, list[AnyWorkload]]:
        found: dict[str, list[AnyWorkload]] = {}
        for workload in self.seen.workloads or ():
            # A ReplicaSet of a Deployment says nothing that the Deployment does not say.
            if not any(owner.controller for owner in workload.metadata.owner_references):
                found.setdefault(workload.metadata.namespace, []).append(workload)
        return found

    @cached_property
    def _shapes(self) -> dict[str, tuple[Shape, ...]]:
        return {}

    def shapes(self, namespace: str) -> tuple[Shape, ...]:
        """Every distinct set of labels in a namespace, of Pods and of workloads' templates."""
        found = self._shapes.get(namespace)
        if found is None:
            found = self._shapes[namespace] = tuple(self._distinct(namespace))
        return found

    def _distinct(self, namespace: str) -> Iterable[Shape]:
        groups: dict[frozenset[tuple[str, str]], list[Pod]] = {}
        for pod in self.pods_by_namespace.get(namespace, ()):
            groups.setdefault(_telling(pod.metadata.labels), []).append(pod)
        makers = {
            _telling(each.spec.template.metadata.labels): each
            for each in self.workloads_by_namespace.get(namespace, ())
            # The Pods of a Job have further labels, and stand for it while they are there.
            if each.kind not in ("Job", "CronJob") or not self.selected(namespace, each.spec.template.metadata.labels)
        }
        for labels, pods in groups.items():
            yield Shape(dict(labels), tuple(pods), makers.pop(labels, None))
        for labels, workload in makers.items():
            yield Shape(dict(labels), (), workload)

    # --- what is written about Services ------------------------------------------------------------

    @cached_property
    def endpoints(self) -> dict[Key, Endpoints]:
        return {each.key: each for each in self.seen.endpoints or ()}

    @cached_property
    def _slices(self) -> dict[Key, list[EndpointSlice]]:
        found: dict[Key, list[EndpointSlice]] = {}
        for each in self.seen.slices or ():
            found.setdefault((each.metadata.namespace, each.service_name), []).append(each)
        return found

    @cached_property
    def bookkept(self) -> bool:
        """Whether what the controllers write was read; manifests hold it only if exported from a cluster."""
        if self.seen.slices is None:
            return False
        return not self.seen.hypothetical or any(each.managed_by for each in self.seen.slices)

    @property
    def planned(self) -> bool:
        """Whether these are manifests that were never applied, so that addresses do not exist yet."""
        return self.seen.hypothetical and not self.bookkept

    def slices_of(self, key: Key) -> list[EndpointSlice]:
        """The slices that name this Service."""
        return [each for each in self._slices.get(key, ()) if each.metadata.deletion_timestamp is None]

    def slices_behind(self, key: Key) -> list[EndpointSlice]:
        """The slices of a Service, in whichever namespace it is."""
        return self.slices_of(key) or list(self.seen.beyond.get(key, ()))

    def answers(self, key: Key) -> bool | None:
        """Whether a Service has a ready endpoint, as its slices say; None if they were not read."""
        known = self.seen.namespace in ("", key[0]) or key in self.seen.beyond
        if not self.bookkept or not known:
            return None
        return any(each.ready_addresses() for each in self.slices_behind(key))

    def strays(self, namespace: str) -> list[EndpointSlice]:
        """Slices that name no Service, or one that does not exist."""
        return [
            each
            for (where, name), slices in self._slices.items()
            if where == namespace and (where, name) not in self.services
            for each in slices
        ]

    # --- any kind ----------------------------------------------------------------------------------

    def objects(self, kind: str) -> Iterable[Any]:
        """All objects of a kind that were read."""
        seen = self.seen
        lists: dict[str, Sequence[Any] | None] = {
            "Pod": (*seen.pods, *seen.elsewhere),
            "Node": seen.nodes,
            "Endpoints": seen.endpoints,
            "EndpointSlice": (*(seen.slices or ()), *(each for found in seen.beyond.values() for each in found)),
            "Namespace": seen.namespaces,
            "ServiceCIDR": seen.cidrs,
            "Ingress": seen.ingresses,
            "IngressClass": seen.ingress_classes,
            "NetworkPolicy": seen.policies,
        }
        if kind == "Service":
            return self.services.values()
        if kind in lists:
            return lists[kind] or ()
        return [each for each in seen.workloads or () if each.kind == kind]

    def find(self, kind: str, namespace: str, name: str) -> Any:
        """One object; None if it was not read."""
        if kind == "Service":
            return self.services.get((namespace, name))
        if kind == "Pod" and (namespace, name) in self.pods:
            return self.pods[namespace, name]
        key = (namespace, name)
        return next((e for e in self.objects(kind) if (e.metadata.namespace, e.metadata.name) == key), None)

    def found(self, kind: str, namespace: str, *, name: str = "", labels: Mapping[str, str]) -> list[str]:
        """The names of the objects of a kind in a namespace ("": in any) with that name and these labels."""
        if kind == "Pod" and namespace and labels and not name:
            return [pod.metadata.name for pod in self.selected(namespace, labels)]
        return [
            each.metadata.name
            for each in self.objects(kind)
            if namespace in ("", each.metadata.namespace)
            and name in ("", each.metadata.name)
            and labels.items() <= each.metadata.labels.items()
        ]

    # --- the rest ----------------------------------------------------------------------------------

    @cached_property
    def services_by_cluster_ip(self) -> dict[str, list[Service]]:
        found: dict[str, list[Service]] = {}
        for service in self.services.values():
            for address in service.spec.cluster_ips or (service.spec.cluster_ip,):
                if address not in ("", "None"):
                    found.setdefault(address, []).append(service)
        return found

    @cached_property
    def claims(self) -> PlaceClaims:
        """Which of the Services that were read gets an address and port that several ask for."""
        claims = PlaceClaims()
        for service in self.services.values():
            claims.put(service)
        return claims

    @cached_property
    def ingresses_by_namespace(self) -> dict[str, list[Ingress]]:
        found: dict[str, list[Ingress]] = {}
        for each in self.seen.ingresses or ():
            found.setdefault(each.metadata.namespace, []).append(each)
        return found

    @cached_property
    def policies_by_namespace(self) -> dict[str, list[NetworkPolicy]]:
        found: dict[str, list[NetworkPolicy]] = {}
        for each in self.seen.policies or ():
            found.setdefault(each.metadata.namespace, []).append(each)
        return found

    @cached_property
    def terminating_namespaces(self) -> frozenset[str]:
        return frozenset(
            each.metadata.name
            for each in self.seen.namespaces or ()
            if each.metadata.deletion_timestamp is not None or each.status.phase == "Terminating"
        )

    @cached_property
    def events_by_object(self) -> dict[tuple[str, str, str], list[Event]]:
        """By kind, namespace and name, the newest first."""
        found: dict[tuple[str, str, str], list[Event]] = {}
        for event in sorted(self.seen.events or (), key=lambda each: each.time, reverse=True):
            about = event.involved_object
            found.setdefault((about.kind, about.namespace, about.name), []).append(event)
        return found


def _telling(labels: dict[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset(pair for pair in labels.items() if pair[0] not in _UNTELLING)
