"""ExternalName Services.  They are only an alias in DNS, so only the name can be wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seamark.kinds.values import addresses
from seamark.kinds.wellknown import SERVICE_NAME_LABEL
from seamark.rules import mirroring
from seamark.why import evidence
from seamark.why.case import Case, listed, pairs, plural
from seamark.why.checks.near import misspelt
from seamark.why.codes import Code
from seamark.why.finding import Command, Finding, Fix, Severity, create, delete, merge_patch
from seamark.why.views import Key, Service
from seamark.why.world import World


def findings(case: Case) -> Iterator[Finding]:
    service = case.service
    if not service.external:
        return
    yield from _address(case)
    yield from _target(case)
    if service.spec.selector:
        yield _ignored_selector(case)
    yield from _leftovers(case)


def in_cluster_target(service: Service) -> Key | None:
    """The Service that an externalName means, if it looks like ``web.shop.svc`` or ``web-0.web.shop.svc``, or None."""
    labels = service.spec.external_name.rstrip(".").split(".")
    for place in (2, 3):
        if labels[place : place + 1] == ["svc"]:
            return labels[place - 1], labels[place - 2]
    return None


def _address(case: Case) -> Iterator[Finding]:
    name = case.service.spec.external_name.rstrip(".")
    parsed = addresses.parse(name)
    if parsed is None:
        return
    commands: tuple[Command, ...] = ()
    if case.service.spec.ports:
        family = "IPv6" if parsed.address.version == 6 else "IPv4"
        commands = (_as_cluster_ip(case), create(_slice(case.service, family, str(parsed.address))))
    yield Finding(
        Code.EXTERNAL_NAME_IS_ADDRESS,
        Severity.ERROR,
        f"externalName is the IP address {name}, which is taken for a host name: DNS answers NXDOMAIN, as a CNAME"
        " cannot lead to an address.",
        Fix(
            "Make it a Service without a selector, with an EndpointSlice that holds the address" + ":."[not commands],
            commands,
        ),
        case.seen("spec.type", "spec.externalName"),
    )


def _slice(service: Service, family: str, address: str) -> dict[str, Any]:
    namespace, name = service.key
    ports = []
    for port in service.spec.ports:
        number = port.target_port if isinstance(port.target_port, int) and port.target_port else port.port
        ports.append({"name": port.name, "port": number, "protocol": port.protocol})
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{name}-1", "namespace": namespace, "labels": {SERVICE_NAME_LABEL: name}},
        "addressType": family,
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": ports,
    }


def _as_cluster_ip(case: Case) -> Command:
    return merge_patch("service", case.key, {"spec": {"type": "ClusterIP", "externalName": None}})


# --- where it leads --------------------------------------------------------------------------------


def _target(case: Case) -> Iterator[Finding]:
    service, world = case.service, case.world
    relative = _relative(case)
    if relative is not None:
        given = service.spec.external_name.rstrip(".")
        whole = f"{relative[1]}.{relative[0]}.svc.cluster.local"
        whole = f"{given}.cluster.local" if given.endswith(".svc") else whole
        yield Finding(
            Code.EXTERNAL_NAME_TARGET_MISSING,
            Severity.ERROR,
            f"externalName {service.spec.external_name} is taken as a whole name, no search path is added: it does not"
            f" lead to Service {relative[1]} in namespace {relative[0]}.",
            Fix(
                "If that Service is meant, write its full name:",
                (merge_patch("service", case.key, {"spec": {"externalName": whole}}),),
                certain=False,
            ),
            (*case.seen("spec.externalName"), evidence.search(world, "Service", relative[0], name=relative[1])),
        )
        return
    target = in_cluster_target(service)
    if target is None:
        return
    chain = _chain(service, world)
    end = in_cluster_target(chain[-1])
    if end in {each.key for each in chain}:
        where = "leads back to this Service" if end == case.key else "leads into a circle of other aliases"
        names = " → ".join(f"{name}.{namespace}" for namespace, name in (*(each.key for each in chain), end))
        yield Finding(
            Code.EXTERNAL_NAME_LOOP,
            Severity.ERROR,
            f"externalName {service.spec.external_name} {where} ({names}), so the name never resolves.",
            Fix("Point externalName at a name outside, or at a Service that has addresses."),
            evidence.each(chain, "spec.externalName"),
        )
    elif target not in world.services and _known(world, target[0]):
        yield _missing(case, target)
    elif end is not None and end in world.services and world.answers(end) is False:
        yield Finding(
            Code.EXTERNAL_NAME_TARGET_EMPTY,
            Severity.ERROR,
            f"externalName leads to Service {end[1]} in namespace {end[0]}, which has no ready endpoint, so nothing"
            " answers there.",
            Fix(f"Repair that Service: `seamark why svc/{end[1]} -n {end[0]}` says why it is empty."),
            (
                *evidence.each(chain, "spec.externalName"),
                evidence.search(world, "Service", end[0], name=end[1]),
                evidence.search(world, "EndpointSlice", end[0], labels={SERVICE_NAME_LABEL: end[1]}),
                *evidence.each(world.slices_behind(end), "endpoints"),
            ),
        )
    else:
        yield from _replica(case, target)


def _replica(case: Case, target: Key) -> Iterator[Finding]:
    """An alias for one endpoint of a Service, ``web-0.web.shop.svc``, where no ready endpoint has that name."""
    wanted, *rest = case.service.spec.external_name.rstrip(".").split(".")
    if rest[2:3] != ["svc"] or not case.world.answers(target):
        return
    slices = case.world.slices_behind(target)
    names = sorted({name for each in slices for name in each.endpoint_names()})
    if wanted not in names:
        yield Finding(
            Code.EXTERNAL_NAME_TARGET_MISSING,
            Severity.ERROR,
            f"externalName leads to {wanted}, an endpoint of Service {target[1]} in namespace {target[0]}, but those"
            f" that are ready are called {listed(names)}.",
            Fix("Point externalName at one of those, or at the Service itself."),
            (*case.seen("spec.externalName"), *evidence.each(slices, "endpoints")),
        )


def _relative(case: Case) -> Key | None:
    """The Service that a Pod would find by this name on its search path, if there is one."""
    labels = case.service.spec.external_name.rstrip(".").split(".")
    short = {1: (case.namespace, labels[0]), 2: (labels[-1], labels[0])}.get(len(labels))
    if len(labels) in (3, 4) and labels[-1] == "svc":
        short = labels[-2], labels[-3]
    return short if short is not None and short != case.key and short in case.world.services else None


def _known(world: World, namespace: str) -> bool:
    """Whether the Services of that namespace were read; otherwise a Service may exist unseen."""
    seen = world.seen.namespace
    return not world.seen.hypothetical and (not seen or seen == namespace or namespace in world.seen.also)


def _chain(service: Service, world: World) -> list[Service]:
    """The aliases that lead on from a Service, itself the first; each once."""
    chain = [service]
    while (target := in_cluster_target(chain[-1])) is not None:
        following = world.services.get(target)
        if following is None or not following.external or following in chain:
            break
        chain.append(following)
    return chain


def _missing(case: Case, target: Key) -> Finding:
    namespace, name = target
    before, _, rest = case.service.spec.external_name.partition(f"{name}.{namespace}.")
    close = [
        key
        for key in case.world.services
        if key != case.key
        and (
            (key[0] == namespace and misspelt(key[1], name) is not None)
            or (key[1] == name and misspelt(key[0], namespace) is not None)
        )
    ]
    cause = (
        f"externalName leads to Service {name} in namespace {namespace}, which does not exist, so the name"
        " has no address"
    )
    seen: tuple[evidence.Evidence, ...] = (
        *case.seen("spec.externalName"),
        evidence.search(case.world, "Service", namespace, name=name),
    )
    if not close:
        fix = Fix("Make that Service, or correct externalName.")
        return Finding(Code.EXTERNAL_NAME_TARGET_MISSING, Severity.ERROR, f"{cause}.", fix, seen)
    found = min(close)
    corrected = f"{before}{found[1]}.{found[0]}.{rest}"
    return Finding(
        Code.EXTERNAL_NAME_TARGET_MISSING,
        Severity.ERROR,
        f"{cause}; there is {found[1]} in namespace {found[0]}.",
        Fix(
            "If that is meant, correct externalName:",
            (merge_patch("service", case.key, {"spec": {"externalName": corrected}}),),
            certain=False,
        ),
        (*seen, evidence.search(case.world, "Service", found[0], name=found[1])),
    )


# --- what does nothing -----------------------------------------------------------------------------


def _ignored_selector(case: Case) -> Finding:
    service = case.service
    selected = case.world.selected(case.namespace, service.spec.selector or {})
    commands = (_as_cluster_ip(case),) if service.spec.ports else ()
    return Finding(
        Code.EXTERNAL_NAME_IGNORES_SELECTOR,
        Severity.WARNING,
        f"It is of type ExternalName, a mere alias for {service.spec.external_name}: its selector"
        f" {pairs(service.spec.selector)} ({plural(len(selected), 'Pod')}) is ignored and it gets no endpoints.",
        Fix(
            "If the Pods are meant, make it a ClusterIP Service" + (":" if commands else " with ports."),
            commands,
            certain=False,
        ),
        (*case.seen("spec.type", "spec.externalName", "spec.selector"), case.pods_found()),
    )


def _leftovers(case: Case) -> Iterator[Finding]:
    # Mirrored slices go with the Endpoints they mirror.
    slices = [each for each in case.slices if not mirroring.ours(each) or case.endpoints is None]
    commands = tuple(delete("endpointslice", each.key) for each in slices)
    found = [f"EndpointSlice {each.metadata.name}" for each in slices]
    if case.endpoints is not None:
        commands = (delete("endpoints", case.key), *commands)
        found.insert(0, f"Endpoints {case.name}")
    if found:
        yield Finding(
            Code.EXTERNAL_NAME_LEFTOVERS,
            Severity.WARNING,
            f"It is of type ExternalName, which has no endpoints, but {listed(found)} are left over from before; no"
            " controller updates or deletes them.",
            Fix("Delete them:", commands),
            (
                *case.seen("spec.type"),
                *evidence.each(slices, "endpoints#"),
                *evidence.each(filter(None, [case.endpoints]), "subsets#"),
            ),
            weight=len(found),
        )
