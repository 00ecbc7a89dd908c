"""What the controllers wrote about a Service with a selector, compared with what they should have written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from seamark.kinds.values import times
from seamark.kinds.wellknown import ENDPOINTS_CAPACITY, OVER_CAPACITY_ANNOTATION, SERVICE_NAME_LABEL
from seamark.rules.membership import Port, parse_ip
from seamark.rules.objects import endpoints as objects
from seamark.rules.objects.endpointslice import Endpoint
from seamark.why import evidence
from seamark.why.case import Case, listed, plural
from seamark.why.codes import Code
from seamark.why.finding import Finding, Fix, Severity, delete, look
from seamark.why.views import Endpoints, EndpointSlice, Metadata

Entry = tuple[str, str]  # address, Pod
PortKey = tuple[str, int, str]  # name, number, protocol

_CONTROLLERS = ("kube-controller-manager", "endpoint", "seamark")
_START = Fix(
    "Start the controllers that write endpoints: kube-controller-manager, or `seamark controllers`; if they run, read"
    " in their logs why they cannot write.",
    (),
    (look("get", "pods", namespace="kube-system"), look("get", "leases", namespace="kube-system")),
)

_OF_PODS = ("status.podIPs", "status.podIP", "status.conditions[Ready].status", "spec.nodeName", "spec.containers")


class Content(msgspec.Struct, frozen=True):
    """Which addresses are listed, whether each is ready, and with which ports."""

    entries: dict[Entry, bool]
    ports: frozenset[PortKey]

    def against(self, wanted: Content) -> tuple[str, ...]:
        """How this differs from what it should be, in words; nothing if it does not."""
        told = []
        extra = self.entries.keys() - wanted.entries.keys()
        missing = wanted.entries.keys() - self.entries.keys()
        both = self.entries.keys() & wanted.entries.keys()
        turned = [entry for entry in both if self.entries[entry] != wanted.entries[entry]]
        if extra:
            told.append(f"{_addresses(extra)} listed but no selected Pod's")
        if missing:
            told.append(f"{_addresses(missing)} not listed")
        if turned:
            said = "ready" if self.entries[turned[0]] else "not ready"
            told.append(f"{_addresses(turned)} listed as {said}, which is out of date")
        if not told and both and self.ports != wanted.ports:
            told.append(f"ports listed are {_ports(self.ports)}, they should be {_ports(wanted.ports)}")
        return tuple(told)


def findings(case: Case) -> Iterator[Finding]:
    if not case.service.managed or not case.world.bookkept:
        return
    if case.service.metadata.deletion_timestamp is not None or case.namespace in case.world.terminating_namespaces:
        return
    wanted = in_slices(case)
    if case.world.nodes is None and (homeless := _without_node(case, wanted)):
        yield _perhaps_without_node(case, homeless)
        wanted = Content({e: ready for e, ready in wanted.entries.items() if e not in homeless}, wanted.ports)
    wrong = _slices(case, wanted)
    if wrong is not None:
        yield wrong
    yield from _endpoints(case, slices_right=wrong is None)


# --- what should be there --------------------------------------------------------------------------


def in_slices(case: Case) -> Content:
    entries: dict[Entry, bool] = {}
    offers: set[tuple[Port, ...]] = set()
    for family in case.service.families:
        for ports, endpoint in case.wanted_slices.wanted(family):
            offers.add(ports)
            for address in endpoint.addresses:
                entries[address, _pod(endpoint)] = endpoint.ready
    return Content(entries, frozenset((p.name, p.port, p.protocol) for ports in offers for p in ports))


def in_endpoints(case: Case) -> Content:
    return endpoints_content(case.wanted_endpoints)


def over_capacity(case: Case) -> bool:
    """Whether the Endpoints cannot hold all of its addresses."""
    return OVER_CAPACITY_ANNOTATION in case.wanted_endpoints.metadata.annotations


# --- slices ----------------------------------------------------------------------------------------


def _slices(case: Case, wanted: Content) -> Finding | None:
    own = case.controller_slices
    age = _age(case.service.metadata.creation_timestamp, case.world.now)
    if not own:
        return Finding(
            Code.CONTROLLER_NOT_RUNNING,
            Severity.ERROR,
            f"No EndpointSlices have been written for it{age}, though {_should(wanted)}: the EndpointSlice controller"
            " is not running, or cannot write.",
            _START,
            (*_seen(case), *_age_read(case)),
        )
    told = slices_content(own).against(wanted)
    if not told:
        return None
    hand = next((who for each in own if (who := foreign_hand(each.metadata))), "")
    endpoints = case.endpoints
    others_right = endpoints is not None and not endpoints_content(endpoints).against(in_endpoints(case))
    reached = {entry for entry, ready in slices_content(own).entries.items() if ready and wanted.entries.get(entry)}
    severity = Severity.WARNING if reached or not any(wanted.entries.values()) else Severity.ERROR
    if hand and others_right:
        return Finding(
            Code.ENDPOINT_SLICES_EDITED,
            severity,
            f"Its EndpointSlices were edited by hand ({hand}) and disagree with its Pods: {told[0]}.",
            Fix("Delete them; the controller writes them anew:", tuple(delete("endpointslice", s.key) for s in own)),
            (*_seen(case), *evidence.each(own, "metadata.managedFields")),
            facts=told[1:],
        )
    return Finding(
        Code.CONTROLLER_NOT_RUNNING,
        severity,
        f"Its EndpointSlices are stale: {told[0]}. The EndpointSlice controller is not running, or cannot write.",
        _START,
        _seen(case),
        facts=(*told[1:], *(f"{each.metadata.name} was last written {_written(each)}" for each in own[:3])),
    )


def _without_node(case: Case, wanted: Content) -> set[Entry]:
    """Pods that Endpoints list and slices do not: their Nodes may be missing, which cannot be seen."""
    if case.endpoints is None or not case.controller_slices:
        return set()
    listed_there = endpoints_content(case.endpoints).entries
    return {entry for entry in wanted.entries.keys() - slices_content(case.slices).entries if entry in listed_there}


def _perhaps_without_node(case: Case, entries: set[Entry]) -> Finding:
    return Finding(
        Code.NODE_MISSING,
        Severity.WARNING,
        f"{_addresses(entries)} in its Endpoints but not in its EndpointSlices: that is so when a Pod's node does not"
        " exist, and the nodes may not be listed.",
        Fix("Ask a user with the right to list nodes to run this.", certain=False),
        _seen(case),
        weight=len(entries),
    )


def slices_content(slices: Iterable[EndpointSlice]) -> Content:
    entries: dict[Entry, bool] = {}
    ports: set[PortKey] = set()
    for each in slices:
        for endpoint in each.endpoints or ():
            for address in endpoint.addresses:
                entries[address, _pod(endpoint)] = endpoint.ready
        if each.endpoints:
            ports |= {(p.name or "", p.port or 0, p.protocol or "TCP") for p in each.ports or ()}
    return Content(entries, frozenset(ports))


# --- Endpoints -------------------------------------------------------------------------------------


def _endpoints(case: Case, *, slices_right: bool) -> Iterator[Finding]:
    if case.world.seen.endpoints is None:
        return
    endpoints, wanted = case.endpoints, in_endpoints(case)
    if endpoints is None:
        others = any(e.made_by_controller for e in case.world.endpoints.values() if e.key[0] == case.namespace)
        # Where no Service has Endpoints, that controller has been switched off, which is fine.
        if slices_right and others:
            yield Finding(
                Code.ENDPOINTS_STALE,
                Severity.WARNING,
                "It has EndpointSlices but no Endpoints, so clients that still read Endpoints find nothing.",
                _START,
                _seen(case),
            )
        return
    if over_capacity(case) or OVER_CAPACITY_ANNOTATION in endpoints.metadata.annotations:
        yield _over_capacity(case, wanted)
        return
    told = endpoints_content(endpoints).against(wanted)
    if not told or not slices_right:
        return
    hand = edited_by(endpoints, wanted)
    if hand:
        yield Finding(
            Code.ENDPOINTS_EDITED,
            Severity.WARNING,
            f"Its Endpoints were edited by hand ({hand}) and disagree with its EndpointSlices: {told[0]}.",
            Fix("Delete them; the controller writes them anew:", (delete("endpoints", case.key),)),
            (*_seen(case), *evidence.of(endpoints, "metadata.managedFields", "metadata.labels")),
            facts=told[1:],
        )
        return
    yield Finding(
        Code.ENDPOINTS_STALE,
        Severity.WARNING,
        f"Endpoints and EndpointSlices disagree, and the Endpoints are behind: {told[0]}. The Endpoints controller is"
        " not running, or cannot write.",
        _START,
        _seen(case),
        facts=told[1:],
    )


def _over_capacity(case: Case, wanted: Content) -> Finding:
    count = sum(each.verdict.in_endpoints for each in case.candidates)
    missing = count - len(wanted.entries)
    left_out = f"; {plural(missing, 'address')} are left out" if missing else ""
    return Finding(
        Code.ENDPOINTS_OVER_CAPACITY,
        Severity.WARNING,
        f"It has {plural(count, 'address')}, and Endpoints are truncated at {ENDPOINTS_CAPACITY:,}{left_out}"
        " (EndpointSlices list them all).",
        Fix("Have clients read EndpointSlices instead of Endpoints, or split the Service."),
        (
            case.pods_found(),
            *evidence.each(filter(None, [case.endpoints]), f"metadata.annotations[{OVER_CAPACITY_ANNOTATION}]"),
        ),
    )


def endpoints_content(endpoints: objects.Endpoints) -> Content:
    entries: dict[Entry, bool] = {}
    for addresses, ready in ((endpoints.not_ready(), False), (endpoints.ready(), True)):
        for each in addresses:
            parsed = parse_ip(each.ip)
            entries[parsed[1] if parsed else each.ip, _pod(each)] = ready
    return Content(entries, frozenset((p.name, p.port, p.protocol) for p in endpoints.ports()))


def edited_by(endpoints: Endpoints, wanted: Content) -> str:
    """What shows that a user edited them; "" if nothing does."""
    if hand := foreign_hand(endpoints.metadata):
        return hand
    if not endpoints.made_by_controller:
        return "they lack the controller's label"
    known = {address for address, _ in wanted.entries}
    made_up = [each.ip for each in endpoints.ready() if each.target_ref is None and each.ip not in known]
    return f"{listed(made_up)} is no Pod's" if made_up else ""


# --- evidence --------------------------------------------------------------------------------------


def _seen(case: Case) -> tuple[evidence.Evidence, ...]:
    """What is written, and what should be: the Pods it selects."""
    named = {SERVICE_NAME_LABEL: case.name}
    return (
        case.pods_found(),
        *evidence.each((each.pod for each in case.candidates), *_OF_PODS),
        evidence.search(case.world, "EndpointSlice", case.namespace, labels=named),
        *evidence.each(case.slices, "endpoints", "ports"),
        evidence.search(case.world, "Endpoints", case.namespace, name=case.name),
        *evidence.each(filter(None, [case.endpoints]), "subsets"),
        *case.seen("spec.ports"),
    )


def _age_read(case: Case) -> tuple[evidence.Evidence, ...]:
    if case.service.metadata.creation_timestamp is None or case.world.now is None:
        return ()
    return (evidence.reading(case.service, "metadata.creationTimestamp", case.world.now),)


# --- writers ------------------------------------------------------------------------------------


def foreign_hand(metadata: Metadata) -> str:
    """Says which field manager wrote the object last; "" if it was a controller, or is not recorded."""
    dated = [each for each in metadata.managed_fields if each.time]
    if not dated:
        return ""
    last = max(dated, key=lambda each: each.time or "")
    if any(each.manager.startswith(_CONTROLLERS) for each in dated if each.time == last.time):
        return ""
    return f"last by {last.manager} at {last.time}"


def _written(endpoint_slice: EndpointSlice) -> str:
    dated = [each.time for each in endpoint_slice.metadata.managed_fields if each.time]
    return max(dated, default=endpoint_slice.metadata.creation_timestamp or "at an unknown time")


def _pod(listed: Endpoint | objects.EndpointAddress) -> str:
    return listed.target_ref.name if listed.target_ref is not None else ""


def _should(wanted: Content) -> str:
    ready = sum(wanted.entries.values())
    return f"{plural(ready, 'address')} should be in them" if ready else "there should be at least an empty one"


def _age(timestamp: str | None, now: float | None) -> str:
    if timestamp is None or now is None:
        return ""
    return f" in the {times.duration(now - times.parse(timestamp))} it exists"


def _addresses(entries: Iterable[Entry]) -> str:
    entries = sorted(entries)
    word = "are" if len(entries) > 1 else "is"
    return f"{listed(f'{address} ({pod})' if pod else address for address, pod in entries)} {word}"


def _ports(ports: Iterable[PortKey]) -> str:
    return listed(f"{name or '(unnamed)'} {number}/{protocol}" for name, number, protocol in sorted(ports)) or "none"
