"""What a Pod's containers ask for: rounding, sums, and the quality-of-service class that follows."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from seamark.errors import Object
from seamark.kinds.quantity import number, render, total

_COMPUTE = ("cpu", "memory")


def round_up(resources: dict[str, str]) -> None:
    """Kubernetes keeps thousandths; finer amounts are rounded up."""
    for name, quantity in resources.items():
        if quantity[-1] in "nu":
            resources[name] = render(number(quantity), binary=False)


def quality_of_service(spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort."""
    level = spec.get("resources")
    if level and (level.get("requests") or level.get("limits")):
        askers = [level]
    else:
        askers = [c.get("resources") or {} for c in _all_containers(spec)]
        if not any(askers):
            return "BestEffort"
    requests: dict[str, Decimal] = {}
    limits: dict[str, Decimal] = {}
    guaranteed = True
    for resources in askers:
        limited = set()
        for field, sums in (("requests", requests), ("limits", limits)):
            for name, quantity in (resources.get(field) or {}).items():
                if name in _COMPUTE and (amount := number(quantity)) > 0:
                    sums[name] = sums.get(name, Decimal(0)) + amount
                    if field == "limits":
                        limited.add(name)
        guaranteed = guaranteed and len(limited) == len(_COMPUTE)
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _all_containers(spec: Object) -> Iterator[Object]:
    yield from spec.get("containers") or ()
    yield from spec.get("initContainers") or ()


def default_pod_resources(spec: Object) -> None:
    """Fill in what the Pod as a whole asks for, where its author began to say it.

    Huge pages cannot be overcommitted, so their limit is what the containers may use; requests follow the containers'
    requests, then the Pod's own limits; and limits follow the containers' where every one of them has one.
    """
    level = spec["resources"]
    limits, requests = dict(level.get("limits") or {}), dict(level.get("requests") or {})
    had_limits = bool(limits)
    if not (limits or requests):
        return
    container_limits = _sum_of_containers(spec, "limits")
    for name, quantity in container_limits.items():
        if name.startswith("hugepages-") and name not in requests:
            limits.setdefault(name, quantity)
    if limits:
        for name, quantity in _sum_of_containers(spec, "requests").items():
            if name in _COMPUTE:
                requests.setdefault(name, quantity)
        for name, quantity in limits.items():
            if name in _COMPUTE or name.startswith("hugepages-"):
                requests.setdefault(name, quantity)
    if not had_limits:
        for name, quantity in container_limits.items():
            if name in _COMPUTE and all(
                name in ((container.get("resources") or {}).get("limits") or {}) for container in _all_containers(spec)
            ):
                limits.setdefault(name, quantity)
    if requests:
        level["requests"] = requests
    if limits:
        level["limits"] = limits


def _sum_of_containers(spec: Object, field: str) -> dict[str, str]:
    """What all containers need at once, or the neediest init container if that is more.

    Init containers that restart for ever (sidecars) run beside the containers and beside later init containers.
    """
    running: dict[str, list[str]] = {}
    for container in spec.get("containers") or ():
        for name, quantity in _of(container, field).items():
            running.setdefault(name, []).append(quantity)
    sidecars: dict[str, list[str]] = {}
    peaks: dict[str, str] = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            for name, quantity in _of(container, field).items():
                sidecars.setdefault(name, []).append(quantity)
            continue
        for name, quantity in _of(container, field).items():
            together = total([quantity, *sidecars.get(name, ())])
            if name not in peaks or number(together) > number(peaks[name]):
                peaks[name] = together
    sums = {name: total([*running.get(name, ()), *sidecars.get(name, ())]) for name in {**running, **sidecars}}
    for name, peak in peaks.items():
        if name not in sums or number(peak) > number(sums[name]):
            sums[name] = peak
    return sums


def _of(container: Object, field: str) -> dict[str, str]:
    return (container.get("resources") or {}).get(field) or {}
