"""The Pods that a Service selects: those that get no traffic, and those without an address of its family."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seamark.kinds.values import times
from seamark.kinds.values.addresses import Family
from seamark.rules.membership import Reason
from seamark.why import evidence
from seamark.why.case import Candidate, Case, listed, plural
from seamark.why.codes import Code
from seamark.why.finding import Finding, Fix, Severity, merge_patch

# Terminating or finished Pods are normal while others serve.
_PASSING = frozenset((Code.POD_TERMINATING, Code.POD_FINISHED, Code.POD_EVICTED))

_STARTING = frozenset((Code.POD_STARTING, Code.POD_NOT_SCHEDULED, Code.PROBE_PENDING))
_YOUTH = 120.0  # seconds
_FAMILIES = ("spec.ipFamilies", "spec.ipFamilyPolicy", "spec.clusterIP")


def findings(case: Case) -> Iterator[Finding]:
    """One finding per cause."""
    yield from _families(case)
    if case.service.spec.publish_not_ready_addresses:
        yield from _published(case)
    groups: dict[Code, list[Candidate]] = {}
    for each in case.candidates:
        if each.trouble is not None and not each.listed_ready and not _wrong_family(each):
            groups.setdefault(each.trouble.code, []).append(each)
    waiting = any(code not in _PASSING for code in groups)
    for code, members in groups.items():
        if case.ready and code in _PASSING:
            continue
        if waiting and code in _PASSING:
            # What keeps their successors from serving is the cause.
            yield _finding(case, code, members, Severity.HINT)
            continue
        # While others serve, a Pod that is only just being started is a rollout, not a problem.
        if case.ready and code in _STARTING and all(_young(each, case.world.now) for each in members):
            continue
        yield _finding(case, code, members)
    yield from _on_broken_nodes(case)


def _young(candidate: Candidate, now: float | None) -> bool:
    made = candidate.pod.metadata.creation_timestamp
    return made is not None and now is not None and now - times.parse(made) < _YOUTH


def _wrong_family(candidate: Candidate) -> bool:
    """Whether it has no address of the Service's families, which :func:`_families` reports."""
    return Reason.NO_ADDRESS_OF_FAMILY in candidate.verdict.reasons


def _finding(case: Case, code: Code, members: Sequence[Candidate], severity: Severity | None = None) -> Finding:
    first = members[0]
    assert first.trouble is not None
    look = (first.trouble.look,) if first.trouble.look is not None else ()
    events = _events(case, first)
    return Finding(
        code,
        severity or (Severity.WARNING if case.ready else Severity.ERROR),
        f"{_who(case, members)}: {first.trouble.detail}.",
        Fix(first.trouble.fix, first.trouble.commands, look, certain=not first.trouble.commands),
        (
            case.pods_found(),
            *evidence.each((each.pod for each in members), "status.conditions[Ready].status"),
            *first.trouble.evidence,
            *events,
        ),
        weight=len(members),
        facts=tuple(
            f"event on {event.about.replace('/', ' ')}: {event.reason}: {' '.join(event.message.split())[:300]}"
            for event in events
        ),
    )


def _who(case: Case, members: Sequence[Candidate]) -> str:
    """The beginning of the cause: the Pods concerned.  The trouble of the first one follows it."""
    first, total = members[0].pod, len(case.candidates)
    how = "is left out" if first.ready else "is not ready"
    if members[0].trouble is not None and members[0].trouble.code in _PASSING:
        how = "serves no more"
    if len(members) == 1:
        which = "the only Pod" if total == 1 else f"one of {plural(total, 'Pod')}"
        return f"Pod {first.metadata.name}, {which} it selects, {how}"
    names = listed(each.pod.metadata.name for each in members)
    whole = "Both Pods" if total == 2 else f"All {total:,} Pods"
    which = whole if len(members) == total else f"{len(members):,} of {plural(total, 'Pod')}"
    return f"{which} it selects ({names}) fail alike; {first.metadata.name} {how}"


def _events(case: Case, candidate: Candidate) -> tuple[evidence.Told, ...]:
    """The two newest Events about the Pod."""
    events = case.world.events_by_object.get(("Pod", *candidate.pod.key), ())
    return tuple(evidence.told(event) for event in events[:2])


def _on_broken_nodes(case: Case) -> Iterator[Finding]:
    """Pods that still count as ready although their nodes are not ready."""
    broken = [
        each
        for each in case.ready
        if each.trouble is None
        and each.node is not None
        and each.node.condition("Ready") is not None
        and not each.node.ready
    ]
    if not broken:
        return
    nodes = sorted({each.pod.spec.node_name for each in broken})
    condition = broken[0].node.condition("Ready") if broken[0].node is not None else None
    why = f" ({condition.reason})" if condition is not None and condition.reason else ""
    yield Finding(
        Code.NODE_NOT_READY,
        Severity.WARNING,
        f"{listed(f'Node {name}' for name in nodes)} {'is' if len(nodes) == 1 else 'are'} not ready{why}, though"
        f" {listed(f'Pod {each.pod.metadata.name}' for each in broken)} there still counts as ready.",
        Fix("Repair the node, or drain it so that its Pods move to others."),
        (
            *evidence.each((each.pod for each in broken), "spec.nodeName", "status.conditions[Ready].status"),
            *evidence.each((each.node for each in broken if each.node is not None), "status.conditions[Ready]"),
        ),
        weight=len(broken),
    )


def _published(case: Case) -> Iterator[Finding]:
    """Traffic to Pods that are not ready: often intended for a headless Service, seldom for one with a cluster IP."""
    sick = [
        each
        for each in case.ready
        if each.trouble is not None and not each.verdict.serving and each.trouble.code not in _PASSING
    ]
    if not sick or case.service.headless:
        return
    first = sick[0]
    assert first.trouble is not None
    yield Finding(
        Code.PUBLISHED_NOT_READY,
        Severity.WARNING,
        f"publishNotReadyAddresses is set, so {len(sick)} of {plural(len(case.ready), 'endpoint')}"
        f" {'is listed as ready though its Pod is' if len(sick) == 1 else 'are listed as ready though their Pods are'}"
        f" not ({first.pod.metadata.name}: {first.trouble.detail}).",
        Fix(
            "Make the Pods ready, or stop publishing those that are not:",
            (merge_patch("service", case.key, {"spec": {"publishNotReadyAddresses": False}}),),
            (first.trouble.look,) if first.trouble.look is not None else (),
        ),
        (
            *case.seen("spec.publishNotReadyAddresses"),
            case.pods_found(),
            *evidence.each((each.pod for each in sick), "status.conditions[Ready].status"),
            *first.trouble.evidence,
        ),
        weight=len(sick),
    )


# --- address families ------------------------------------------------------------------------------


def _families(case: Case) -> Iterator[Finding]:
    """Pods without an address of the families that the Service is for."""
    wrong = [each for each in case.candidates if Reason.NO_ADDRESS_OF_FAMILY in each.verdict.reasons]
    if wrong:
        first = wrong[0].pod
        families = " or ".join(case.service.families)
        yield Finding(
            Code.NO_ADDRESS_OF_FAMILY,
            Severity.WARNING if case.ready else Severity.ERROR,
            f"It is a Service for {families} only, and {_which(case, len(wrong))} no such address"
            f" ({first.metadata.name}: {', '.join(first.ips)}).",
            _fix(case, "IPv6" if "IPv4" in case.service.families else "IPv4"),
            (
                *case.seen(*_FAMILIES),
                case.pods_found(),
                *evidence.each((each.pod for each in wrong), "status.podIPs", "status.podIP"),
            ),
            weight=len(wrong),
        )
    if len(case.service.spec.ip_families) > 1 and case.ready:
        yield from _empty(case)


def _which(case: Case, count: int) -> str:
    total = len(case.candidates)
    if count == total:
        return "the Pod it selects has" if total == 1 else f"the {plural(total, 'Pod')} it selects have"
    return f"{count} of the {plural(total, 'Pod')} it selects {'has' if count == 1 else 'have'}"


def _fix(case: Case, other: Family) -> Fix:
    if case.service.headless:
        return Fix(
            f"Make it a Service for {other}:",
            (merge_patch("service", case.key, {"spec": {"ipFamilyPolicy": "SingleStack", "ipFamilies": [other]}}),),
        )
    return Fix(
        f"Let it have an {other} address as well (its first family cannot change; else make it anew):",
        (merge_patch("service", case.key, {"spec": {"ipFamilyPolicy": "PreferDualStack"}}),),
    )


def _empty(case: Case) -> Iterator[Finding]:
    """A dual-stack Service without a ready endpoint for one of its two addresses."""
    for family in case.service.families:
        if not any(each.verdict.addresses(family) for each in case.ready):
            names = listed(each.pod.metadata.name for each in case.ready)
            yield Finding(
                Code.SECOND_FAMILY_EMPTY,
                Severity.WARNING,
                f"It is dual-stack, but none of its ready Pods ({names}) has an {family} address, so nothing answers"
                f" on {family}.",
                Fix(f"Give the Pods {family} addresses (the network plugin does), or make the Service single-stack."),
                (
                    *case.seen(*_FAMILIES),
                    case.pods_found(),
                    *evidence.each((each.pod for each in case.ready), "status.podIPs", "status.podIP"),
                ),
            )
