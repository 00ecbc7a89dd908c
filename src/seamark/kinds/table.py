"""The table of all kinds: one row each, in the order discovery lists them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seamark.kinds.configmap import CONFIG_MAP
from seamark.kinds.controllerrevision import CONTROLLER_REVISION
from seamark.kinds.daemonset import DAEMON_SET
from seamark.kinds.deployment import DEPLOYMENT
from seamark.kinds.endpoints import ENDPOINTS_KIND
from seamark.kinds.endpointslice import ENDPOINT_SLICE
from seamark.kinds.event import EVENT, NEW_EVENT
from seamark.kinds.ipaddress import IP_ADDRESS
from seamark.kinds.kind import Kind
from seamark.kinds.lease import LEASE
from seamark.kinds.namespace import NAMESPACE
from seamark.kinds.node import NODE
from seamark.kinds.pod import POD
from seamark.kinds.replicaset import REPLICA_SET
from seamark.kinds.replicationcontroller import REPLICATION_CONTROLLER
from seamark.kinds.secret import SECRET
from seamark.kinds.service import SERVICE
from seamark.kinds.serviceaccount import SERVICE_ACCOUNT
from seamark.kinds.servicecidr import SERVICE_CIDR
from seamark.kinds.statefulset import STATEFUL_SET

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
