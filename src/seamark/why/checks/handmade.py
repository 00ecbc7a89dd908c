"""Services without a selector: what people wrote for them, and why it is or is not used."""

from __future__ import annotations

from collections.abc import Iterator

from seamark.why.case import Case, listed
from seamark.why.checks import handmade_endpoints, handmade_slices, strays
from seamark.why.codes import Code
from seamark.why.finding import Finding, Fix, Severity, merge_patch

_NAMES = ("app.kubernetes.io/name", "app", "k8s-app", "run", "name")


def findings(case: Case) -> Iterator[Finding]:
    """What is wrong with hand-made endpoints; beside a selector, only whether slices are used at all."""
    if case.service.external:
        return
    if case.service.managed:
        yield from handmade_slices.port_findings(case, handmade_slices.hand_made(case))
        return
    yield from handmade_slices.findings(case)
    yield from handmade_endpoints.findings(case)
    yield from _gone(case)
    abandoned = case.endpoints is None or case.endpoints.made_by_controller
    if not case.ready_addresses and abandoned and len(case.slices) == len(case.controller_slices):
        found = list(strays.findings(case))
        yield from found or [_nothing(case)]


def _gone(case: Case) -> Iterator[Finding]:
    """Addresses that somebody wrote for a Pod, which has gone since; nobody follows Pods here."""
    hand_made = handmade_slices.hand_made(case)
    targets = {
        (address, endpoint.target_ref.name)
        for each in hand_made
        for endpoint in each.endpoints or ()
        if endpoint.target_ref is not None and endpoint.target_ref.kind == "Pod" and endpoint.ready
        for address in endpoint.addresses or ()
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
            " selector, so nobody updates them.",
            Fix("Give it a selector that picks the Pods, or write their present addresses."),
            weight=len(dead),
        )


def _nothing(case: Case) -> Finding:
    """The bare fact; and if Pods are called like the Service, what its selector may have been meant to be."""
    chosen: tuple[str, str] | None = None
    count = 0
    for shape in case.world.shapes(case.namespace):
        for key in _NAMES:
            if shape.labels.get(key) == case.name and (chosen is None or len(shape.pods) > count):
                chosen, count = (key, case.name), len(shape.pods)
    cause = "It has no selector, so no Pods are looked for, and nobody has written Endpoints or EndpointSlices for it"
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
        )
    return Finding(
        Code.SELECTORLESS_WITHOUT_ENDPOINTS,
        Severity.ERROR,
        f"{cause}.",
        Fix("Give it a selector, or write an EndpointSlice with the addresses that should answer."),
    )
