"""Service: a name and an address for a set of Pods.  Its rules are in the other modules of this package.

Policy and families depend on the cluster's ranges; ``allocate`` settles them together with the addresses, between
``prepare_*`` and ``validate*``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.allocation import Allocation, Pool
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import SERVICES
from seamark.kinds.service import allocation
from seamark.kinds.service import validation as rules
from seamark.kinds.service.defaults import fill_in, inherit, pluralise, strip_internal_policy
from seamark.kinds.service.types import (
    CLUSTER_IP,
    EXTERNAL_NAME,
    LOAD_BALANCER,
    NODE_PORT,
    NONE,
    wipe_unneeded,
)
from seamark.kinds.subresource import proxy, status_of
from seamark.kinds.values import metadata
from seamark.kinds.values.addresses import cidr_warnings, ip_warnings
from seamark.kinds.values.fields import Errors
from seamark.kinds.values.times import age
from seamark.kinds.wellknown import OLD_TOPOLOGY_ANNOTATION, TOPOLOGY_ANNOTATION


class ServiceKind(Kind):
    resource = SERVICES
    singular = "service"
    shape_name = "io.k8s.api.core.v1.Service"
    short_names = ("svc",)
    categories = ("all",)
    subresources = (
        proxy("ServiceProxyOptions"),
        status_of("Service"),
    )
    columns = (
        Column("Name", format="name"),
        Column("Type"),
        Column("Cluster-IP"),
        Column("External-IP"),
        Column("Port(s)"),
        Column("Age"),
        Column("Selector", priority=1),
    )
    create_on_update = True
    delete_answers_object = True
    allocates = True
    field_names = ("spec.clusterIP", "spec.type")

    def validate_name(self, name: str, *, prefix: bool) -> list[str]:
        return metadata.dns_label(name, prefix=prefix)

    # --- create and update -------------------------------------------------------------------------

    def default(self, obj: Object) -> None:
        fill_in(obj)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"loadBalancer": {}}
        pluralise(obj["spec"])
        strip_internal_policy(obj["spec"])

    def validate(self, obj: Object) -> Errors:
        return rules.mistakes(obj, None)

    def prepare_update(self, obj: Object, old: Object) -> None:
        spec, before = obj["spec"], old["spec"]
        obj["status"] = old["status"]
        inherit(spec, before)
        wipe_unneeded(spec, before)
        strip_internal_policy(spec)
        if spec["type"] != LOAD_BALANCER:
            # The load balancer may still exist for a while, but its address is no longer shown.
            obj["status"] = {**old["status"], "loadBalancer": {}}

    def validate_update(self, obj: Object, old: Object) -> Errors:
        return rules.change_mistakes(obj, old) + rules.mistakes(obj, old)

    def validate_status(self, obj: Object, old: Object) -> Errors:
        return rules.status_mistakes(obj, old)

    def allocate(self, obj: Object, old: Object | None, pool: Pool, *, dry_run: bool) -> Allocation:
        return allocation.plan(obj, old, pool, dry_run=dry_run)

    def release(self, obj: Object) -> Allocation:
        return allocation.release(obj)

    # --- what people see ---------------------------------------------------------------------------

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        spec = obj["spec"]
        external, kind = spec.get("externalIPs") or [], spec["type"]
        headless = kind == CLUSTER_IP and spec.get("clusterIP") == NONE
        said = []
        if OLD_TOPOLOGY_ANNOTATION in (obj["metadata"].get("annotations") or {}):
            said.append(
                f"annotation {OLD_TOPOLOGY_ANNOTATION} is deprecated, please use {TOPOLOGY_ANNOTATION} instead",
            )
        if spec.get("clusterIP", NONE) != NONE:
            for i, address in enumerate(spec.get("clusterIPs") or ()):
                said += ip_warnings(f"spec.clusterIPs[{i}]", address)
        if headless:
            said += _ignored_when_headless(spec)
        for i, address in enumerate(external):
            said += ip_warnings(f"spec.externalIPs[{i}]", address)
        if external and not headless and kind != EXTERNAL_NAME:
            said.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
        said += ip_warnings("spec.loadBalancerIP", spec.get("loadBalancerIP", ""))
        for i, cidr in enumerate(spec.get("loadBalancerSourceRanges") or ()):
            said += cidr_warnings(f"spec.loadBalancerSourceRanges[{i}]", cidr)
        if kind == EXTERNAL_NAME and external:
            said.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
        if kind != EXTERNAL_NAME and spec.get("externalName"):
            said.append('spec.externalName is ignored when spec.type is not "ExternalName"')
        if spec.get("trafficDistribution") == "PreferClose":
            said.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
        return said

    def fields(self, obj: Object) -> Mapping[str, str]:
        spec = obj["spec"]
        return {"spec.clusterIP": spec.get("clusterIP", ""), "spec.type": spec.get("type", "")}

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec = obj["metadata"], obj["spec"]
        addresses = spec.get("clusterIPs") or ["<none>"]
        ports = ",".join(_port(port) for port in spec.get("ports") or ())
        selector = ",".join(f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items()))
        return [
            meta["name"],
            spec.get("type", ""),
            addresses[0],
            _external_addresses(obj),
            ports or "<none>",
            age(now, meta.get("creationTimestamp")),
            selector or "<none>",
        ]


def _ignored_when_headless(spec: Object) -> list[str]:
    return [
        f"spec.{field} is ignored for headless services"
        for field, given in (
            ("loadBalancerIP", bool(spec.get("loadBalancerIP"))),
            ("externalIPs", bool(spec.get("externalIPs"))),
            ("SessionAffinity", spec["sessionAffinity"] != "None"),
        )
        if given
    ]


def _port(port: Object) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node_port}/{port['protocol']}"


def _external_addresses(obj: Object) -> str:
    spec = obj["spec"]
    kind, external = spec.get("type"), spec.get("externalIPs") or []
    if kind in (CLUSTER_IP, NODE_PORT):
        return ",".join(external) or "<none>"
    if kind == LOAD_BALANCER:
        ingresses = obj["status"]["loadBalancer"].get("ingress") or ()
        balancers = {ingress.get("ip") or ingress.get("hostname") for ingress in ingresses} - {None}
        return ",".join([*sorted(balancers), *external]) or "<pending>"
    return str(spec.get("externalName", "")) if kind == EXTERNAL_NAME else "<unknown>"


SERVICE = ServiceKind()
