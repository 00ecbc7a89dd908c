"""Hand-made Endpoints: whether they are mirrored into EndpointSlices, which is what everybody reads, and why not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seamark.kinds.wellknown import LEADER_ANNOTATION, MIRROR_CONTROLLER, MIRRORED_ADDRESSES, SKIP_MIRROR_LABEL
from seamark.rules.membership import parse_ip
from seamark.rules.objects.endpoints import EndpointSubset
from seamark.why.case import Case, listed, offered_port, plural
from seamark.why.checks.handmade_slices import empty_finding, hand_made
from seamark.why.codes import Code
from seamark.why.finding import Command, Finding, Fix, Severity, json_patch, label, look, merge_patch
from seamark.why.views import Endpoints, EndpointSlice

_UNREAD = "and nobody reads Endpoints any more: proxies and DNS read EndpointSlices"
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
        return  # what the controller left behind is told with its slices
    if not endpoints.ready():
        if not case.ready_addresses:
            unready = bool(endpoints.not_ready())
            yield _unready(case, endpoints) if unready else empty_finding(f"Endpoints {case.name}")
        return
    if not case.ready_addresses:
        yield from _not_mirrored(case, endpoints)
    elif not hand_made(case):
        yield from _disagreeing(endpoints, [each for each in case.slices if each.managed_by == MIRROR_CONTROLLER])
    yield from _port_findings(case, endpoints)
    yield from _unmirrorable(case, endpoints)


def _not_mirrored(case: Case, endpoints: Endpoints) -> Iterator[Finding]:
    """Addresses that are written and reach nobody: proxies and DNS read EndpointSlices."""
    meta = endpoints.metadata
    addresses = listed(each.ip for each in endpoints.ready())
    if meta.labels.get(SKIP_MIRROR_LABEL) == "true":
        yield Finding(
            Code.MIRRORING_SKIPPED_BY_LABEL,
            Severity.ERROR,
            f"Its Endpoints ({addresses}) carry the label {SKIP_MIRROR_LABEL}=true, so they are not mirrored,"
            f" {_UNREAD}.",
            Fix("Remove the label:", (label("endpoints", endpoints.key, f"{SKIP_MIRROR_LABEL}-"),)),
        )
    elif LEADER_ANNOTATION in meta.annotations:
        remove = merge_patch("endpoints", endpoints.key, {"metadata": {"annotations": {LEADER_ANNOTATION: None}}})
        yield Finding(
            Code.MIRRORING_SKIPPED_FOR_LEADER,
            Severity.ERROR,
            f"Its Endpoints ({addresses}) carry the annotation {LEADER_ANNOTATION} of a leader election, so they are"
            f" not mirrored, {_UNREAD}.",
            Fix("Let the election use a Lease (or another name), and remove the annotation:", (remove,)),
        )
    elif all(parse_ip(each.ip) is None for each in endpoints.ready()):
        return  # told with the invalid addresses
    elif case.world.bookkept:
        yield Finding(
            Code.ENDPOINTS_NOT_MIRRORED,
            Severity.ERROR,
            f"Its Endpoints list {addresses}, but no EndpointSlices mirror them: the two disagree, as the mirroring"
            " controller is not running.",
            _START,
        )


def _disagreeing(endpoints: Endpoints, mirrored: Sequence[EndpointSlice]) -> Iterator[Finding]:
    written = {address for each in mirrored for address in each.ready_addresses()}
    wanted = {
        parsed[1] for subset in endpoints.subsets or () for parsed in map(parse_ip, _mirrored_of(subset)) if parsed
    }
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
    )


def _mirrored_of(subset: EndpointSubset) -> list[str]:
    return [each.ip for each in (subset.addresses or ())[:MIRRORED_ADDRESSES]]


def _unready(case: Case, endpoints: Endpoints) -> Finding:
    addresses = [each.ip for each in endpoints.not_ready()]
    ready = [
        {
            "addresses": [{"ip": each.ip} for each in subset.not_ready_addresses or ()],
            "ports": [{"name": p.name, "port": p.port, "protocol": p.protocol} for p in subset.ports or ()],
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
        weight=len(addresses),
    )


def _port_findings(case: Case, endpoints: Endpoints) -> Iterator[Finding]:
    service = case.service
    names = {(port.name, port.protocol) for port in service.spec.ports}
    offered = {(port.name, port.protocol) for port in endpoints.ports()}
    said, wanted = (listed(offered_port(*pair) for pair in sorted(pairs)) or "none" for pairs in (offered, names))
    joined_by_name = bool(names) and service.spec.cluster_ip != "None"
    if not joined_by_name or offered & names or not endpoints.mirrorable:
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
    )


def _unmirrorable(case: Case, endpoints: Endpoints) -> Iterator[Finding]:
    invalid = [each.ip for each in endpoints.ready() if parse_ip(each.ip) is None]
    if invalid:
        yield Finding(
            Code.ENDPOINTS_INVALID_ADDRESS,
            Severity.WARNING if case.ready_addresses else Severity.ERROR,
            f"Its Endpoints list {listed(invalid)}, which {'is' if len(invalid) == 1 else 'are'} no IP"
            f" {'address' if len(invalid) == 1 else 'addresses'} and not mirrored to EndpointSlices.",
            Fix("Write IP addresses; for a host name use a Service of type ExternalName."),
            weight=len(invalid),
        )
    for subset in endpoints.subsets or ():
        count = len(subset.addresses or ()) + len(subset.not_ready_addresses or ())
        if count > MIRRORED_ADDRESSES:
            yield Finding(
                Code.ENDPOINTS_TOO_MANY_TO_MIRROR,
                Severity.WARNING,
                f"One subset of its Endpoints has {count:,} addresses; only {MIRRORED_ADDRESSES:,} are mirrored to"
                f" EndpointSlices, {count - MIRRORED_ADDRESSES:,} get no traffic.",
                Fix("Write EndpointSlices instead of Endpoints: any number of them, up to 1,000 addresses each."),
            )
