"""Address families: Pods without an address of the family the Service is for."""

from __future__ import annotations

from collections.abc import Iterator

from seamark.kinds.values.addresses import Family
from seamark.rules.membership import Reason
from seamark.why.case import Case, listed, plural
from seamark.why.codes import Code
from seamark.why.finding import Finding, Fix, Severity, merge_patch


def findings(case: Case) -> Iterator[Finding]:
    wrong = [each for each in case.candidates if Reason.NO_ADDRESS_OF_FAMILY in each.verdict.reasons]
    if wrong:
        first = wrong[0].pod
        families = " or ".join(case.service.families)
        yield Finding(
            Code.NO_ADDRESS_OF_FAMILY,
            Severity.WARNING if case.ready else Severity.ERROR,
            f"It is a Service for {families} only, and {_whose(case, len(wrong))} no such address"
            f" ({first.metadata.name}: {', '.join(first.ips)}).",
            _fix(case, "IPv6" if "IPv4" in case.service.families else "IPv4"),
            weight=len(wrong),
        )
    if len(case.service.spec.ip_families) > 1 and case.ready:
        yield from _empty(case)


def _whose(case: Case, count: int) -> str:
    total = len(case.candidates)
    if count == total:
        return "the Pod it selects has" if total == 1 else f"the {plural(total, 'Pod')} it selects have"
    return f"{count} of the {plural(total, 'Pod')} it selects have"


def _fix(case: Case, other: Family) -> Fix:
    if case.service.spec.cluster_ip == "None":
        return Fix(
            f"Make it a Service for {other}:",
            (merge_patch("service", case.key, {"spec": {"ipFamilyPolicy": "SingleStack", "ipFamilies": [other]}}),),
        )
    return Fix(
        f"Let it have an {other} address as well (its first family cannot change; else make it anew):",
        (merge_patch("service", case.key, {"spec": {"ipFamilyPolicy": "PreferDualStack"}}),),
    )


def _empty(case: Case) -> Iterator[Finding]:
    """A dual-stack Service that answers on two addresses, with nobody behind one of them."""
    for family in case.service.families:
        if not any(each.verdict.addresses(family) for each in case.ready):
            names = listed(each.pod.metadata.name for each in case.ready)
            yield Finding(
                Code.SECOND_FAMILY_EMPTY,
                Severity.WARNING,
                f"It is dual-stack, but none of its ready Pods ({names}) has an {family} address, so nothing answers"
                f" on {family}.",
                Fix(f"Give the Pods {family} addresses (the network plugin does), or make the Service single-stack."),
            )
