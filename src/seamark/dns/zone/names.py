"""The grammar of names in a zone.  The legal shapes, without the zone:

    (nothing)                              the zone itself, and the names between it and a namespace, without records:
    svc, pod
    NAMESPACE.svc, NAMESPACE.pod
    SERVICE.NAMESPACE.svc                  a Service
    ENDPOINT.SERVICE.NAMESPACE.svc         one endpoint of a Service, by hostname or dashed address
    _PORT._PROTOCOL.SERVICE.NAMESPACE.svc  a named port; the underscores are optional, as in CoreDNS
    [x.[x.]]1-2-3-4.NAMESPACE.pod          a Pod by its address; up to two more labels are accepted and ignored
    dns-version                            the version of the specification, as text
    ns.dns                                 this server
    4.3.2.1 below in-addr.arpa             an address, for PTR records; likewise below ip6.arpa

Everything else is :class:`Nowhere`.  Callers pass labels in lower case.
"""

from __future__ import annotations

import socket
from typing import Literal

import msgspec

Labels = tuple[str, ...]
Branch = Literal["svc", "pod"]

IPV4_REVERSE: Labels = ("in-addr", "arpa")
IPV6_REVERSE: Labels = ("ip6", "arpa")


class Apex(msgspec.Struct, frozen=True):
    """The zone's own name."""


class BranchName(msgspec.Struct, frozen=True):
    """``svc`` or ``pod``: always exists, without records."""

    branch: Branch


class NamespaceName(msgspec.Struct, frozen=True):
    """Exists if the namespace does, without records."""

    branch: Branch
    namespace: str


class ServiceName(msgspec.Struct, frozen=True):
    """A Service, one endpoint of it, or a port; an empty ``port`` or ``protocol`` means any."""

    namespace: str
    service: str
    endpoint: str = ""
    port: str = ""
    protocol: str = ""


class PodName(msgspec.Struct, frozen=True):
    namespace: str
    pod: str

    @property
    def address(self) -> str:
        """The name with its dashes replaced; it may not be a valid address."""
        if self.pod.count("-") == 3 and "--" not in self.pod:
            return self.pod.replace("-", ".")
        return self.pod.replace("-", ":")


class VersionName(msgspec.Struct, frozen=True):
    """``dns-version``."""


class ServerName(msgspec.Struct, frozen=True):
    """``ns.dns``."""


class ReverseName(msgspec.Struct, frozen=True):
    """The reverse name of an address; ``address`` is packed, 4 or 16 bytes."""

    address: bytes


class Nowhere(msgspec.Struct, frozen=True):
    """No object can have this name."""

    why: str


Shape = Apex | BranchName | NamespaceName | ServiceName | PodName | VersionName | ServerName | ReverseName | Nowhere


def labels_of(name: str) -> Labels:
    """The lower-case labels of a name such as ``Web.default.svc``, with or without a final dot; no escapes."""
    bare = name.rstrip(".").lower()
    return tuple(bare.split(".")) if bare else ()


def within(name: Labels, zone: Labels) -> bool:
    """Whether a name is the zone itself or below it."""
    return not zone or name[-len(zone) :] == zone


def is_reverse(name: Labels) -> bool:
    """Whether a name is below (not equal to) ``in-addr.arpa`` or ``ip6.arpa``."""
    return len(name) > 2 and name[-2:] in (IPV4_REVERSE, IPV6_REVERSE)


def is_reverse_zone(zone: Labels) -> bool:
    return is_reverse(zone) or zone in (IPV4_REVERSE, IPV6_REVERSE)


def parse(name: Labels, zone: Labels) -> Shape:
    """What ``name``, which is within ``zone``, could be the name of."""
    inside = name[: len(name) - len(zone)]
    if not inside:
        return Apex()
    if inside == ("ns", "dns"):
        return ServerName()
    if inside == ("dns-version",):
        return VersionName()
    if inside in (("svc",), ("pod",)):
        return BranchName("svc" if inside == ("svc",) else "pod")
    if is_reverse(name):
        address = reverse_address(name)
        return ReverseName(address) if address else Nowhere("it is not the reverse of a whole address")
    *rest, branch = inside
    if branch == "svc":
        return _service(rest)
    if branch == "pod":
        return _pod(rest)
    return Nowhere(f"below the zone there are only svc and pod, not {branch}")


def _service(labels: list[str]) -> Shape:
    match labels:
        case [namespace]:
            return NamespaceName("svc", namespace)
        case [service, namespace]:
            return ServiceName(namespace, service)
        case [endpoint, service, namespace]:
            return ServiceName(namespace, service, endpoint=endpoint)
        case [port, protocol, service, namespace]:
            return ServiceName(namespace, service, port=port.removeprefix("_"), protocol=protocol.removeprefix("_"))
    return Nowhere("the name has more labels than a port, an endpoint or a Service")


def _pod(labels: list[str]) -> Shape:
    match labels:
        case [namespace]:
            return NamespaceName("pod", namespace)
        case [*more, pod, namespace] if len(more) <= 2:
            return Nowhere("a dot inside a label is no part of an address") if "." in pod else PodName(namespace, pod)
    return Nowhere("the name has more labels than a Pod")


def parse_address(text: str) -> bytes | None:
    """A literal address in packed form, or None; an IPv4-mapped IPv6 address counts as IPv4."""
    try:
        return socket.inet_pton(socket.AF_INET, text)
    except (OSError, ValueError):
        pass  # it may be an IPv6 address
    try:
        packed = socket.inet_pton(socket.AF_INET6, text)
    except (OSError, ValueError):
        return None
    return packed[12:] if packed.startswith(b"\0" * 10 + b"\xff\xff") else packed


def format_address(packed: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)


def reverse_address(name: Labels) -> bytes | None:
    """The address that a name below ``in-addr.arpa`` or ``ip6.arpa`` stands for.

    As in CoreDNS, IPv6 labels are read in groups of four from the right, and an incomplete group is ignored.
    """
    parts = name[-3::-1]
    if any("." in part for part in parts):
        return None
    if name[-2:] == IPV4_REVERSE:
        packed = parse_address(".".join(parts))
        return packed if packed is not None and len(packed) == 4 else None
    groups = ("".join(parts[at : at + 4]) for at in range(0, len(parts) - 3, 4))
    return parse_address(":".join(groups))


def reverse_labels(packed: bytes) -> Labels:
    """The reverse name of an address."""
    if len(packed) == 4:
        return (*(str(octet) for octet in reversed(packed)), *IPV4_REVERSE)
    return (*reversed(packed.hex()), *IPV6_REVERSE)


def dashed(address: str) -> str:
    """An address as a label: ``10-0-0-1``, ``fd00--1``.  A final dash gets a 0 appended: no label may end in a dash."""
    label = address.replace(".", "-").replace(":", "-")
    return label + "0" if label.endswith("-") else label
