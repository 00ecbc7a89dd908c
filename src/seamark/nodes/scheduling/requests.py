"""The resources that Pods request and nodes have, in whole thousandths so that sums are exact and fast.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from seamark.kinds.values.quantity import measure
from seamark.rules.objects.pod import Container, Pod, Quantity

PODS = "pods"
ONE = 1000  # thousandths

HostPort = tuple[int, str, str]  # port, protocol, address ("" is all of them)


@lru_cache(maxsize=4096)
def thousandths(quantity: Quantity) -> int:
    """Rounded up, so that the smallest request still counts."""
    much = measure(str(quantity)) * 1000
    return int(much.to_integral_value("ROUND_CEILING"))


def requested(pod: Pod) -> dict[str, int]:
    """What a Pod needs of each resource, including one of the node's ``pods``.

    Containers run together with all sidecars; each other init container runs only with the sidecars before it.
    """
    spec = pod.spec
    total = _sum(spec.containers)
    if spec.init_containers:
        sidecars: dict[str, int] = {}
        peak: dict[str, int] = {}
        for container in spec.init_containers:
            mine = _sum((container,))
            if container.sidecar:
                _add(sidecars, mine)
                _raise(peak, sidecars)
            else:
                beside = dict(sidecars)
                _add(beside, mine)
                _raise(peak, beside)
        _add(total, sidecars)
        _raise(total, peak)
    # Requests of the Pod as a whole replace the sums of its containers.
    for name, quantity in spec.resources.requests.items():
        total[name] = thousandths(quantity)
    for name, quantity in spec.overhead.items():
        total[name] = total.get(name, 0) + thousandths(quantity)
    total[PODS] = ONE
    return total


def _sum(containers: tuple[Container, ...]) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in containers:
        for name, quantity in container.resources.requests.items():
            total[name] = total.get(name, 0) + thousandths(quantity)
    return total


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, much in more.items():
        total[name] = total.get(name, 0) + much


def _raise(total: dict[str, int], least: Mapping[str, int]) -> None:
    for name, much in least.items():
        if much > total.get(name, 0):
            total[name] = much


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The ports of the node that a Pod uses."""
    return tuple(
        (port.host_port, port.protocol, "" if port.host_ip in ("0.0.0.0", "::") else port.host_ip)
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for port in container.ports
        if port.host_port
    )


def collide(one: HostPort, other: HostPort) -> bool:
    """Whether two host ports cannot be used on the same node."""
    return one[:2] == other[:2] and ("" in (one[2], other[2]) or one[2] == other[2])
