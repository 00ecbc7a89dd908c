"""Why a DNS name is not found, told from the lookups along a Pod's search path (pure).

The lookups themselves are made by the DNS engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import msgspec

from seamark.why.case import listed
from seamark.why.checks.near import misspelt
from seamark.why.codes import Code
from seamark.why.finding import Finding, Fix, Severity
from seamark.why.report import Health, Report, Table
from seamark.why.views import Key, Service


class Step(msgspec.Struct, frozen=True):
    """One lookup: what was asked, what was answered, and why."""

    name: str
    type: str
    result: str
    why: str
    records: tuple[str, ...] = ()


def services_meant(asked: str, namespace: str, zone: str) -> list[Key]:
    """The Services a name may mean to a Pod of that namespace, the likeliest first."""
    bare = asked.rstrip(".")
    bare = bare.removesuffix(f".{zone}").removesuffix(".svc")
    labels = [label for label in bare.split(".") if not label.startswith("_")]
    match labels:
        case [name]:
            return [(namespace, name)]
        case [first, second]:
            # web.shop is the Service web of shop; web-0.web the Pod web-0 of the headless Service web.
            return [(second, first), (namespace, second)]
        case [_, name, where]:
            return [(where, name)]
    return []


def explain_name(
    asked: str,
    steps: Sequence[Step],
    *,
    namespace: str,
    zone: str,
    services: Iterable[Service],
    behind: Report | None,
) -> Report:
    """The report on a name; ``behind`` is the report on the Service that the name leads to, if there is one."""
    table = Table(("NAME", "TYPE", "RESULT", "WHY"), tuple(_rows(steps)))
    found = [record.split()[-1] for step in steps for record in step.records if step.result == "found"]
    subject = f"dns/{asked}"
    if found:
        notes: tuple[str, ...] = ()
        if behind is not None and not behind.healthy:
            notes = (f"the name is found, but {behind.subject} in namespace {behind.namespace}: {behind.state}",)
        state = f"found: {listed(found, 4)}"
        return Report(subject, namespace, state, Health.HEALTHY, tables=(table,), ready=tuple(found), notes=notes)
    missing = _missing(asked, namespace, zone, {service.key: service for service in services}, behind)
    # The Service behind the name has to be repaired, so its findings follow.
    more = behind.findings[1:] if behind is not None and not behind.healthy else ()
    return Report(subject, namespace, "not found", Health.BROKEN, (missing, *more), tables=(table,))


def _rows(steps: Iterable[Step]) -> Iterator[tuple[str, ...]]:
    """One row per answer; record types with the same answer share a row."""
    for _, alike in groupby(steps, key=lambda step: (step.name, step.result, step.why, step.records)):
        same = list(alike)
        step = same[0]
        data = "; ".join(" ".join(record.split()[3:]) for record in step.records)
        why = " ".join(filter(None, (data, f"({step.why})" if data else step.why)))
        yield step.name, ",".join(each.type for each in same), step.result, why


def _missing(asked: str, namespace: str, zone: str, services: dict[Key, Service], behind: Report | None) -> Finding:
    meant = services_meant(asked, namespace, zone)
    there = next((key for key in meant if key in services), None)
    if there is not None:
        headless = services[there].spec.cluster_ip == "None"
        why = "it is headless and has no ready endpoint" if headless else "it has no such record"
        cause = f"{asked} is Service {there[1]} of namespace {there[0]}, and DNS answers NXDOMAIN: {why}"
        if behind is not None and behind.cause is not None:
            return Finding(Code.NAME_NOT_FOUND, Severity.ERROR, f"{cause}. {behind.cause.cause}", behind.cause.fix)
        return Finding(Code.NAME_NOT_FOUND, Severity.ERROR, f"{cause}.", Fix("Ask for a record it has."))
    elsewhere = sorted(key for key in services if any(key[1] == name for _, name in meant))
    alike = sorted(
        key for key in services if any(key[0] == where and misspelt(key[1], name) is not None for where, name in meant)
    )
    cause = f"No name on the search path of a Pod in namespace {namespace} leads anywhere for {asked}"
    if alike:
        name = alike[0][1] if alike[0][0] == namespace else f"{alike[0][1]}.{alike[0][0]}"
        return _guess(f"{cause}; there is a Service {alike[0][1]} in namespace {alike[0][0]}.", name)
    if elsewhere:
        where, name = elsewhere[0]
        others = listed(other for other, _ in elsewhere)
        return _guess(f"{cause}; Service {name} is in namespace {others}.", f"{name}.{where}")
    return Finding(
        Code.NAME_NOT_FOUND, Severity.ERROR, f"{cause}.", Fix("Make the Service, or check the name and the namespace.")
    )


def _guess(cause: str, name: str) -> Finding:
    return Finding(Code.NAME_NOT_FOUND, Severity.ERROR, cause, Fix(f"If that is meant, ask for {name}.", certain=False))
