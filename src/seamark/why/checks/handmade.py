"""Services without a selector: the EndpointSlices that users wrote for them, and whether they are used.

What users wrote as Endpoints is in :mod:`seamark.why.checks.mirrored`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seamark.kinds.wellknown import SERVICE_NAME_LABEL, SLICE_CONTROLLER, SLICE_MANAGED_BY_LABEL
from seamark.rules import mirroring
from seamark.rules.objects.endpointslice import Endpoint
from seamark.rules.objects.network import covered
from seamark.why import evidence
from seamark.why.case import Case, listed, offered_port, plural
from seamark.why.checks import mirrored, probed, strays
from seamark.why.checks.mirrored import empty_finding, hand_made
from seamark.why.codes import Code
from seamark.why.finding import Command, Finding, Fix, Severity, delete, delete_selected, json_patch, label, merge_patch
from seamark.why.views import EndpointSlice

_NAMES = ("app.kubernetes.io/name", "app", "k8s-app", "run", "name")


def findings(case: Case) -> Iterator[Finding]:
    """What is wrong with hand-made endpoints.  Beside a selector, only whether hand-made slices are used."""
    if case.service.external:
        return
    yield from _cluster_ips(case)
    if case.service.managed:
        yield from _port_findings(case, hand_made(case))
        yield from _foreign(case)
        return
    yield from _slices(case)
    yield from mirrored.findings(case)
    yield from probed.findings(case)
    yield from _gone(case)
    abandoned = case.endpoints is None or case.endpoints.made_by_controller
    if not case.ready_addresses and abandoned and len(case.slices) == len(case.controller_slices):
        found = list(strays.findings(case))
        yield from found or [_nothing(case)]


def _gone(case: Case) -> Iterator[Finding]:
    """Addresses that were written for a Pod which is gone now; without a selector no controller follows Pods."""
    targets = {
        (address, endpoint.target_ref.name)
        for each in hand_made(case)
        for endpoint in each.endpoints or ()
        if endpoint.target_ref is not None and endpoint.target_ref.kind == "Pod" and endpoint.ready
        for address in endpoint.addresses
    }
    if case.endpoints is not None and not case.endpoints.made_by_controller:
        addresses = [each for each in case.endpoints.ready() if each.target_ref is not None]
        targets |= {(e.ip, e.target_ref.name) for e in addresses if e.target_ref and e.target_ref.kind == "Pod"}
    dead = sorted((ip, name) for ip, name in targets if (case.namespace, name) not in case.world.pods)
    if dead and not case.world.planned:
        yield Finding(
            Code.ENDPOINTS_TARGET_GONE,
            Severity.ERROR if len(dead) == len(case.ready_addresses) else Severity.WARNING,
            f"Hand-made endpoints lead to Pods that are gone ({listed(f'{ip}: {pod}' for ip, pod in dead)}); it has no"
            " selector, so no controller updates them.",
            Fix("Give it a selector that picks the Pods, or write their present addresses."),
            (
                *case.seen("spec.selector"),
                *evidence.each(hand_made(case), "endpoints"),
                *evidence.each(filter(None, [case.endpoints]), "subsets"),
                *(evidence.search(case.world, "Pod", case.namespace, name=name) for _, name in dead[:5]),
            ),
            weight=len(dead),
        )


def _foreign(case: Case) -> Iterator[Finding]:
    """Slices beside the controller's that send part of the traffic where no selected Pod is."""
    if case.world.planned:
        return
    own = {address for each in case.ready for address in (*each.verdict.ipv4, *each.verdict.ipv6)}
    names = {(port.name, port.protocol) for port in case.service.spec.ports}
    for each in hand_made(case):
        offered = _offered(each)
        if each.address_type not in case.service.families or not (case.service.headless or offered & names):
            continue
        led = [
            (address, why)
            for endpoint in each.endpoints or ()
            if endpoint.ready
            for address in endpoint.addresses
            if address not in own and (why := _dead(case, each, endpoint, address))
        ]
        if led:
            yield _beside(case, each, led)


def _dead(case: Case, each: EndpointSlice, endpoint: Endpoint, address: str) -> str:
    """Why an address of a foreign slice may not answer; "" where nothing speaks against it."""
    target = endpoint.target_ref
    if target is not None and target.kind == "Pod":
        pod = case.world.pods.get((case.namespace, target.name))
        if pod is None:
            return f"was Pod {target.name}'s, which is gone"
        return "" if pod.ready else f"is Pod {target.name}'s, which is not ready"
    holder = case.world.pods_by_address.get(address)
    if holder is not None:
        return "" if holder.ready else f"is Pod {holder.metadata.name}'s, which is not ready"
    # Another controller's slices lead where it decides, for example to another cluster.
    return "" if each.managed_by else "is no Pod's that can be seen"


def _beside(case: Case, each: EndpointSlice, led: Sequence[tuple[str, str]]) -> Finding:
    others = f"as well as to {plural(len(case.ready), 'ready Pod')}" if case.ready else "and nowhere else"
    return Finding(
        Code.FOREIGN_SLICE,
        Severity.WARNING if case.ready_addresses else Severity.ERROR,
        f"EndpointSlice {each.metadata.name} is not the controller's ({each.managed_by or 'made by hand'}) and adds"
        f" {listed(address for address, _ in led)}, which {led[0][1]}: traffic goes there {others}.",
        Fix("If that is not meant, delete it:", (delete("endpointslice", each.key),), certain=False),
        (
            *case.seen("spec.selector"),
            *evidence.of(each, f"metadata.labels[{SLICE_MANAGED_BY_LABEL}]", "endpoints", "ports"),
            case.pods_found(),
            *evidence.each((pod.pod for pod in case.ready), "status.podIPs", "status.podIP"),
            *_targets(case, each),
        ),
        weight=len(led),
    )


def _targets(case: Case, each: EndpointSlice) -> Iterator[evidence.Evidence]:
    """The Pods that a slice names, or whose addresses it lists."""
    listed_there = set(each.all_addresses())
    named = {e.target_ref.name for e in each.endpoints or () if e.target_ref is not None}
    for name in sorted(named):
        yield evidence.search(case.world, "Pod", case.namespace, name=name)
    for pod in case.world.pods.values():
        if pod.metadata.name in named or listed_there & set(pod.ips):
            yield from evidence.of(pod, "status.podIPs", "status.conditions[Ready].status")


def _cluster_ips(case: Case) -> Iterator[Finding]:
    """Addresses that are cluster IPs: a proxy sends a connection on once, not from one Service to another."""
    written = {address for each in hand_made(case) for address in each.ready_addresses()}
    if case.endpoints is not None and not case.endpoints.made_by_controller and not case.service.managed:
        written |= {each.ip for each in case.endpoints.ready()}
    owners = {address: case.world.services_by_cluster_ip.get(address, ()) for address in sorted(written)}
    cidrs = case.world.seen.cidrs or ()
    wrong = {address: found for address, found in owners.items() if found or covered(address, cidrs)}
    if not wrong:
        return
    address, found = next(iter(wrong.items()))
    whose = f"the cluster IP of Service {found[0].metadata.name}" if found else "in the range of cluster IPs"
    where = f" in namespace {found[0].metadata.namespace}" if found else ""
    fix = "Write the addresses of servers; to lead to another Service, make this one ExternalName, or select its Pods."
    if found and found[0].key != case.key:
        name = f"{found[0].metadata.name}.{found[0].metadata.namespace}.svc.cluster.local"
        fix = f"If that Service is meant, make this one ExternalName with externalName {name}, or select its Pods."
    yield Finding(
        Code.ENDPOINT_IS_CLUSTER_IP,
        Severity.ERROR if set(wrong) >= set(case.ready_addresses) else Severity.WARNING,
        f"Its hand-made endpoint {address} is {whose}{where}, not a server's address: proxies do not lead from one"
        " Service to another, so connections to it get lost.",
        Fix(fix, certain=False),
        (
            *evidence.each(hand_made(case), "endpoints"),
            *evidence.each(filter(None, [case.endpoints]), "subsets"),
            *evidence.each(found, "spec.clusterIP", "metadata.namespace"),
            *evidence.each(cidrs, "spec.cidrs"),
        ),
        weight=len(wrong),
    )


def _nothing(case: Case) -> Finding:
    """Nothing is written for the Service; if Pods are named like it, propose a selector."""
    chosen: tuple[str, str] | None = None
    count = 0
    for shape in case.world.shapes(case.namespace):
        for key in _NAMES:
            if shape.labels.get(key) == case.name and (chosen is None or len(shape.pods) > count):
                chosen, count = (key, case.name), len(shape.pods)
    cause = "It has no selector, so it selects no Pods, and it has no hand-written Endpoints or EndpointSlices either"
    if chosen is not None:
        pair = f"{chosen[0]}={chosen[1]}"
        return Finding(
            Code.SELECTORLESS_WITHOUT_ENDPOINTS,
            Severity.ERROR,
            f"{cause}; there are Pods with {pair}.",
            Fix(
                "If those are meant, give it a selector:",
                (merge_patch("service", case.key, {"spec": {"selector": {chosen[0]: chosen[1]}}}),),
                certain=False,
            ),
            (
                *_nothing_written(case),
                evidence.search(case.world, "Pod", case.namespace, labels={chosen[0]: chosen[1]}),
            ),
        )
    return Finding(
        Code.SELECTORLESS_WITHOUT_ENDPOINTS,
        Severity.ERROR,
        f"{cause}.",
        Fix("Give it a selector, or write an EndpointSlice with the addresses that should answer."),
        _nothing_written(case),
    )


def _nothing_written(case: Case) -> tuple[evidence.Evidence, ...]:
    return (
        *case.seen("spec.selector"),
        evidence.search(case.world, "EndpointSlice", case.namespace, labels={SERVICE_NAME_LABEL: case.name}),
        evidence.search(case.world, "Endpoints", case.namespace, name=case.name),
    )


# --- slices ----------------------------------------------------------------------------------------


def _slices(case: Case) -> Iterator[Finding]:
    leftover = [each for each in case.controller_slices if each.made_by_controller]
    yield from _leftover(case, leftover)
    claimed = [each for each in case.controller_slices if not each.made_by_controller]
    mirrored = [each for each in case.slices if mirroring.ours(each)]
    yield from _claimed(case, [*claimed, *(each for each in mirrored if not _mirrors(each, case))])
    yield from _used(case, [*hand_made(case), *claimed])
    yield from _unoffered(case)


def _unoffered(case: Case) -> Iterator[Finding]:
    """Ports of the Service that no slice offers, although slices offer other ports of it."""
    names = {(port.name, port.protocol) for port in case.service.spec.ports}
    offered = {pair for each in case.slices for pair in _offered(each)}
    missing = sorted(names - offered)
    if not names & offered or not missing or case.service.headless:
        return
    yield Finding(
        Code.SLICE_PORT_MISMATCH,
        Severity.WARNING,
        f"Port {listed(offered_port(*pair) for pair in missing)} of the Service has no endpoints: what was written by"
        f" hand offers {listed(offered_port(*pair) for pair in sorted(offered))} only.",
        Fix("Add the port to the hand-made Endpoints or EndpointSlices, under the name it has in the Service."),
        (*case.seen("spec.ports"), *evidence.each(case.slices, "ports")),
        weight=len(missing),
    )


def _offered(each: EndpointSlice) -> set[tuple[str, str]]:
    """The ports of a slice that proxies use, by name and protocol; one without a number is ignored."""
    return {(port.name or "", port.protocol or "TCP") for port in each.ports or () if port.port}


def _port_findings(case: Case, slices: Sequence[EndpointSlice]) -> Iterator[Finding]:
    """Slices without any port of the Service.  A headless Service needs none: DNS answers with addresses alone."""
    names = {(port.name, port.protocol) for port in case.service.spec.ports}
    if not names or case.service.headless:
        return
    for each in slices:
        offered = _offered(each)
        if each.address_type in case.service.families and not offered & names:
            yield _slice_ports(case, each)


def _leftover(case: Case, leftover: Sequence[EndpointSlice]) -> Iterator[Finding]:
    """What the controllers wrote before the selector was removed: slices, and Endpoints, which are mirrored now."""
    endpoints = case.endpoints if case.endpoints is not None and case.endpoints.made_by_controller else None
    objects = [f"EndpointSlice {each.metadata.name}" for each in leftover]
    commands: list[Command] = []
    if endpoints is not None:
        objects.append(f"Endpoints {case.name}")
        commands.append(delete("endpoints", endpoints.key))
    if leftover:
        selector = f"{SERVICE_NAME_LABEL}={case.name},{SLICE_MANAGED_BY_LABEL}={SLICE_CONTROLLER}"
        commands.append(delete_selected("endpointslice", case.namespace, selector))
    if not objects:
        return
    addresses = {address for each in leftover for address in each.all_addresses()}
    addresses |= {each.ip for each in endpoints.ready()} if endpoints is not None else set()
    sent = f", and traffic still goes to {listed(sorted(addresses))}" if addresses else ""
    yield Finding(
        Code.LEFTOVER_SLICES,
        Severity.WARNING,
        f"It has no selector, but {listed(objects)} {'is' if len(objects) == 1 else 'are'} left over from when it had"
        f" one{sent}; no controller updates or deletes {'it' if len(objects) == 1 else 'them'}.",
        Fix("Delete what is left over (or give the Service its selector back):", tuple(commands)),
        (
            *case.seen("spec.selector"),
            *evidence.each(leftover, "metadata.labels", "metadata.ownerReferences", "endpoints"),
            *evidence.each(filter(None, [endpoints]), "metadata.labels", "subsets"),
        ),
        weight=len(objects),
        facts=tuple(f"{each.metadata.name}: {listed(each.all_addresses()) or 'empty'}" for each in leftover[:5]),
    )


def _mirrors(each: EndpointSlice, case: Case) -> bool:
    """Whether the mirroring controller made it: then the Endpoints it mirrors own it."""
    owners = each.metadata.owner_references
    return any(owner.kind == "Endpoints" for owner in owners) or (not owners and case.endpoints is not None)


def _claimed(case: Case, claimed: Sequence[EndpointSlice]) -> Iterator[Finding]:
    for each in claimed:
        yield Finding(
            Code.SLICE_MANAGED_BY_CONTROLLER,
            Severity.WARNING if case.ready_addresses else Severity.ERROR,
            f"EndpointSlice {each.metadata.name} was made by hand but is labelled"
            f" {SLICE_MANAGED_BY_LABEL}={each.managed_by}: that controller takes it for its own, and may delete it at"
            " any time.",
            Fix(
                "Say that it is not the controller's:",
                (label("endpointslice", each.key, f"{SLICE_MANAGED_BY_LABEL}=manual", overwrite=True),),
            ),
            evidence.of(each, f"metadata.labels[{SLICE_MANAGED_BY_LABEL}]", "metadata.ownerReferences"),
        )


def _used(case: Case, slices: Sequence[EndpointSlice]) -> Iterator[Finding]:
    used = [each for each in slices if each.address_type in case.service.families]
    if not used:
        yield from (_other_family(case, each) for each in slices)
        return
    yield from _port_findings(case, used)
    if not case.ready_addresses:
        unready = [each for each in used if each.all_addresses()]
        by_hand = [each for each in unready if not probed.is_probed(each)]
        if not unready:
            yield empty_finding(case, used[0])
        elif by_hand:
            yield _unready(case, by_hand)


def _other_family(case: Case, each: EndpointSlice) -> Finding:
    families = " and ".join(case.service.families)
    why = "which no proxy uses" if each.address_type == "FQDN" else f"but the Service is for {families}"
    return Finding(
        Code.SLICE_OF_OTHER_FAMILY,
        Severity.ERROR,
        f"EndpointSlice {each.metadata.name} holds {each.address_type} addresses, {why}, so it is ignored.",
        Fix(f"Make the slice anew with addressType {case.service.families[0]}; the type cannot be changed."),
        (*case.seen("spec.ipFamilies", "spec.clusterIP"), *evidence.of(each, "addressType")),
    )


def _slice_ports(case: Case, each: EndpointSlice) -> Finding:
    wanted = listed(offered_port(port.name, port.protocol) for port in case.service.spec.ports)
    bare = [port for port in each.ports or () if not port.port]
    if bare:
        return _without_number(case, each, listed(offered_port(p.name or "", p.protocol or "TCP") for p in bare))
    offered = listed(offered_port(port.name or "", port.protocol or "TCP") for port in each.ports or ()) or "none"
    commands: tuple[Command, ...] = ()
    ports = case.service.spec.ports
    if len(ports) == 1 and len(each.ports or ()) == 1:
        correct = [{"op": "add", "path": "/ports/0/name", "value": ports[0].name}]
        if (each.ports or ())[0].protocol not in (None, ports[0].protocol):
            correct.append({"op": "add", "path": "/ports/0/protocol", "value": ports[0].protocol})
        commands = (json_patch("endpointslice", each.key, correct),)
    return Finding(
        Code.SLICE_PORT_MISMATCH,
        Severity.WARNING if case.service.managed else Severity.ERROR,
        f"EndpointSlice {each.metadata.name} offers port {offered}, but the Service's port is {wanted}: they are joined"
        " by name and protocol, so the slice is ignored.",
        Fix("Give the slice's port the Service's port name" + (":" if commands else "."), commands),
        (*case.seen("spec.ports"), *evidence.of(each, "ports")),
    )


def _without_number(case: Case, each: EndpointSlice, ports: str) -> Finding:
    numbers = [port.target_port for port in case.service.spec.ports]
    commands: tuple[Command, ...] = ()
    if len(numbers) == 1 and len(each.ports or ()) == 1 and isinstance(numbers[0], int) and numbers[0]:
        commands = (
            json_patch("endpointslice", each.key, [{"op": "add", "path": "/ports/0/port", "value": numbers[0]}]),
        )
    return Finding(
        Code.SLICE_PORT_MISMATCH,
        Severity.WARNING if case.service.managed else Severity.ERROR,
        f"Port {ports} of EndpointSlice {each.metadata.name} has no number, so proxies ignore it.",
        Fix(
            "If the addresses listen on the Service's targetPort, write it there:"
            if commands
            else "Give it the number.",
            commands,
            certain=not commands,
        ),
        (*case.seen("spec.ports"), *evidence.of(each, "ports")),
    )


def _unready(case: Case, used: Sequence[EndpointSlice]) -> Finding:
    addresses = [address for each in used for address in each.all_addresses()]
    first = used[0]
    changes = [
        {"op": "add", "path": f"/endpoints/{position}/conditions", "value": {"ready": True}}
        for position, endpoint in enumerate(first.endpoints or ())
        if not endpoint.ready
    ]
    return Finding(
        Code.ENDPOINTS_NOT_READY,
        Severity.ERROR,
        f"Every address of its hand-made EndpointSlices ({listed(addresses)}) is marked not ready.",
        Fix("Once they are, say so:", (json_patch("endpointslice", first.key, changes),)),
        evidence.each(used, "endpoints"),
        weight=len(addresses),
    )
