"""Services without a selector: what people wrote for them, and why it is or is not used."""

from __future__ import annotations

from collections.abc import Iterator

from seamark.why import handmade_endpoints, handmade_slices
from seamark.why.case import Case, listed
from seamark.why.codes import Code
from seamark.why.finding import Finding, Fix, Severity, label, merge_patch
from seamark.why.near import misspelt, related
from seamark.why.views import SERVICE_NAME_LABEL, EndpointSlice, Service

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
    abandoned = case.endpoints is None or case.endpoints.made_by_controller
    if not case.ready_addresses and abandoned and len(case.slices) == len(case.controller_slices):
        yield from _strays(case)
        yield _nothing(case)


# --- nothing, or something that does not belong ----------------------------------------------------


def _strays(case: Case) -> Iterator[Finding]:
    """Endpoints and slices of no Service, with a name close to this one's."""
    for each in case.world.strays(case.namespace):
        if each.service_name:
            if _alike(each.service_name, case.name):
                yield _named_otherwise(case, each)
        elif _meant(each, case.service):
            yield Finding(
                Code.SLICE_WITHOUT_SERVICE_NAME,
                Severity.ERROR,
                f"It has no selector, and EndpointSlice {each.metadata.name} ({listed(each.all_addresses())}), which"
                f" looks made for it, lacks the label {SERVICE_NAME_LABEL}, so it is ignored.",
                Fix(
                    "If it is for this Service, label it:",
                    (label("endpointslice", each.key, f"{SERVICE_NAME_LABEL}={case.name}"),),
                    certain=False,
                ),
            )
    for endpoints in case.world.endpoints.values():
        orphan = endpoints.key[0] == case.namespace and endpoints.key not in case.world.services
        name = endpoints.metadata.name
        if orphan and _alike(name, case.name):
            yield Finding(
                Code.ENDPOINTS_NAMED_OTHERWISE,
                Severity.ERROR,
                f"It has no selector, and Endpoints {name} ({listed(each.ip for each in endpoints.ready())}) belong to"
                f" no Service: Endpoints must have the Service's name, {case.name}.",
                Fix(f"If they are for this Service, make them again under the name {case.name}.", certain=False),
            )


def _meant(each: EndpointSlice, service: Service) -> bool:
    """Whether a slice without a Service's name looks made for this one."""
    name = each.metadata.name
    if name == service.metadata.name or name.startswith(f"{service.metadata.name}-"):
        return True
    if any(owner.uid == service.metadata.uid and owner.kind == "Service" for owner in each.metadata.owner_references):
        return True
    return _alike(name, service.metadata.name)


def _alike(one: str, other: str) -> bool:
    return misspelt(one, other) is not None or related(one, other)


def _named_otherwise(case: Case, each: EndpointSlice) -> Finding:
    return Finding(
        Code.SLICE_FOR_OTHER_SERVICE,
        Severity.ERROR,
        f"It has no selector, and EndpointSlice {each.metadata.name} ({listed(each.all_addresses())}) is labelled for"
        f" Service {each.service_name}, which does not exist.",
        Fix(
            f"If Service {case.name} is meant, correct the label:",
            (label("endpointslice", each.key, f"{SERVICE_NAME_LABEL}={case.name}", overwrite=True),),
            certain=False,
        ),
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
