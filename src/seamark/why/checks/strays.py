"""Endpoints and slices of no Service, which may be meant for a Service without a selector that has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from seamark.kinds.wellknown import SERVICE_NAME_LABEL
from seamark.rules.slices.objects import owned
from seamark.why import evidence
from seamark.why.case import Case, listed
from seamark.why.checks.near import misspelt, related
from seamark.why.codes import Code
from seamark.why.finding import Finding, Fix, Severity, create, label
from seamark.why.views import Endpoints, EndpointSlice, Service


def findings(case: Case) -> Iterator[Finding]:
    slices = case.world.strays(case.namespace)
    for each in slices:
        if each.service_name:
            if _alike(each.service_name, case.name) or len(slices) == 1:
                yield _for_another(case, each)
        elif _meant(each, case.service) or len(slices) == 1:
            yield _nameless(case, each)
    orphans = [
        each
        for each in case.world.endpoints.values()
        if each.key[0] == case.namespace and each.key not in case.world.services and not each.leader_lock
    ]
    for each_endpoints in orphans:
        if _alike(each_endpoints.metadata.name, case.name) or len(orphans) == 1:
            yield _named_otherwise(case, each_endpoints)
    yield from _elsewhere(case)


def _alike(one: str, other: str) -> bool:
    return misspelt(one, other) is not None or related(one, other)


def _meant(each: EndpointSlice, service: Service) -> bool:
    """Whether a slice without a Service's name looks made for this one."""
    return owned(each, service) or _alike(each.metadata.name, service.metadata.name)


def _nameless(case: Case, each: EndpointSlice) -> Finding:
    return Finding(
        Code.SLICE_WITHOUT_SERVICE_NAME,
        Severity.ERROR,
        f"It has no selector, and EndpointSlice {each.metadata.name} ({listed(each.all_addresses())}), which may be"
        f" meant for it, lacks the label {SERVICE_NAME_LABEL}, so it is ignored.",
        Fix(
            "If it is for this Service, label it:",
            (label("endpointslice", each.key, f"{SERVICE_NAME_LABEL}={case.name}"),),
            certain=False,
        ),
        (*case.seen("spec.selector"), *evidence.of(each, "metadata.labels", "endpoints")),
    )


def _for_another(case: Case, each: EndpointSlice) -> Finding:
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
        (
            *case.seen("spec.selector"),
            *evidence.of(each, f"metadata.labels[{SERVICE_NAME_LABEL}]", "endpoints"),
            evidence.search(case.world, "Service", case.namespace, name=each.service_name),
        ),
    )


def _named_otherwise(case: Case, endpoints: Endpoints) -> Finding:
    name = endpoints.metadata.name
    return Finding(
        Code.ENDPOINTS_NAMED_OTHERWISE,
        Severity.ERROR,
        f"It has no selector, and Endpoints {name} ({listed(each.ip for each in endpoints.ready())}) belong to no"
        f" Service: Endpoints must have the Service's name, {case.name}.",
        Fix(
            "If they are for this Service, make them under its name:",
            (create(_endpoints(endpoints, case)),),
            certain=False,
        ),
        (
            *case.seen("spec.selector"),
            *evidence.of(endpoints, "subsets"),
            evidence.search(case.world, "Service", case.namespace, name=name),
        ),
    )


# --- in another namespace --------------------------------------------------------------------------


def _elsewhere(case: Case) -> Iterator[Finding]:
    """Endpoints or slices with the right name in another namespace, which has no such Service."""
    seen = case.world.seen
    for each in seen.slices or ():
        there = each.metadata.namespace
        same = each.service_name == case.name and not each.made_by_controller
        if there != case.namespace and same and (there, case.name) not in case.world.services:
            yield _misplaced(case, each, _slice(each, case))
    for endpoints in seen.endpoints or ():
        there = endpoints.metadata.namespace
        same = endpoints.metadata.name == case.name and not endpoints.made_by_controller
        if there != case.namespace and same and (there, case.name) not in case.world.services:
            yield _misplaced(case, endpoints, _endpoints(endpoints, case))


def _misplaced(case: Case, obj: Endpoints | EndpointSlice, manifest: dict[str, Any]) -> Finding:
    there = obj.metadata.namespace
    what = f"{evidence.kind_of(obj)} {obj.metadata.name}"
    return Finding(
        Code.ENDPOINTS_IN_OTHER_NAMESPACE,
        Severity.ERROR,
        f"It has no selector, and {what} is in namespace {there}: endpoints must be in the Service's namespace,"
        f" {case.namespace}.",
        Fix(f"If it is for this Service, make it in namespace {case.namespace}:", (create(manifest),), certain=False),
        (
            *case.seen("spec.selector"),
            *evidence.of(obj, "metadata.namespace"),
            evidence.search(case.world, "Service", there, name=case.name),
        ),
    )


def _endpoints(endpoints: Endpoints, case: Case) -> dict[str, Any]:
    subsets = [
        {
            "addresses": [{"ip": each.ip} for each in subset.addresses or ()],
            "ports": [msgspec.to_builtins(port) for port in subset.ports or ()],
        }
        for subset in endpoints.subsets or ()
    ]
    metadata = {"name": case.name, "namespace": case.namespace}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": subsets}


def _slice(each: EndpointSlice, case: Case) -> dict[str, Any]:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": each.metadata.name,
            "namespace": case.namespace,
            "labels": {SERVICE_NAME_LABEL: case.name},
        },
        "addressType": each.address_type,
        "endpoints": [msgspec.to_builtins(endpoint) for endpoint in each.endpoints or ()],
        "ports": [msgspec.to_builtins(port) for port in each.ports or ()],
    }
