"""Service ports that lead nowhere: their name, protocol or number is declared by no container."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seamark.kinds.wellknown import TEMPLATE_HASH_LABEL
from seamark.rules.membership import UnresolvedPort
from seamark.rules.objects.pod import ContainerPort
from seamark.rules.objects.service import ServicePort
from seamark.why import evidence
from seamark.why.case import Candidate, Case, listed, pairs, plural
from seamark.why.checks.near import misspelt, related
from seamark.why.codes import Code
from seamark.why.evidence import Evidence
from seamark.why.finding import Command, Finding, Fix, Severity, json_patch, merge_patch
from seamark.why.world import INSTANCE_LABELS


def findings(case: Case) -> Iterator[Finding]:
    members = [each for each in case.candidates if each.verdict.in_slices]
    if not members:
        return
    if not case.service.spec.ports and not case.service.headless:
        yield Finding(
            Code.SERVICE_WITHOUT_PORTS,
            Severity.ERROR,
            "It has a cluster IP but no ports, so nothing can be sent to it.",
            Fix("Give it the ports its Pods listen on (spec.ports)."),
            case.seen("spec.ports", "spec.clusterIP"),
        )
    for position, port in enumerate(case.service.spec.ports):
        if isinstance(port.target_port, str):
            yield from _named(case, position, port, members)
        else:
            yield from _numbered(case, position, port, members)


def _seen(case: Case, concerned: Sequence[Candidate]) -> tuple[Evidence, ...]:
    """The ports of the Service, and what the containers of Pods declare."""
    pods = [each.pod for each in concerned]
    return (
        *case.seen("spec.ports", "spec.selector"),
        case.pods_found(),
        *evidence.each(pods, "spec.containers", "spec.initContainers", "metadata.ownerReferences"),
    )


# --- by name ---------------------------------------------------------------------------------------


def _named(case: Case, position: int, port: ServicePort, members: Sequence[Candidate]) -> Iterator[Finding]:
    lacking = [(each, missing) for each in members if (missing := _unresolved(each, port)) is not None]
    if not lacking:
        return
    all_lack = len(lacking) == len(members)
    declared = _distinct(lacking[0][1])
    where = "no container of its Pods" if all_lack else f"no container of {_some(lacking, members)}"
    cause = f"Port {_called(port)} has targetPort {port.target_port}/{port.protocol}, a name that {where} declares"
    other_protocol = [each for each in declared if each.name == port.target_port]
    code = Code.TARGET_PORT_PROTOCOL_MISMATCH if other_protocol else Code.TARGET_PORT_NAME_NOT_FOUND
    if other_protocol:
        found = other_protocol[0]
        cause = (
            f"Port {_called(port)} wants targetPort {port.target_port} over {port.protocol}, but containers declare"
            f" {found.name} for {found.protocol} only ({found.container_port}/{found.protocol})."
        )
        change = _replace(case, position, "protocol", found.protocol)
        fix = _protocol_fix(port.protocol, found, change)
    else:
        quoted = " (quoted, a number is a name)" if str(port.target_port).isdigit() else ""
        cause += f"{quoted}; they declare {_ports(declared) if declared else 'no ports at all'}."
        fix = _by_name(case, position, port, declared) if all_lack else _as_the_others(port, lacking)
        if not all_lack and (strangers := _strangers(members, [each for each, _ in lacking])):
            yield _takes_others(case, port, strangers, members)
            return
    nothing_works = all_lack and not any(each.verdict.ports for each in members)
    severity = Severity.ERROR if nothing_works else Severity.WARNING
    seen = _seen(case, [each for each, _ in lacking])
    yield Finding(code, severity, cause, fix, seen, weight=len(lacking), facts=_inits(lacking))


def _protocol_fix(wanted: str, found: ContainerPort, change: Command) -> Fix:
    """Which of the two is right, only a person can say."""
    return Fix(
        f"If the server speaks {found.protocol}, make the Service's port {found.protocol} (command below); if it speaks"
        f" {wanted}, have the container declare {found.container_port}/{wanted} instead:",
        (change,),
        certain=False,
    )


def _as_the_others(port: ServicePort, lacking: Sequence[tuple[Candidate, UnresolvedPort]]) -> Fix:
    names = listed(each.pod.metadata.name for each, _ in lacking)
    return Fix(
        f"Have {names} declare a port named {port.target_port} over {port.protocol} as the other Pods do; until then"
        " nothing is sent there."
    )


def _by_name(case: Case, position: int, port: ServicePort, declared: Sequence[ContainerPort]) -> Fix:
    usable = [each for each in declared if each.protocol == port.protocol]
    wanted = str(port.target_port)
    number = [each for each in usable if wanted.isdigit() and each.container_port == int(wanted)]
    if number:
        # Quoted, a number is a name.
        return Fix("Write the number without quotes:", (_replace(case, position, "targetPort", int(wanted)),))
    close = [each for each in usable if each.name and misspelt(wanted, each.name) is not None]
    close = close or [each for each in usable if each.name and related(wanted, each.name)]
    choice = close or (list(usable) if len(usable) == 1 else [])
    if choice:
        value: str | int = choice[0].name or choice[0].container_port
        change = _replace(case, position, "targetPort", value)
        return Fix(f"If {_port(choice[0])} is meant, correct targetPort:", (change,), certain=False)
    if declared:
        return Fix(f"Set targetPort to a port that is declared: {_ports(declared)}.", certain=False)
    return Fix(
        f"Name the container's port {wanted} (ports[].name), or set targetPort to the number it listens on.",
        certain=False,
    )


def _unresolved(candidate: Candidate, port: ServicePort) -> UnresolvedPort | None:
    for missing in candidate.verdict.unresolved:
        if (missing.name, missing.protocol) == (port.name, port.protocol):
            return missing
    return None


def _inits(lacking: Sequence[tuple[Candidate, UnresolvedPort]]) -> tuple[str, ...]:
    """A remark if an init container declares the name: it ends before traffic comes."""
    candidate, missing = lacking[0]
    for container in candidate.pod.spec.init_containers:
        if container.restart_policy != "Always" and any(port.name == missing.target for port in container.ports):
            return (f"init container {container.name} declares {missing.target}, but has ended before traffic comes",)
    return ()


# --- by number -------------------------------------------------------------------------------------


def _numbered(case: Case, position: int, port: ServicePort, members: Sequence[Candidate]) -> Iterator[Finding]:
    """A number need not be declared.  Where every container declares ports, one that none declares is suspicious."""
    number = int(port.target_port or port.port)
    silent = [each for each in members if not _may_listen(each, number, port.protocol)]
    if len(silent) < len(members):
        yield from _some_silent(case, port, number, members)
        return
    declared = list({(p.container_port, p.protocol): p for each in silent for p in _ports_of(each)}.values())
    same_number = [each for each in declared if each.container_port == number]
    if same_number:
        yield Finding(
            Code.TARGET_PORT_PROTOCOL_MISMATCH,
            Severity.WARNING,
            f"Port {_called(port)} sends {port.protocol} to {number}, but as far as declared containers listen there"
            f" for {same_number[0].protocol} only.",
            _protocol_fix(port.protocol, same_number[0], _replace(case, position, "protocol", same_number[0].protocol)),
            _seen(case, silent),
            weight=len(silent),
        )
        return
    yield _undeclared(case, position, port, declared, silent)


def _some_silent(case: Case, port: ServicePort, number: int, members: Sequence[Candidate]) -> Iterator[Finding]:
    """Pods of another workload that do not declare the port which the others do: they may not be meant."""
    declaring = [each for each in members if _declares(each, number, port.protocol)]
    others = [
        each
        for each in members
        if each not in declaring and not _proven(each, number, port.protocol) and each.listed_ready
    ]
    strangers = _strangers(members, others)
    if declaring and strangers:
        yield _takes_others(case, port, strangers, members)


def _strangers(members: Sequence[Candidate], lacking: Sequence[Candidate]) -> list[Candidate]:
    """Those of ``lacking`` whose workload has no Pod that declares the port."""
    declaring = {_workload(each) for each in members if each not in lacking}
    return [each for each in lacking if _workload(each) not in declaring] if declaring else []


def _takes_others(
    case: Case, port: ServicePort, strangers: Sequence[Candidate], members: Sequence[Candidate]
) -> Finding:
    target = port.target_port or port.port
    first = strangers[0].pod
    own = [each.pod.metadata.labels.items() for each in members if each not in strangers]
    common = set.intersection(*(set(labels) for labels in own)) if own else set()
    telling = sorted(
        pair for pair in common if pair[0] not in INSTANCE_LABELS and first.metadata.labels.get(pair[0]) != pair[1]
    )
    unmeant = f"If {'it is' if len(strangers) == 1 else 'they are'} not meant"
    fix = Fix(f"{unmeant}, give the Pods that are a label of their own, and select by it.", certain=False)
    if telling:
        key, value = telling[0]
        fix = Fix(
            f"{unmeant}, select also by {key}={value}, which the others have:",
            (merge_patch("service", case.key, {"spec": {"selector": {key: value}}}),),
            certain=False,
        )
    # A Pod without a port of that name is not offered on it; by number, it is.
    follows = (
        "nothing is sent there" if isinstance(target, str) else "part of the connections may go where nothing listens"
    )
    names = listed(_with_workload(each) for each in strangers)
    verb, rest = "does" if len(strangers) == 1 else "do", len(members) - len(strangers)
    do = "Pod does" if rest == 1 else f"{rest:,} Pods do"
    return Finding(
        Code.SELECTOR_TAKES_OTHERS,
        Severity.WARNING,
        f"The selector {pairs(case.service.spec.selector)} also takes {names}, which"
        f" {verb} not declare port {target}/{port.protocol} as the other {do}: {follows}.",
        fix,
        (*_seen(case, members), *evidence.each((each.pod for each in members), "metadata.labels")),
        weight=len(strangers),
    )


def _workload(candidate: Candidate) -> tuple[str, str]:
    """What made the Pod; the ReplicaSets of one Deployment count as one, and so do Pods that nothing made."""
    meta = candidate.pod.metadata
    owner = meta.controller
    if owner is None:
        return "Pod", ""
    hash = meta.labels.get(TEMPLATE_HASH_LABEL, "")
    if owner.kind == "ReplicaSet" and hash and owner.name.endswith(f"-{hash}"):
        return "Deployment", owner.name.removesuffix(f"-{hash}")
    return owner.kind, owner.name


def _with_workload(candidate: Candidate) -> str:
    kind, name = _workload(candidate)
    own = candidate.pod.metadata.name
    said = kind == "Pod" or own.endswith(f" ({kind})")  # a Pod of manifests is called by its workload
    return f"Pod {own}" if said else f"Pod {own} ({kind} {name})"


def _undeclared(
    case: Case,
    position: int,
    port: ServicePort,
    declared: Sequence[ContainerPort],
    silent: Sequence[Candidate],
) -> Finding:
    number = port.target_port or port.port
    usable = [each for each in declared if each.protocol == port.protocol]
    on_host = next((each for each in declared if each.host_port == number), None)
    choice = on_host or (usable[0] if len(usable) == 1 else None)
    facts: tuple[str, ...] = ()
    if on_host is not None:
        facts = (
            f"{number} is the hostPort of {on_host.container_port}; Services send to the containerPort,"
            " so the two may have been confused",
        )
    fix = Fix(f"If not, set targetPort to one that is declared: {_ports(declared)}.", certain=False)
    if choice is not None:
        value: str | int = choice.container_port
        fix = Fix(
            f"If {_port(choice)} is where they listen, send there:",
            (_replace(case, position, "targetPort", value),),
            certain=False,
        )
    defaulted = " (the default, as it equals the port)" if port.target_port == port.port else ""
    return Finding(
        Code.TARGET_PORT_NOT_DECLARED,
        Severity.WARNING,
        f"Port {_called(port)} sends to targetPort {number}{defaulted}, which no container declares:"
        f" they declare {_ports(declared)}.",
        fix,
        _seen(case, silent),
        facts=facts,
    )


def _may_listen(candidate: Candidate, number: int, protocol: str) -> bool:
    """Whether the Pod may listen there: a container that declares no ports at all may listen anywhere."""
    containers = candidate.pod.spec.containers
    if not containers or not all(container.ports for container in containers):
        return True
    return _declares(candidate, number, protocol) or _proven(candidate, number, protocol)


def _declares(candidate: Candidate, number: int, protocol: str) -> bool:
    return any((p.container_port, p.protocol) == (number, protocol) for p in candidate.pod.container_ports())


def _proven(candidate: Candidate, number: int, protocol: str) -> bool:
    """Whether a readiness probe that passes, or will have to, asks this port: then a server listens there."""
    if protocol != "TCP" or not candidate.pod.ready:
        return False
    sidecars = (each for each in candidate.pod.spec.init_containers if each.sidecar)
    return any(
        each.readiness_probe is not None and each.readiness_probe.port == number
        for each in (*candidate.pod.spec.containers, *sidecars)
    )


def _ports_of(candidate: Candidate) -> list[ContainerPort]:
    return [port for port in candidate.pod.container_ports() if isinstance(port, ContainerPort)]


# --- words -----------------------------------------------------------------------------------------


def _replace(case: Case, position: int, field: str, value: str | int) -> Command:
    return json_patch(
        "service", case.key, [{"op": "replace", "path": f"/spec/ports/{position}/{field}", "value": value}]
    )


def _distinct(missing: UnresolvedPort) -> list[ContainerPort]:
    return [port for port in missing.declared if isinstance(port, ContainerPort)]


def _some(lacking: Sequence[tuple[Candidate, UnresolvedPort]], members: Sequence[Candidate]) -> str:
    names = listed(each.pod.metadata.name for each, _ in lacking)
    return f"{len(lacking)} of its {plural(len(members), 'Pod')} ({names})"


def _called(port: ServicePort) -> str:
    return f"{port.name} ({port.port})" if port.name else str(port.port)


def _ports(declared: Sequence[ContainerPort]) -> str:
    return listed([_port(each) for each in declared], 5)


def _port(port: ContainerPort) -> str:
    number = f"{port.container_port}/{port.protocol}"
    return f"{port.name} ({number})" if port.name else number
