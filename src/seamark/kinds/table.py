"""The built-in kinds, one row each in the order discovery lists them, and the kinds that one server serves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from seamark import errors
from seamark.kinds.autoscaling.autoscaler import AUTOSCALER
from seamark.kinds.autoscaling.autoscaler_v1 import AUTOSCALER_V1
from seamark.kinds.batch.cronjob import CRON_JOB
from seamark.kinds.batch.job import JOB
from seamark.kinds.certificates.pod_certificate_request import POD_CERTIFICATE_REQUEST
from seamark.kinds.certificates.signing_request import SIGNING_REQUEST
from seamark.kinds.certificates.trust_bundle import TRUST_BUNDLE
from seamark.kinds.core.componentstatus import COMPONENT_STATUS
from seamark.kinds.core.configmap import CONFIG_MAP
from seamark.kinds.core.event import EVENT, NEW_EVENT
from seamark.kinds.core.lease import LEASE
from seamark.kinds.core.namespace import NAMESPACE
from seamark.kinds.core.node import NODE
from seamark.kinds.core.review import REVIEWS
from seamark.kinds.core.runtimeclass import RUNTIME_CLASS
from seamark.kinds.core.secret import SECRET
from seamark.kinds.core.serviceaccount import SERVICE_ACCOUNT
from seamark.kinds.devices.devices import (
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
)
from seamark.kinds.extensions.definition import DEFINITION
from seamark.kinds.flowcontrol.flowschema import FLOW_SCHEMA
from seamark.kinds.flowcontrol.prioritylevel import PRIORITY_LEVEL
from seamark.kinds.kind import Kind
from seamark.kinds.networking.ingress import INGRESS
from seamark.kinds.networking.ingressclass import INGRESS_CLASS
from seamark.kinds.networking.networkpolicy import NETWORK_POLICY
from seamark.kinds.pod.binding import BINDING
from seamark.kinds.pod.pod import POD
from seamark.kinds.policy.budget import POD_DISRUPTION_BUDGET
from seamark.kinds.policy.limit_range import LIMIT_RANGE
from seamark.kinds.policy.priority_class import PRIORITY_CLASS
from seamark.kinds.policy.quota import RESOURCE_QUOTA
from seamark.kinds.rbac.binding import CLUSTER_ROLE_BINDING, ROLE_BINDING
from seamark.kinds.rbac.role import CLUSTER_ROLE, ROLE
from seamark.kinds.registration.apiservice import API_SERVICE
from seamark.kinds.registration.policies import (
    MUTATING_POLICY,
    MUTATING_POLICY_BINDING,
    VALIDATING_POLICY,
    VALIDATING_POLICY_BINDING,
)
from seamark.kinds.registration.webhooks import MUTATING_WEBHOOK, VALIDATING_WEBHOOK
from seamark.kinds.resource import Resource
from seamark.kinds.service.endpoints import ENDPOINTS_KIND
from seamark.kinds.service.endpointslice import ENDPOINT_SLICE
from seamark.kinds.service.ipaddress import IP_ADDRESS
from seamark.kinds.service.service import SERVICE
from seamark.kinds.service.servicecidr import SERVICE_CIDR
from seamark.kinds.storage.csidriver import CSI_DRIVER
from seamark.kinds.storage.csinode import CSI_NODE
from seamark.kinds.storage.csistoragecapacity import CSI_CAPACITY
from seamark.kinds.storage.persistentvolume import PERSISTENT_VOLUME
from seamark.kinds.storage.persistentvolumeclaim import PERSISTENT_VOLUME_CLAIM
from seamark.kinds.storage.storageclass import STORAGE_CLASS
from seamark.kinds.storage.storageversionmigration import STORAGE_VERSION_MIGRATION
from seamark.kinds.storage.volumeattachment import VOLUME_ATTACHMENT
from seamark.kinds.storage.volumeattributesclass import VOLUME_ATTRIBUTES_CLASS
from seamark.kinds.workloads.controllerrevision import CONTROLLER_REVISION
from seamark.kinds.workloads.daemonset import DAEMON_SET
from seamark.kinds.workloads.deployment import DEPLOYMENT
from seamark.kinds.workloads.podtemplate import POD_TEMPLATE
from seamark.kinds.workloads.replicaset import REPLICA_SET, REPLICATION_CONTROLLER
from seamark.kinds.workloads.statefulset import STATEFUL_SET

KINDS: tuple[Kind, ...] = (
    # core
    COMPONENT_STATUS,
    CONFIG_MAP,
    ENDPOINTS_KIND,
    EVENT,
    LIMIT_RANGE,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    PERSISTENT_VOLUME,
    POD,
    POD_TEMPLATE,
    REPLICATION_CONTROLLER,
    RESOURCE_QUOTA,
    SECRET,
    SERVICE_ACCOUNT,
    SERVICE,
    # apiregistration.k8s.io
    API_SERVICE,
    # apps
    CONTROLLER_REVISION,
    DAEMON_SET,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    # events.k8s.io
    NEW_EVENT,
    # autoscaling
    AUTOSCALER,
    AUTOSCALER_V1,
    # batch
    CRON_JOB,
    JOB,
    # certificates.k8s.io
    SIGNING_REQUEST,
    TRUST_BUNDLE,
    POD_CERTIFICATE_REQUEST,
    # networking.k8s.io
    INGRESS_CLASS,
    INGRESS,
    IP_ADDRESS,
    NETWORK_POLICY,
    SERVICE_CIDR,
    # policy
    POD_DISRUPTION_BUDGET,
    # rbac.authorization.k8s.io
    CLUSTER_ROLE_BINDING,
    CLUSTER_ROLE,
    ROLE_BINDING,
    ROLE,
    # storage.k8s.io
    CSI_DRIVER,
    CSI_NODE,
    CSI_CAPACITY,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
    VOLUME_ATTRIBUTES_CLASS,
    # admissionregistration.k8s.io
    MUTATING_POLICY,
    MUTATING_POLICY_BINDING,
    MUTATING_WEBHOOK,
    VALIDATING_POLICY,
    VALIDATING_POLICY_BINDING,
    VALIDATING_WEBHOOK,
    # apiextensions.k8s.io
    DEFINITION,
    # scheduling.k8s.io
    PRIORITY_CLASS,
    # coordination.k8s.io
    LEASE,
    # node.k8s.io
    RUNTIME_CLASS,
    # discovery.k8s.io
    ENDPOINT_SLICE,
    # flowcontrol.apiserver.k8s.io
    FLOW_SCHEMA,
    PRIORITY_LEVEL,
    # resource.k8s.io
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
    # storagemigration.k8s.io
    STORAGE_VERSION_MIGRATION,
)

# Documents that every server answers and none stores.
NEVER_STORED: tuple[Kind, ...] = (*REVIEWS, BINDING)


# Told what was and what is: (None, new) for a kind that appeared, (old, None) for one that vanished, or both.
Follower = Callable[[Kind | None, Kind | None], None]


class Kinds:
    """The kinds that one server serves, by where they are in the API.  They come and go while it runs.

    Everything that walks all kinds takes them from here, and notices changes by :attr:`revision` or :meth:`on_change`.
    """

    def __init__(self, kinds: Iterable[Kind] = KINDS) -> None:
        self._by_plural: dict[tuple[str, str, str], Kind] = {}
        self._by_kind: dict[tuple[str, str], Kind] = {}
        self._followers: list[Follower] = []
        self.groups: frozenset[str] = frozenset()  # those that have a kind here
        self.built_in_groups: frozenset[str] = frozenset()  # those that have a built-in kind
        self.revision = 0  # grows with every change
        for kind in kinds:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        """Serve a kind; one of the same group, version and plural is replaced."""
        self.check(kind)
        place = _place(kind.resource)
        self._change(place, self._by_plural.get(place), kind)

    def check(self, kind: Kind) -> None:
        """Raise Conflict if another resource of the same group and version has this kind's name."""
        namesake = self.by_kind(kind.resource.api_version, kind.resource.kind)
        if namesake is not None and namesake.resource.plural != kind.resource.plural:
            raise errors.Conflict(f"{kind.resource.kind} is the kind of {namesake.resource.qualified} already")

    def remove(self, resource: Resource) -> None:
        """Serve this kind no longer; KeyError if there is none."""
        place = _place(resource)
        self._change(place, self._by_plural[place], None)

    def _change(self, place: tuple[str, str, str], old: Kind | None, new: Kind | None) -> None:
        if old is not None:
            del self._by_kind[old.resource.api_version, old.resource.kind]
        if new is not None:
            self._by_plural[place] = new
            self._by_kind[new.resource.api_version, new.resource.kind] = new
            self.groups |= {new.resource.group}
            self.built_in_groups |= {new.resource.group} if new.built_in else set()
        else:
            del self._by_plural[place]
            self.groups = frozenset(group for group, _, _ in self._by_plural)
        self.revision += 1
        for follower in list(self._followers):
            follower(old, new)

    def on_change(self, follower: Follower) -> Callable[[], None]:
        """Call this for every change from now on; call the result to stop."""
        self._followers.append(follower)
        return lambda: self._followers.remove(follower)

    def by_plural(self, group: str, version: str, plural: str) -> Kind | None:
        return self._by_plural.get((group, version, plural))

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        return self._by_kind.get((api_version, kind))

    def __iter__(self) -> Iterator[Kind]:
        return iter(list(self._by_plural.values()))

    def __len__(self) -> int:
        return len(self._by_plural)


def _place(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.plural
