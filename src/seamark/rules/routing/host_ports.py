"""The ports of this node that its Pods ask for by ``hostPort``, as routes: each leads to one port of one Pod (pure)."""

from __future__ import annotations

from collections.abc import Iterator

from seamark.kinds.values.addresses import Family, canonical, family
from seamark.rules.objects.pod import Pod
from seamark.rules.routing.model import Backend, Choice, Frontend, Kind, Route
from seamark.rules.routing.surroundings import ThisNode

HOST_PORTS = "host ports"  # what stands in the place of a Service's name, for those of all Pods together
# The kernel leads no connection to ::1 elsewhere.
_LOOPBACK: dict[Family, tuple[str, ...]] = {"IPv4": ("127.0.0.1",), "IPv6": ()}
_EVERY: dict[str, Family] = {"0.0.0.0": "IPv4", "::": "IPv6"}


def asks(pod: Pod, node: ThisNode) -> bool:
    """Whether it is a Pod of this node with host ports, a network of its own, and not over."""
    if pod.spec.node_name != node.name or pod.spec.host_network or pod.finished:
        return False
    return any(port.host_port for each in (*pod.spec.containers, *pod.spec.init_containers) for port in each.ports)


def routes_of(pod: Pod, node: ThisNode) -> tuple[Route, ...]:
    """What such a Pod asks for, once it has addresses."""
    return tuple(_routes(pod, node))


def _routes(pod: Pod, node: ThisNode) -> Iterator[Route]:
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        for port in container.ports:
            if not port.host_port:
                continue
            for address in pod.ips:
                which = family(address)
                places = _places(port.host_ip, which, node) if which else ()
                if which and places:
                    here = Choice((Backend(canonical(address), port.container_port, node.name, local=True),))
                    yield Route(
                        HOST_PORTS,
                        f"{pod.metadata.key}:{port.host_port}",
                        port.protocol,
                        which,
                        tuple(Frontend(Kind.EXTERNAL_IP, each, port.protocol, port.host_port) for each in places),
                        here,
                        here,
                        external="Local",
                    )


def _places(asked: str, which: Family, node: ThisNode) -> tuple[str, ...]:
    """The addresses of this family at which a host port answers: the one it asks for, or all of the node's."""
    if asked and asked not in _EVERY:
        return (canonical(asked),) if family(asked) == which else ()
    if _EVERY.get(asked, which) != which:
        return ()
    return (*(each for each in node.addresses if family(each) == which), *_LOOPBACK[which])
