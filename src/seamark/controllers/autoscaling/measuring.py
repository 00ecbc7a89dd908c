"""Reads what the Pods of a workload use, from ``metrics.k8s.io``, and asks :mod:`sizing` what follows from it."""

from __future__ import annotations

from fractions import Fraction

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.controllers.autoscaling import custom_metrics, sizing
from seamark.controllers.autoscaling.autoscaler import POD_METRICS, Direction, PodMetrics
from seamark.controllers.autoscaling.proposals import MetricError, Proposal, Workload
from seamark.controllers.autoscaling.sizing import Goal, Reading, Size, SizingError, Tolerance, thousandths
from seamark.errors import Object
from seamark.kinds.autoscaling.metrics import FIELDS
from seamark.kinds.table import Kinds
from seamark.kinds.values import times
from seamark.kinds.values.quantity import amount, canonical


def tolerance_of(down: Direction, up: Direction) -> Tolerance:
    def part(rules: Direction) -> Fraction:
        return sizing.TOLERANCE if rules.tolerance is None else Fraction(amount(rules.tolerance))

    return Tolerance(part(down), part(up))


async def propose(cluster: Cluster, kinds: Kinds, metric: Object, workload: Workload, now: float) -> Proposal:
    """What one metric of an autoscaler asks for; raises MetricError."""
    if metric["type"] in ("Resource", "ContainerResource"):
        return await _resource(cluster, metric, workload, now)
    return await custom_metrics.propose(cluster, kinds, metric, workload, now)


async def _resource(cluster: Cluster, metric: Object, workload: Workload, now: float) -> Proposal:
    kind = metric["type"]
    source: Object = metric[FIELDS[kind]]
    name, container, target = source["name"], source.get("container", ""), source["target"]
    percent = target.get("averageUtilization") if target.get("averageValue") is None else None
    goal = Goal(percent=percent) if percent else Goal(thousandths(target.get("averageValue") or "0"))
    try:
        readings = await _readings(cluster, workload, name, container)
        found = sizing.size(
            workload.current,
            workload.pods,
            readings,
            goal,
            resource=name,
            now=now,
            tolerance=workload.tolerance,
            container=container,
        )
    except SizingError as error:
        message = f"failed to get {name} {'utilization' if percent else 'usage'}: {error}"
        outer = f"failed to get {name} {'container' if container else 'resource'} metric value"
        raise MetricError(f"FailedGet{kind}Metric", message, outer) from None
    named = f"{name} resource utilization (percentage of request)" if percent else f"{name} resource"
    return Proposal(found.replicas, named, _status(kind, name, container, found))


def _status(kind: str, name: str, container: str, found: Size) -> Object:
    current: Object = {"averageValue": canonical(f"{found.average}m")}
    if found.percent is not None:
        current["averageUtilization"] = found.percent
    measured: Object = {"name": name, "current": current}
    if container:
        measured["container"] = container
    return {"type": kind, FIELDS[kind]: measured}


async def _readings(cluster: Cluster, workload: Workload, resource: str, container: str) -> dict[str, Reading]:
    trouble = f"unable to get metrics for resource {resource}"
    try:
        listed = await cluster.list(POD_METRICS, namespace=workload.namespace, labels=workload.selector, as_=PodMetrics)
    except errors.NotFound:
        raise SizingError(
            f"{trouble}: unable to fetch metrics from resource metrics API: the server could not find the requested "
            "resource (get pods.metrics.k8s.io)"
        ) from None
    except errors.ApiError as error:
        raise SizingError(f"{trouble}: unable to fetch metrics from resource metrics API: {error}") from error
    if not listed.items:
        raise SizingError(f"{trouble}: no metrics returned from resource metrics API")
    readings: dict[str, Reading] = {}
    for each in listed.items:
        counted = [c for c in each.containers if container in ("", c.name)]
        if counted and all(resource in c.usage for c in counted):
            used = sum(thousandths(c.usage[resource]) for c in counted)
            at = times.parse(each.timestamp) if each.timestamp else 0.0
            readings[each.metadata.name] = Reading(used, at, times.parse_duration(each.window))
    return readings
