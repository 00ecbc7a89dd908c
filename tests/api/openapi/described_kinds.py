"""Kinds as a real 1.38 cluster describes them, for the tests of discovery and OpenAPI."""

from __future__ import annotations

from seamark.kinds import resource as r
from seamark.kinds.kind import ALL_VERBS, Kind
from seamark.kinds.language import shapes
from seamark.kinds.resource import Resource
from seamark.kinds.subresource import Subresource

CHANGE = ("get", "patch", "update")
PROXY = ("create", "delete", "get", "patch", "update")
SCALE = Subresource("scale", CHANGE, "Scale", "autoscaling", "v1")


def kind(
    resource: Resource,
    *subresources: Subresource,
    short: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    verbs: tuple[str, ...] = ALL_VERBS,
) -> Kind:
    members = {
        "resource": resource,
        "singular": resource.kind.lower(),
        "shape_name": shapes.load().kinds[resource.api_version, resource.kind],
        "subresources": subresources,
        "short_names": short,
        "categories": categories,
        "verbs": verbs,
    }
    made = type(resource.kind, (Kind,), members)()
    assert isinstance(made, Kind)
    return made


def status(kind: str) -> Subresource:
    return Subresource("status", CHANGE, kind)


NO_COLLECTION = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")

KINDS = (
    kind(Resource("", "v1", "bindings", "Binding"), verbs=("create",)),
    kind(r.CONFIGMAPS, short=("cm",)),
    kind(r.ENDPOINTS, short=("ep",)),
    kind(r.EVENTS, short=("ev",)),
    kind(
        r.NAMESPACES,
        status("Namespace"),
        Subresource("finalize", ("update",), "Namespace"),
        short=("ns",),
        verbs=NO_COLLECTION,
    ),
    kind(r.NODES, Subresource("proxy", PROXY, "NodeProxyOptions"), status("Node"), short=("no",)),
    kind(
        r.PODS,
        Subresource("attach", ("create", "get"), "PodAttachOptions"),
        Subresource("binding", ("create",), "Binding"),
        Subresource("ephemeralcontainers", CHANGE, "Pod"),
        Subresource("eviction", ("create",), "Eviction", "policy", "v1"),
        Subresource("exec", ("create", "get"), "PodExecOptions"),
        Subresource("log", ("get",), "Pod"),
        Subresource("portforward", ("create", "get"), "PodPortForwardOptions"),
        Subresource("proxy", PROXY, "PodProxyOptions"),
        Subresource("resize", CHANGE, "Pod"),
        status("Pod"),
        short=("po",),
        categories=("all",),
    ),
    kind(r.SECRETS),
    kind(
        r.SERVICE_ACCOUNTS,
        Subresource("token", ("create",), "TokenRequest", "authentication.k8s.io", "v1"),
        short=("sa",),
    ),
    kind(
        r.SERVICES,
        Subresource("proxy", PROXY, "ServiceProxyOptions"),
        status("Service"),
        short=("svc",),
        categories=("all",),
    ),
    kind(r.DEPLOYMENTS, SCALE, status("Deployment"), short=("deploy",), categories=("all",)),
    kind(r.REPLICA_SETS, SCALE, status("ReplicaSet"), short=("rs",), categories=("all",)),
    kind(r.STATEFUL_SETS, SCALE, status("StatefulSet"), short=("sts",), categories=("all",)),
    kind(r.ENDPOINT_SLICES),
    kind(r.LEASES),
    kind(r.NEW_EVENTS, short=("ev",)),
    kind(Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False), verbs=("create",)),
)
