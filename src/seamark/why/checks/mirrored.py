"""Endpoints that users wrote by hand: whether they are mirrored into EndpointSlices, and why not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seamark.kinds.wellknown import (
    LEADER_ANNOTATION,
    MIRRORED_ADDRESSES,
    MIRRORED_BYTES,
    SERVICE_NAME_LABEL,
    SKIP_MIRROR_LABEL,
)
from seamark.rules import mirroring
from seamark.rules.mirroring import Obstacle
from seamark.rules.slices import objects as slice_objects
from seamark.why import evidence
from seamark.why.case import Case, listed, offered_port, plural
from seamark.why.checks.probed import is_probed
from seamark.why.codes import Code
from seamark.why.finding import Command, Finding, Fix, Severity, json_patch, label, look, merge_patch
from seamark.why.views import Endpoints, EndpointSlice

_UNREAD = "and Endpoints alone have no effect: proxies and DNS read EndpointSlices"
_START = Fix(
    "Start the controllers that mirror Endpoints (kube-controller-manager, or `seamark controllers`), or write"
    " EndpointSlices.",
    (),
    (look("get", "pods", namespace="kube-system"),),
)


def findings(case: Case) -> Iterator[Finding]:
    """What is wrong with the Endpoints of a Service without a selector."""
    endpoints = case.endpoints
    if endpoints is None or endpoints.made_by_controller:
        return  # what the controller left behind is reported with its slices
    if not endpoints.ready():
        if not case.ready_addresses:
            if not endpoints.not_ready():
                yield empty_finding(case, endpoints)
            elif not is_probed(endpoints):
                yield _unready(case, endpoints)
        return
    other = [each for each in _mirrored_slices(case) if each.address_type not in case.service.families]
    if not case.ready_addresses and other:
        yield _other_family(case, endpoints, other)
    elif not case.ready_addresses:
        yield from _not_mirrored(case, endpoints)
    elif not hand_made(case):
        yield from _disagreeing(case, _mirrored_slices(case))
    yield from _port_findings(case, endpoints)
    yield from _left_out(case)


def hand_made(case: Case) -> list[EndpointSlice]:
    """The slices that no controller manages."""
    return [each for each in case.slices if not slice_objects.ours(each) and not mirroring.ours(each)]


def _mirrored_slices(case: Case) -> list[EndpointSlice]:
    return [each for each in case.slices if mirroring.ours(each)]


def _other_family(case: Case, endpoints: Endpoints, slices: Sequence[EndpointSlice]) -> Finding:
    families = " and ".join(case.service.families)
    return Finding(
        Code.SLICE_OF_OTHER_FAMILY,
        Severity.ERROR,
        f"Its Endpoints hold {slices[0].address_type} addresses ({listed(each.ip for each in endpoints.ready())}), but"
        f" the Service is for {families}, so no proxy uses them.",
        Fix(f"Write {families} addresses, or make the Service anew for {slices[0].address_type} (ipFamilies)."),
        (*case.seen("spec.ipFamilies", "spec.clusterIP"), *evidence.of(endpoints, "subsets"), *evidence.each(slices)),
    )


def _not_mirrored(case: Case, endpoints: Endpoints) -> Iterator[Finding]:
    """Addresses that are written and reach no client, because proxies and DNS read EndpointSlices."""
    addresses = listed(each.ip for each in endpoints.ready())
    obstacle = mirroring.obstacle(case.service, endpoints)
    if obstacle is Obstacle.SKIP_LABEL:
        yield Finding(
            Code.MIRRORING_SKIPPED_BY_LABEL,
            Severity.ERROR,
            f"Its Endpoints ({addresses}) carry the label {SKIP_MIRROR_LABEL}=true, so they are not mirrored,"
            f" {_UNREAD}.",
            Fix("Remove the label:", (label("endpoints", endpoints.key, f"{SKIP_MIRROR_LABEL}-"),)),
            evidence.of(endpoints, f"metadata.labels[{SKIP_MIRROR_LABEL}]", "subsets"),
        )
    elif obstacle is Obstacle.LEADER_LOCK:
        remove = merge_patch("endpoints", endpoints.key, {"metadata": {"annotations": {LEADER_ANNOTATION: None}}})
        yield Finding(
            Code.MIRRORING_SKIPPED_FOR_LEADER,
            Severity.ERROR,
            f"Its Endpoints ({addresses}) carry the annotation {LEADER_ANNOTATION} of a leader election, so they are"
            f" not mirrored, {_UNREAD}.",
            Fix("Let the election use a Lease (or another name), and remove the annotation:", (remove,)),
            evidence.of(endpoints, f"metadata.annotations[{LEADER_ANNOTATION}]", "subsets"),
        )
    elif case.world.bookkept and _wanted(case):
        yield Finding(
            Code.ENDPOINTS_NOT_MIRRORED,
            Severity.ERROR,
            f"Its Endpoints list {addresses}, but no EndpointSlices mirror them: the mirroring controller is not"
            " running, or cannot write.",
            _START,
            (*evidence.of(endpoints, "subsets"), _written_slices(case)),
        )


def _wanted(case: Case) -> set[str]:
    """The ready addresses that mirrored slices should list."""
    return {address for each in case.mirror.changes.create for address in each.ready_addresses()}


def _disagreeing(case: Case, mirrored: Sequence[EndpointSlice]) -> Iterator[Finding]:
    written = {address for each in mirrored for address in each.ready_addresses()}
    wanted = _wanted(case)
    if not mirrored or written == wanted:
        return
    extra, missing = sorted(written - wanted), sorted(wanted - written)
    told = [f"slices lack {listed(missing)}"] if missing else []
    told += [f"slices still list {listed(extra)}"] if extra else []
    yield Finding(
        Code.ENDPOINTS_NOT_MIRRORED,
        Severity.WARNING,
        f"Its Endpoints and the EndpointSlices that mirror them disagree: {', '.join(told)}. The mirroring controller"
        " is not running, or cannot write.",
        _START,
        (*evidence.each(mirrored, "endpoints"), *evidence.each(filter(None, [case.endpoints]), "subsets")),
    )


def _written_slices(case: Case) -> evidence.Search:
    """How many slices name the Service, as evidence."""
    return evidence.search(case.world, "EndpointSlice", case.namespace, labels={SERVICE_NAME_LABEL: case.name})


def empty_finding(case: Case, obj: Endpoints | EndpointSlice) -> Finding:
    what = f"{evidence.kind_of(obj)} {obj.metadata.name}"
    held = "subsets" if isinstance(obj, Endpoints) else "endpoints"
    return Finding(
        Code.ENDPOINTS_EMPTY,
        Severity.ERROR,
        f"It has no selector, and {what}, made for it by hand, holds no address.",
        Fix("Write the addresses that should answer into it."),
        (*case.seen("spec.selector"), *evidence.of(obj, held)),
    )


def _unready(case: Case, endpoints: Endpoints) -> Finding:
    addresses = [each.ip for each in endpoints.not_ready()]
    ready = [
        {
            "addresses": [{"ip": each.ip} for each in subset.not_ready_addresses],
            "ports": [{"name": p.name, "port": p.port, "protocol": p.protocol} for p in subset.ports],
        }
        for subset in endpoints.subsets or ()
    ]
    return Finding(
        Code.ENDPOINTS_NOT_READY,
        Severity.ERROR,
        f"Its hand-made Endpoints list {plural(len(addresses), 'address')} ({listed(addresses)}), all under"
        " notReadyAddresses.",
        Fix(
            "Once they are ready, list them under addresses:", (merge_patch("endpoints", case.key, {"subsets": ready}),)
        ),
        evidence.of(endpoints, "subsets"),
        weight=len(addresses),
    )


def _port_findings(case: Case, endpoints: Endpoints) -> Iterator[Finding]:
    service = case.service
    names = {(port.name, port.protocol) for port in service.spec.ports}
    offered = {(port.name, port.protocol) for port in endpoints.ports()}
    said, wanted = (listed(offered_port(*pair) for pair in sorted(pairs)) for pairs in (offered, names))
    joined_by_name = bool(names) and not service.headless
    if not joined_by_name or not mirroring.mirrorable(endpoints):
        return
    if offered & names:
        yield from _odd_subsets(case, endpoints, names, wanted)
        return
    if not offered:
        yield Finding(
            Code.ENDPOINTS_PORT_MISMATCH,
            Severity.ERROR,
            f"Its Endpoints name no ports, but the Service has {wanted}: nothing gets through.",
            Fix(
                "Give the Endpoints the ports on which the addresses listen, under the names they have in the Service."
            ),
            (*case.seen("spec.ports"), *evidence.of(endpoints, "subsets")),
        )
        return
    commands: tuple[Command, ...] = ()
    if len(service.spec.ports) == 1 and len(endpoints.subsets or ()) == 1 and len(endpoints.ports()) == 1:
        correct = [{"op": "add", "path": "/subsets/0/ports/0/name", "value": service.spec.ports[0].name}]
        if endpoints.ports()[0].protocol != service.spec.ports[0].protocol:
            protocol = service.spec.ports[0].protocol
            correct.append({"op": "add", "path": "/subsets/0/ports/0/protocol", "value": protocol})
        commands = (json_patch("endpoints", endpoints.key, correct),)
    yield Finding(
        Code.ENDPOINTS_PORT_MISMATCH,
        Severity.ERROR,
        f"Its Endpoints offer port {said}, but the Service's port is {wanted}: they are joined by name and protocol, so"
        " nothing gets through.",
        Fix("Give the Endpoints' port the Service's port name" + (":" if commands else "."), commands),
        (*case.seen("spec.ports"), *evidence.of(endpoints, "subsets")),
    )


def _odd_subsets(case: Case, endpoints: Endpoints, names: set[tuple[str, str]], wanted: str) -> Iterator[Finding]:
    """Subsets whose ports have other names, beside some that are right."""
    for subset in endpoints.subsets or ():
        offered = {(port.name, port.protocol) for port in subset.ports}
        if subset.addresses and not offered & names:
            said = listed(offered_port(*pair) for pair in sorted(offered)) or "none"
            yield Finding(
                Code.ENDPOINTS_PORT_MISMATCH,
                Severity.WARNING,
                f"Its Endpoints offer {listed(each.ip for each in subset.addresses)} on port {said}, but the Service's"
                f" port is {wanted}: they are joined by name and protocol, so nothing gets there.",
                Fix("Give the port of that subset the Service's port name."),
                (*case.seen("spec.ports"), *evidence.of(endpoints, "subsets")),
                weight=len(subset.addresses),
            )


def _left_out(case: Case) -> Iterator[Finding]:
    """Addresses that are not mirrored: they are no IP addresses, or too many."""
    invalid, skipped = case.mirror.invalid, case.mirror.skipped
    if invalid:
        yield Finding(
            Code.ENDPOINTS_INVALID_ADDRESS,
            Severity.WARNING if case.ready_addresses else Severity.ERROR,
            f"Its Endpoints list {listed(invalid)}, which {'is' if len(invalid) == 1 else 'are'} no IP"
            f" {'address' if len(invalid) == 1 else 'addresses'} and not mirrored to EndpointSlices.",
            Fix("Write IP addresses; for a host name use a Service of type ExternalName."),
            _listed_in(case),
            weight=len(invalid),
        )
    if skipped:
        count = sum(len(each.endpoints or ()) for each in case.mirror.changes.create) + skipped
        yield Finding(
            Code.ENDPOINTS_TOO_MANY_TO_MIRROR,
            Severity.WARNING,
            f"Its Endpoints have {count:,} addresses, more than are mirrored to EndpointSlices"
            f" ({MIRRORED_ADDRESSES:,} of one subset, and {MIRRORED_BYTES >> 20} MiB in all), so {skipped:,} get no"
            " traffic.",
            Fix("Write EndpointSlices instead of Endpoints: any number of them, up to 1,000 addresses each."),
            evidence.each(filter(None, [case.endpoints]), "subsets[0].addresses#", "subsets#"),
        )


def _listed_in(case: Case) -> tuple[evidence.Field, ...]:
    return evidence.each(filter(None, [case.endpoints]), "subsets")
