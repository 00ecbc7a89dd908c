"""The table of all kinds: one row each, in the order discovery lists them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seamark.kinds.core.configmap import CONFIG_MAP
from seamark.kinds.core.event import EVENT, NEW_EVENT
from seamark.kinds.core.lease import LEASE
from seamark.kinds.core.namespace import NAMESPACE
from seamark.kinds.core.node import NODE
from seamark.kinds.core.secret import SECRET
from seamark.kinds.core.serviceaccount import SERVICE_ACCOUNT
from seamark.kinds.kind import Kind
from seamark.kinds.pod.pod import POD
from seamark.kinds.service.endpoints import ENDPOINTS_KIND
from seamark.kinds.service.endpointslice import ENDPOINT_SLICE
from seamark.kinds.service.ipaddress import IP_ADDRESS
from seamark.kinds.service.service import SERVICE
from seamark.kinds.service.servicecidr import SERVICE_CIDR
from seamark.kinds.workloads.controllerrevision import CONTROLLER_REVISION
from seamark.kinds.workloads.daemonset import DAEMON_SET
from seamark.kinds.workloads.deployment import DEPLOYMENT
from seamark.kinds.workloads.replicaset import REPLICA_SET
from seamark.kinds.workloads.replicationcontroller import REPLICATION_CONTROLLER
from seamark.kinds.workloads.statefulset import STATEFUL_SET

KINDS: tuple[Kind, ...] = (
    # core
    CONFIG_MAP,
    ENDPOINTS_KIND,
    EVENT,
    NAMESPACE,
    NODE,
    POD,
    REPLICATION_CONTROLLER,
    SECRET,
    SERVICE_ACCOUNT,
    SERVICE,
    # apps
    CONTROLLER_REVISION,
    DAEMON_SET,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    # events.k8s.io
    NEW_EVENT,
    # networking.k8s.io
    IP_ADDRESS,
    SERVICE_CIDR,
    # coordination.k8s.io
    LEASE,
    # discovery.k8s.io
    ENDPOINT_SLICE,
)


class Kinds:
    """Kinds by where they are in the API; more may be added while the server runs."""

    def __init__(self, kinds: Iterable[Kind] = KINDS) -> None:
        self._by_plural: dict[tuple[str, str, str], Kind] = {}
        self._by_kind: dict[tuple[str, str], Kind] = {}
        self.groups: set[str] = set()  # that have a kind here
        for kind in kinds:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        """Register a kind; one of the same group, version and plural is replaced."""
        resource = kind.resource
        self._by_plural[resource.group, resource.version, resource.plural] = kind
        self._by_kind[resource.api_version, resource.kind] = kind
        self.groups.add(resource.group)

    def by_plural(self, group: str, version: str, plural: str) -> Kind | None:
        return self._by_plural.get((group, version, plural))

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        return self._by_kind.get((api_version, kind))

    def __iter__(self) -> Iterator[Kind]:
        return iter(list(self._by_plural.values()))

    def __len__(self) -> int:
        return len(self._by_plural)
