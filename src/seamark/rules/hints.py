"""Which zones or nodes should use an endpoint (pure).

A Service can ask for hints in two ways.  With ``spec.trafficDistribution`` every endpoint serves its own zone (or
node).  With the older topology annotation endpoints are shared out among zones by their CPUs, so that no zone is
overloaded.  The annotation wins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Literal

import msgspec

from seamark.kinds.values.quantity import QuantityError, measure
from seamark.kinds.wellknown import (
    OLD_TOPOLOGY_ANNOTATION,
    TOPOLOGY_ANNOTATION,
    TRAFFIC_DISTRIBUTIONS,
)
from seamark.rules.objects.endpointslice import Endpoint, Hints, HintTarget
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Quantity
from seamark.rules.objects.service import Service

OVERLOAD = 0.2  # how much more than its share of the traffic an endpoint may get
_RELIEF = 1 / (1 + OVERLOAD)

Mode = Literal["", "topology", "PreferClose", "PreferSameZone", "PreferSameNode"]
Zones = dict[str, int]


def mode(service: Service) -> Mode:
    """How this Service wants its hints; "" for not at all."""
    annotations = service.metadata.annotations
    if annotations.get(OLD_TOPOLOGY_ANNOTATION, annotations.get(TOPOLOGY_ANNOTATION)) in ("Auto", "auto"):
        return "topology"
    match service.spec.traffic_distribution:
        case "PreferClose" | "PreferSameZone" | "PreferSameNode" as wanted:
            return wanted
        case _:
            return ""


def own_hints(wanted: Mode, endpoint: Endpoint) -> Hints | None:
    """The hints that ``trafficDistribution`` gives an endpoint; one that is not ready gets none."""
    if wanted not in TRAFFIC_DISTRIBUTIONS or not endpoint.marked_ready:
        return None
    zones = (HintTarget(endpoint.zone),) if endpoint.zone else None
    nodes = (HintTarget(endpoint.node_name),) if wanted == "PreferSameNode" and endpoint.node_name else None
    return Hints(zones, nodes) if zones or nodes else None


# --- CPUs by zone ----------------------------------------------------------------------------------


class ZoneCpus:
    """The CPUs of each zone, kept node by node: those of nodes that are ready, without the control plane."""

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        self.unknown: dict[str, Node] = {}  # nodes whose zone or CPUs are not known
        self.cpus: dict[str, int] = {}  # thousandths by zone
        self._known: dict[str, tuple[str, int]] = {}  # of each node, its zone and CPUs
        for node in nodes:
            self.put(node.metadata.name, node)

    def put(self, name: str, node: Node | None) -> None:
        """A node is like this now; None: it is gone."""
        self.unknown.pop(name, None)
        zone, amount = self._known.pop(name, ("", 0))
        if zone:
            self.cpus[zone] -= amount
            if not self.cpus[zone]:
                del self.cpus[zone]
        if node is None or node.control_plane or not node.ready:
            return
        amount = _milli_cpus(node.status.allocatable.get("cpu"))
        if node.zone and amount:
            self._known[name] = (node.zone, amount)
            self.cpus[node.zone] = self.cpus.get(node.zone, 0) + amount
        else:
            self.unknown[name] = node

    @property
    def shares(self) -> dict[str, float] | None:
        """Each zone's part of the CPUs; None if they cannot be shared by: a node is unknown, or there is one zone."""
        if self.unknown or len(self.cpus) < 2:
            return None
        total = sum(self.cpus.values())
        return {zone: amount / total for zone, amount in self.cpus.items()}


def _milli_cpus(quantity: Quantity | None) -> int:
    """Thousandths of a CPU; 0 for a text that is no quantity."""
    try:
        return math.ceil(measure(str(quantity or "0")) * 1000)
    except QuantityError:
        return 0


# --- sharing out -----------------------------------------------------------------------------------


class Withheld(Enum):
    """Why there are no hints, in the words of Kubernetes' Event."""

    NODES_UNKNOWN = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
    TOO_FEW = "Insufficient number of endpoints"
    OVERLOAD = "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold"
    ZONE_UNKNOWN = "One or more endpoints do not have a zone specified"
    NONE_GIVEN = "No hints allocated for zones"


class Refusal(msgspec.Struct, frozen=True):
    """Why there are no hints; ``needed`` is how many endpoints there would have to be, where that is the reason."""

    reason: Withheld
    tally: str = ""
    needed: int = 0

    @property
    def message(self) -> str:
        return f"{self.reason.value} {self.tally}" if self.tally else self.reason.value


class Need(msgspec.Struct, frozen=True, gc=False):
    """How many endpoints a zone must have, may have, and would have if endpoints could be split."""

    least: int
    most: int
    ideal: float


def needs(shares: Mapping[str, float] | None, count: int) -> dict[str, Need] | Refusal:
    """What each zone needs of ``count`` ready endpoints."""
    if shares is None:
        return Refusal(Withheld.NODES_UNKNOWN)
    tally = f"({count} endpoints, {len(shares)} zones)"
    if len(shares) > count:
        return Refusal(Withheld.TOO_FEW, tally, len(shares))
    least = {zone: math.ceil(share * count * _RELIEF) for zone, share in shares.items()}
    spare = count - sum(least.values())
    if spare < 0:
        return Refusal(Withheld.OVERLOAD, tally, sum(least.values()))
    return {
        zone: Need(least[zone], least[zone] + spare, max(share * count, float(least[zone])))
        for zone, share in shares.items()
    }


def overloaded(given: Mapping[str, int], shares: Mapping[str, float] | None) -> bool:
    """Whether a zone has too few of the endpoints that were shared out earlier."""
    if not given:
        return False
    total = sum(given.values())
    if not shares:
        return True
    return any(given.get(zone, 0) < math.ceil(total * share * _RELIEF) for zone, share in shares.items())


class SharedOut(msgspec.Struct, frozen=True):
    """New contents of the slices that need them, by position, and how many endpoints each zone gets."""

    contents: dict[int, list[Endpoint]]
    given: Zones


def share_out(
    slices: Sequence[Sequence[Endpoint]], written: Sequence[bool], shares: Mapping[str, float] | None
) -> SharedOut | Refusal:
    """Give every ready endpoint a zone.

    ``written`` marks the slices that are written in any case.  The others keep their hints if those still fit, so that
    one change does not rewrite every slice.
    """
    count = sum(endpoint.marked_ready for endpoints in slices for endpoint in endpoints)
    wanted = needs(shares, count)
    if isinstance(wanted, Refusal):
        return wanted
    given: Zones = {}
    open_slices = [position for position, must in enumerate(written) if must]
    for position, must in enumerate(written):
        if must:
            continue
        kept = _kept(slices[position], given, wanted)
        if kept is None:
            open_slices.append(position)
        else:
            for zone, number in kept.items():
                given[zone] = given.get(zone, 0) + number
    for position in open_slices:
        for endpoint in slices[position]:
            if endpoint.marked_ready:
                if not endpoint.zone:
                    return Refusal(Withheld.ZONE_UNKNOWN)
                given[endpoint.zone] = given.get(endpoint.zone, 0) + 1
    giving, receiving = _transfers(wanted, given)
    contents: dict[int, list[Endpoint]] = {}
    for position in open_slices:
        contents[position] = [_assigned(endpoint, giving, receiving, given) for endpoint in slices[position]]
    if not given:
        return Refusal(Withheld.NONE_GIVEN)
    return SharedOut(contents, given)


def stripped(endpoints: Iterable[Endpoint]) -> list[Endpoint]:
    """The endpoints without any hints."""
    return [msgspec.structs.replace(e, hints=None) if e.hints is not None else e for e in endpoints]


def _kept(endpoints: Sequence[Endpoint], given: Mapping[str, int], wanted: Mapping[str, Need]) -> Zones | None:
    """How many endpoints each zone gets by the hints that a slice has; None if those hints do not fit any more."""
    found: Zones = {}
    for endpoint in endpoints:
        if not endpoint.marked_ready:
            continue
        if endpoint.hints is None or not endpoint.hints.for_zones:
            return None
        for target in endpoint.hints.for_zones:
            if target.name not in wanted:
                return None
            found[target.name] = found.get(target.name, 0) + 1
    if any(number + given.get(zone, 0) > wanted[zone].most for zone, number in found.items()):
        return None
    return found


def _transfers(wanted: Mapping[str, Need], given: Mapping[str, int]) -> tuple[Zones, Zones]:
    """How many endpoints each zone gives away, and how many each zone receives.

    One endpoint at a time goes from the largest surplus to the largest lack, until one of the two is less than half an
    endpoint, or both are less than a whole one.
    """
    surplus = {
        zone: given.get(zone, 0) - need.ideal for zone, need in wanted.items() if given.get(zone, 0) > need.ideal
    }
    lack = {zone: need.ideal - given.get(zone, 0) for zone, need in wanted.items() if given.get(zone, 0) < need.ideal}
    giving: Zones = {}
    receiving: Zones = {}
    while surplus and lack:
        richest = max(surplus, key=lambda zone: (surplus[zone], zone))
        poorest = max(lack, key=lambda zone: (lack[zone], zone))
        low, high = sorted((surplus[richest], lack[poorest]))
        if low < 0.5 or high < 1.0:
            break
        giving[richest] = giving.get(richest, 0) + 1
        receiving[poorest] = receiving.get(poorest, 0) + 1
        surplus[richest] -= 1
        lack[poorest] -= 1
    return giving, receiving


def _assigned(endpoint: Endpoint, giving: Zones, receiving: Zones, given: Zones) -> Endpoint:
    """The endpoint with its hint: for its own zone, or for a zone that receives while its own gives."""
    if not endpoint.marked_ready:
        return msgspec.structs.replace(endpoint, hints=None) if endpoint.hints is not None else endpoint
    zone = own = endpoint.zone or ""
    if giving.get(own, 0) > 0 and receiving:
        zone = min(receiving)
        for tally, key in ((giving, own), (receiving, zone)):
            tally[key] -= 1
            if not tally[key]:
                del tally[key]
        given[own] -= 1
        given[zone] = given.get(zone, 0) + 1
    hints = Hints(for_zones=(HintTarget(zone),))
    return msgspec.structs.replace(endpoint, hints=hints) if endpoint.hints != hints else endpoint
