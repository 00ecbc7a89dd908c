"""Endpoints and EndpointSlices that are orphaned, duplicated, stale or foreign (pure).

Deleting is proposed only where no traffic depends on the object; the rest is for a person to decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import msgspec

from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, Resource
from seamark.kinds.wellknown import (
    SERVICE_NAME_LABEL,
    SLICE_MANAGED_BY_LABEL,
)
from seamark.rules import mirroring
from seamark.rules.mirroring import Obstacle
from seamark.rules.slices import objects as slice_objects
from seamark.why.case import Case, listed
from seamark.why.checks.written import (
    edited_by,
    endpoints_content,
    in_endpoints,
    in_slices,
    over_capacity,
    slices_content,
)
from seamark.why.views import Endpoints, EndpointSlice, Key, Metadata, Service
from seamark.why.world import World


class Defect(Enum):
    ORPHANED = "orphaned"  # its Service does not exist
    DUPLICATED = "duplicated"  # another object lists the same
    STALE = "stale"  # it lists addresses that are out of date
    FOREIGN = "foreign"  # no controller of the cluster manages it


class Problem(msgspec.Struct, frozen=True):
    """One object that is not as it should be; ``remedy`` is "delete" where that is safe, else what a person may do."""

    defect: Defect
    resource: Resource
    metadata: Metadata
    why: str
    remedy: str

    @property
    def key(self) -> Key:
        return self.metadata.namespace, self.metadata.name

    @property
    def removable(self) -> bool:
        return self.remedy == DELETE


DELETE = "delete"
_ORDER = {defect: position for position, defect in enumerate(Defect)}


def audit(world: World) -> list[Problem]:
    """Everything wrong with what is written about Services, gravest first."""
    written = (*_endpoints_problems(world), *_slices_problems(world))
    # What was read of other namespaces, to explain a Service of this one, is too little to judge them by.
    found = [each for each in written if world.seen.namespace in ("", each.metadata.namespace)]
    unique = {(each.resource.kind, each.key): each for each in sorted(found, key=_rank, reverse=True)}
    return sorted(unique.values(), key=_rank)


def _rank(problem: Problem) -> tuple[int, str, str, str]:
    return _ORDER[problem.defect], problem.metadata.namespace, problem.resource.kind, problem.metadata.name


# --- Endpoints -------------------------------------------------------------------------------------


def _endpoints_problems(world: World) -> Iterator[Problem]:
    for endpoints in world.endpoints.values():
        service = world.services.get(endpoints.key)
        told = _endpoints_problem(world, endpoints, service)
        if told is not None:
            yield Problem(told[0], ENDPOINTS, endpoints.metadata, told[1], told[2])


def _endpoints_problem(world: World, endpoints: Endpoints, service: Service | None) -> tuple[Defect, str, str] | None:
    if service is None:
        if endpoints.leader_lock:
            return None
        return Defect.ORPHANED, f"there is no Service {endpoints.metadata.name}", DELETE
    if service.external:
        return Defect.STALE, "its Service is ExternalName and has no endpoints", DELETE
    if not service.managed:
        if endpoints.made_by_controller:
            return Defect.STALE, "the controller's, from before the Service's selector was removed", DELETE
        return None
    case = Case(world, service)
    wanted = in_endpoints(case)
    if over_capacity(case):
        return None
    differs = endpoints_content(endpoints).against(wanted)
    if not differs or slices_content(case.controller_slices).against(in_slices(case)):
        return None
    # The controller writes Endpoints again that a user edited and deleted.  Without a controller they would be missing.
    remedy = DELETE if edited_by(endpoints, wanted) else "see that the Endpoints controller runs"
    return Defect.STALE, f"disagrees with the EndpointSlices, which are right: {differs[0]}", remedy


# --- EndpointSlices --------------------------------------------------------------------------------


def _slices_problems(world: World) -> Iterator[Problem]:
    by_service: dict[Key, list[EndpointSlice]] = {}
    for each in world.seen.slices or ():
        if each.metadata.deletion_timestamp is None:
            by_service.setdefault((each.metadata.namespace, each.service_name), []).append(each)
    for key, slices in by_service.items():
        service = world.services.get(key)
        for each in slices:
            told = _slice_problem(world, each, service)
            if told is not None:
                yield Problem(told[0], ENDPOINT_SLICES, each.metadata, told[1], told[2])
        yield from _duplicates(slices)
        if service is not None and service.managed:
            yield from _outdated(Case(world, service))


def _slice_problem(world: World, each: EndpointSlice, service: Service | None) -> tuple[Defect, str, str] | None:
    known = not each.managed_by or slice_objects.ours(each) or mirroring.ours(each)
    if not each.service_name:
        return Defect.FOREIGN, "it names no Service, so it is not used", f"label it {SERVICE_NAME_LABEL}, or delete it"
    if service is None:
        remedy = DELETE if known else f"ask {each.managed_by}"
        return Defect.ORPHANED, f"there is no Service {each.service_name}", remedy
    if slice_objects.ours(each):
        return _controllers_slice(each, service)
    if mirroring.ours(each):
        return _mirrored_slice(service, world.endpoints.get(service.key))
    if not known:
        return Defect.FOREIGN, f"managed by {each.managed_by}, which is not one of the cluster's", "leave it to them"
    if service.managed:
        return (
            Defect.FOREIGN,
            "made by hand for a Service with a selector: it gets traffic beside the selected Pods",
            f"delete it, or label it {SLICE_MANAGED_BY_LABEL}",
        )
    return None


def _controllers_slice(each: EndpointSlice, service: Service) -> tuple[Defect, str, str] | None:
    if not service.managed:
        return Defect.STALE, "the controller's, from before the Service's selector was removed", DELETE
    if service.metadata.uid and each.metadata.owner_references and not slice_objects.owned(each, service):
        return Defect.STALE, "of an earlier Service with the same name", DELETE
    return None


def _mirrored_slice(service: Service, endpoints: Endpoints | None) -> tuple[Defect, str, str] | None:
    match mirroring.obstacle(service, endpoints):
        case None:
            return None
        case Obstacle.SELECTOR:
            return Defect.STALE, "mirrors Endpoints, but the Service has a selector now", DELETE
        case Obstacle.NO_ENDPOINTS:
            return Defect.STALE, "mirrors Endpoints that are gone", DELETE
        case _:
            return Defect.STALE, "mirrors Endpoints that are not to be mirrored any more", DELETE


def _outdated(case: Case) -> Iterator[Problem]:
    """Slices that list addresses of no selected Pod.  They are not deleted: without a controller that is an outage."""
    wanted = in_slices(case).entries
    for each in case.controller_slices:
        if _controllers_slice(each, case.service) is not None:
            continue
        dead = sorted({address for (address, pod) in slices_content([each]).entries if (address, pod) not in wanted})
        if dead:
            yield Problem(
                Defect.STALE,
                ENDPOINT_SLICES,
                each.metadata,
                f"lists {listed(dead)}, which no selected Pod has",
                "see that the EndpointSlice controller runs",
            )


def _duplicates(slices: list[EndpointSlice]) -> Iterator[Problem]:
    """Slices of one Service that are redundant: another one offers all their addresses on the same ports."""
    for each in slices:
        mine = _offer(each)
        for other in slices:
            if other is each or not mine or not mine <= _offer(other) or not _yields(each, other):
                continue
            same = each.managed_by == other.managed_by and bool(each.managed_by)
            yield Problem(
                Defect.DUPLICATED,
                ENDPOINT_SLICES,
                each.metadata,
                f"everything in it is also in {other.metadata.name}",
                DELETE if same else f"keep one of the two ({each.managed_by or 'hand-made'} and {_maker(other)})",
            )
            break


def _offer(each: EndpointSlice) -> frozenset[tuple[str, str, int]]:
    ports = [(port.name or "", port.port or 0) for port in each.ports or ()]
    return frozenset((address, name, number) for address in each.all_addresses() for name, number in ports)


def _yields(each: EndpointSlice, other: EndpointSlice) -> bool:
    """Whether ``each`` is the one to delete: the younger of two equal ones, or the one that the other contains."""
    if _offer(each) != _offer(other):
        return True

    def age(endpoint_slice: EndpointSlice) -> tuple[str, str]:
        return endpoint_slice.metadata.creation_timestamp or "", endpoint_slice.metadata.name

    return age(each) > age(other)


def _maker(each: EndpointSlice) -> str:
    return each.managed_by or "hand-made"
