"""Metrics of Pods, of other objects, and from outside of the cluster, which aggregated servers tell.

Pods and objects are asked for in ``custom.metrics.k8s.io``, everything else in ``external.metrics.k8s.io``.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.controllers.autoscaling import sizing
from seamark.controllers.autoscaling.autoscaler import MetricValue
from seamark.controllers.autoscaling.proposals import MetricError, Proposal, Workload
from seamark.controllers.autoscaling.sizing import Goal, Reading, SizingError, thousandths
from seamark.errors import Object
from seamark.kinds.language import go_names
from seamark.kinds.resource import NAMESPACES, Resource
from seamark.kinds.table import Kinds
from seamark.kinds.values import times
from seamark.kinds.values.label_selector import readable
from seamark.kinds.values.quantity import canonical

CUSTOM, EXTERNAL = "custom.metrics.k8s.io", "external.metrics.k8s.io"
VERSIONS = {CUSTOM: ("v1beta2", "v1beta1"), EXTERNAL: ("v1beta1",)}
_UNSERVED = "the server could not find the requested resource"


async def propose(cluster: Cluster, kinds: Kinds, metric: Object, workload: Workload, now: float) -> Proposal:
    """What a metric of the type Pods, Object or External asks for; raises MetricError."""
    kind = metric["type"]
    source: Object = metric[kind.lower()]
    try:
        if kind == "Pods":
            return await _of_pods(cluster, source, workload, now)
        if kind == "Object":
            return await _of_object(cluster, kinds, source, workload)
        return await _external(cluster, source, workload)
    except SizingError as error:
        outer = f"failed to get {kind.lower()} metric value"
        raise MetricError(f"FailedGet{kind}Metric", str(error), outer) from None


async def _of_pods(cluster: Cluster, source: Object, workload: Workload, now: float) -> Proposal:
    name = source["metric"]["name"]
    try:
        values = await _values(
            cluster, CUSTOM, f"pods/*/{name}", workload.namespace, workload.selector, _selector(source)
        )
    except SizingError as error:
        raise SizingError(f"unable to get metric {name}: {error}") from None
    readings = {
        each.described_object["name"]: Reading(
            thousandths(each.value), times.parse(each.timestamp) if each.timestamp else 0.0, each.window_seconds or 60
        )
        for each in values
    }
    goal = Goal(thousandths(source["target"]["averageValue"]))
    found = sizing.size(
        workload.current, workload.pods, readings, goal, resource="", now=now, tolerance=workload.tolerance
    )
    current = {"averageValue": canonical(f"{found.average}m")}
    return Proposal(
        found.replicas,
        f"pods metric {name}",
        {"type": "Pods", "pods": {"metric": source["metric"], "current": current}},
    )


async def _of_object(cluster: Cluster, kinds: Kinds, source: Object, workload: Workload) -> Proposal:
    name, about = source["metric"]["name"], source["describedObject"]
    try:
        kind = kinds.by_kind(about.get("apiVersion", ""), about["kind"])
        if kind is None:
            raise SizingError(f'no matches for kind "{about["kind"]}" in version "{about.get("apiVersion", "")}"')
        resource = kind.resource
        namespace, what = workload.namespace, f"{resource.qualified}/{about['name']}"
        if resource is NAMESPACES:
            namespace, what = about["name"], "metrics"
        elif not resource.namespaced:
            namespace = ""
        values = await _values(cluster, CUSTOM, f"{what}/{name}", namespace, "", _selector(source))
        used = thousandths(values[0].value)
    except SizingError as error:
        where = f"{about['kind']} on {workload.namespace} {about['name']}"
        raise SizingError(f"unable to get metric {name}: {where}/{error}") from None
    replicas, current = _judged(source["target"], used, workload)
    status = {"metric": source["metric"], "describedObject": about, "current": current}
    return Proposal(replicas, f"{about['kind']} metric {name}", {"type": "Object", "object": status})


async def _external(cluster: Cluster, source: Object, workload: Workload) -> Proposal:
    name, shown = source["metric"]["name"], go_names.label_selector(source["metric"].get("selector"))
    try:
        values = await _values(cluster, EXTERNAL, name, workload.namespace, _selector(source))
    except SizingError as error:
        raise SizingError(f"unable to get external metric {workload.namespace}/{name}/{shown}: {error}") from None
    replicas, current = _judged(source["target"], sum(thousandths(each.value) for each in values), workload)
    status = {"metric": source["metric"], "current": current}
    return Proposal(replicas, f"external metric {name}({shown})", {"type": "External", "external": status})


def _judged(target: Object, used: int, workload: Workload) -> tuple[int, Object]:
    """How many replicas a value that is not of single Pods asks for, and how the status shows it."""
    if target.get("averageValue") is not None:
        wanted = thousandths(target["averageValue"])
        replicas = sizing.shared(workload.counted, used, wanted, workload.tolerance)
        average = -(-used // workload.counted) if workload.counted else 0
        return replicas, {"averageValue": canonical(f"{average}m")}
    ratio = Fraction(used, thousandths(target["value"]))
    replicas = sizing.by_ratio(workload.current, workload.pods, ratio, workload.tolerance)
    return replicas, {"value": canonical(f"{used}m")}


def _selector(source: Object) -> str:
    """The selector that a metric has, as the parameter of a request."""
    selector = source["metric"].get("selector")
    return str(readable(selector) or "") if selector else ""


async def _values(
    cluster: Cluster, group: str, what: str, namespace: str, labels: str, metric_labels: str = ""
) -> Sequence[MetricValue]:
    """The values of a metric, at least one; raises SizingError."""
    word = group.partition(".")[0]
    trouble = f"unable to fetch metrics from {word} metrics API"
    for version in VERSIONS[group]:
        resource = Resource(group, version, what, "MetricValue", namespaced=bool(namespace))
        try:
            listed = await cluster.list(
                resource, namespace=namespace, labels=labels, metric_labels=metric_labels, as_=MetricValue
            )
        except errors.NotFound as error:
            if error.message == _UNSERVED:
                continue
            raise SizingError(f"{trouble}: {error}") from None
        except errors.ApiError as error:
            raise SizingError(f"{trouble}: {error}") from error
        if not listed.items:
            raise SizingError(f"no metrics returned from {word} metrics API")
        return listed.items
    raise SizingError(f"{trouble}: no {word} metrics API ({group}) registered")
