"""Every object that the API server stores can be decoded in every view of its kind.

Whatever a request holds is first conformed to its kind's shape, so the values are made from the shapes: each field that
a view names, absent, empty, null, and at the limits of its type.
"""

import importlib
import pkgutil
import types
import typing
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import seamark
import seamark.why.views as why
from seamark.access.cluster import Receipt, Unreadable
from seamark.controllers.autoscaling.autoscaler import Autoscaler, PodMetrics
from seamark.controllers.batch.cronjob import CronJob
from seamark.controllers.batch.job import Job
from seamark.controllers.housekeeping.event_expiry import AgingEvent
from seamark.controllers.housekeeping.everything import Bare
from seamark.controllers.housekeeping.flow_schemas import FlowSchema
from seamark.controllers.housekeeping.namespace_contents import Held
from seamark.controllers.housekeeping.policy_types import ValidatingPolicy
from seamark.controllers.housekeeping.role_aggregation import ClusterRole
from seamark.controllers.identity.signing_requests import SigningRequest
from seamark.controllers.identity.token_secrets import Account, TokenSecret
from seamark.controllers.policy.budgets import Scaled
from seamark.controllers.policy.quotas import Quota
from seamark.controllers.workloads.daemonset import DaemonSet
from seamark.controllers.workloads.deployment import Deployment
from seamark.controllers.workloads.history import Revision
from seamark.controllers.workloads.replicas import Replicas, ReplicaSet, ReplicationController
from seamark.controllers.workloads.statefulset import StatefulSet
from seamark.kinds.language.decode import DecodeError, conform
from seamark.kinds.language.shape import ListOf, MapOf, Scalar, Shape
from seamark.kinds.resource import (
    AUTOSCALERS,
    CLUSTER_ROLES,
    CONFIGMAPS,
    CONTROLLER_REVISIONS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    ENDPOINTS,
    EVENTS,
    FLOW_SCHEMAS,
    INGRESS_CLASSES,
    INGRESSES,
    IP_ADDRESSES,
    JOBS,
    LEASES,
    NAMESPACES,
    NETWORK_POLICIES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICE_CIDRS,
    SERVICES,
    SIGNING_REQUESTS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VALIDATING_POLICIES,
)
from seamark.kinds.table import KINDS
from seamark.nodes.running.kubelet import Named
from seamark.nodes.running.spec import PodToRun
from seamark.rules.objects.budget import Budget
from seamark.rules.objects.devices import DeviceClaim, DeviceClaimTemplate
from seamark.rules.objects.endpoints import Endpoints
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.metadata import ObjectView, Written
from seamark.rules.objects.namespace import Namespace
from seamark.rules.objects.network import IPAddress, ServiceCIDR
from seamark.rules.objects.networkpolicy import NetworkPolicy
from seamark.rules.objects.node import Lease, Node
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from seamark.rules.objects.storage import Claim, StorageClass, Volume

VIEWS: dict[Any, tuple[type, ...]] = {
    AUTOSCALERS: (Autoscaler,),
    CLUSTER_ROLES: (ClusterRole,),
    CONFIGMAPS: (Held,),
    CONTROLLER_REVISIONS: (Revision,),
    CRON_JOBS: (CronJob,),
    DAEMON_SETS: (DaemonSet, why.AnyWorkload),
    DEPLOYMENTS: (Deployment, Scaled, why.AnyWorkload),
    ENDPOINTS: (Endpoints, why.Endpoints),
    ENDPOINT_SLICES: (EndpointSlice, why.EndpointSlice),
    EVENTS: (AgingEvent, why.Event),
    IP_ADDRESSES: (IPAddress,),
    JOBS: (Job,),
    LEASES: (Lease,),
    NAMESPACES: (Namespace,),
    NODES: (Node,),
    PERSISTENT_VOLUMES: (Volume,),
    PERSISTENT_VOLUME_CLAIMS: (Claim,),
    RESOURCE_CLAIMS: (DeviceClaim,),
    RESOURCE_CLAIM_TEMPLATES: (DeviceClaimTemplate,),
    NETWORK_POLICIES: (NetworkPolicy, why.NetworkPolicy),
    INGRESSES: (why.Ingress,),
    INGRESS_CLASSES: (why.IngressClass,),
    PODS: (Pod, why.Pod, PodToRun),
    FLOW_SCHEMAS: (FlowSchema,),
    VALIDATING_POLICIES: (ValidatingPolicy,),
    POD_DISRUPTION_BUDGETS: (Budget,),
    REPLICATION_CONTROLLERS: (ReplicationController, Scaled, why.AnyWorkload),
    REPLICA_SETS: (ReplicaSet, Scaled, why.AnyWorkload),
    RESOURCE_QUOTAS: (Quota,),
    SECRETS: (TokenSecret,),
    SERVICES: (Service, why.Service),
    SERVICE_ACCOUNTS: (Account,),
    SERVICE_CIDRS: (ServiceCIDR,),
    SIGNING_REQUESTS: (SigningRequest,),
    STATEFUL_SETS: (StatefulSet, Scaled, why.AnyWorkload),
    STORAGE_CLASSES: (StorageClass,),
}
# Only metadata, and a phase: what these hold is the same for all kinds.
OF_ANY_KIND = (Bare, Named, Written, Receipt, Namespace)

# What validation allows, where a view holds no more than that.
ALLOWED = {"ipFamilies": st.lists(st.sampled_from(["IPv4", "IPv6"]), max_size=2)}
# Lists that validation requires to have elements, so that they are never stored as null.
REQUIRED = ("containers", "addresses", "values", "paths")

text = st.sampled_from(["", "a", "0", "é", "x" * 300]) | st.text(max_size=5)
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inside: st.lists(inside, max_size=2) | st.dictionaries(text, inside, max_size=2),
    max_leaves=4,
)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": text,
    "int32": st.sampled_from([0, 1, -1, 2**31 - 1, -(2**31)]),
    "int64": st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)]),
    "float64": st.sampled_from([0, 0.0, 1.5, -1e308, 2**53]),
    "bool": st.booleans(),
    "bytes": st.sampled_from(["", "YQ=="]),
    "time": st.sampled_from(["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-11-17T01:02:03.5+14:00"]),
    "microtime": st.sampled_from(["2026-11-17T01:02:03.999999Z", "9999-12-31T23:59:59Z"]),
    "quantity": st.sampled_from(["0", "1e2147483647", "-1n", "9" * 900, 7, 0.5]),
    "int-or-string": st.sampled_from([0, 2**31 - 1, -(2**31), "", "80", "25%"]),
    "any": anything,
}


def alternatives(view: Any) -> list[Any]:
    """The types that a view allows for a field, in lists and maps those of the elements."""
    origin, arguments = typing.get_origin(view), typing.get_args(view)
    if origin is types.UnionType or origin is typing.Union:
        return [each for argument in arguments for each in alternatives(argument)]
    if origin in (list, tuple):
        return alternatives(arguments[0])
    if origin is dict:
        return alternatives(arguments[1])
    return [view]


def values(of: Any, view: Any) -> st.SearchStrategy[Any]:
    """JSON values for a type of a shape, with those fields that the view names."""
    if isinstance(of, ListOf):
        return st.lists(st.none() | values(of.of, view), max_size=2)
    if isinstance(of, MapOf):
        return st.dictionaries(text, st.none() | values(of.of, view), max_size=2)
    if isinstance(of, Shape):
        structs = [each for each in alternatives(view) if isinstance(each, type) and issubclass(each, msgspec.Struct)]
        fields: dict[str, st.SearchStrategy[Any]] = {}
        for struct in structs:
            for field in msgspec.structs.fields(struct):
                if (known := of.fields.get(field.encode_name)) is not None:
                    name = field.encode_name
                    made = ALLOWED[name] if name in ALLOWED else values(known.type, field.type)
                    fields[field.encode_name] = st.none() | made
        return st.fixed_dictionaries({}, optional=fields)
    assert isinstance(of, Scalar)
    return SCALARS[of.name]


def validated(value: Any) -> Any:
    """The value with those lists that validation requires."""
    if isinstance(value, list):
        return [validated(each) for each in value]
    if isinstance(value, dict):
        return {k: [] if v is None and k in REQUIRED else validated(v) for k, v in value.items()}
    return value


CASES = [
    pytest.param(kind, view, id=f"{kind.resource.kind}-{view.__module__.removeprefix('seamark.')}.{view.__name__}")
    for kind in KINDS
    for view in (*VIEWS.get(kind.resource, ()), *(OF_ANY_KIND if kind.resource == CONFIGMAPS else ()))
]


@pytest.mark.parametrize(("kind", "view"), CASES)
@settings(max_examples=12)
@given(data=st.data())
def test_what_the_api_stores_can_be_decoded(kind, view, data):
    obj = data.draw(values(kind.shape, view))
    obj["metadata"] = {**(obj.get("metadata") or {}), "name": "a", "resourceVersion": "1"}
    try:
        conformed, _ = conform(obj, kind.shape)
    except DecodeError:
        assume(False)
    encoded = msgspec.json.encode(validated(conformed))
    decoded = msgspec.json.decode(encoded, type=view)
    assert decoded.metadata is not None
    assert Unreadable.of(encoded, ValueError()).metadata.name == "a"


def test_every_view_of_objects_has_a_row():
    for module in pkgutil.walk_packages(seamark.__path__, "seamark."):  # a view is known once its module is imported
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
    found, new = set(), {ObjectView}
    while new:
        found |= new
        new = {sub for each in new for sub in each.__subclasses__() if sub.__module__.startswith("seamark.")}
    rows = {view for views in VIEWS.values() for view in views} | set(OF_ANY_KIND)
    # The metrics of Pods come from another server, if there is one: what its API stores is not ours to say.
    assert found - rows == {ObjectView, Replicas, PodMetrics}
