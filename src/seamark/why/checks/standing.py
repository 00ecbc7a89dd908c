"""The Service itself: whether it is being deleted, and whether its cluster IPs are in range and its own."""

from __future__ import annotations

from collections.abc import Iterator

from seamark.rules.objects.network import covered
from seamark.why import evidence
from seamark.why.case import Case, listed
from seamark.why.codes import Code
from seamark.why.finding import Finding, Fix, Severity, look


def findings(case: Case) -> Iterator[Finding]:
    meta = case.service.metadata
    if case.namespace in case.world.terminating_namespaces:
        yield Finding(
            Code.NAMESPACE_TERMINATING,
            Severity.ERROR,
            f"Namespace {case.namespace} is being deleted; no endpoints are made in it any more.",
            Fix(
                "Deploy to another namespace; if this one stays, its conditions say what it waits for.",
                (),
                (look("get", "namespace", case.namespace, "-o", "yaml"),),
            ),
            evidence.each(
                (each for each in case.world.seen.namespaces or () if each.metadata.name == case.namespace),
                "metadata.deletionTimestamp",
                "status.phase",
            ),
        )
    if meta.deletion_timestamp is not None:
        held = f", held by the finalizer {listed(meta.finalizers)}" if meta.finalizers else ""
        yield Finding(
            Code.SERVICE_TERMINATING,
            Severity.WARNING if case.ready_addresses else Severity.ERROR,
            f"The Service itself is being deleted since {meta.deletion_timestamp}{held}; no new EndpointSlices are made"
            " for it.",
            Fix(
                "Find out why the controller that set the finalizer does not remove it, and make the Service anew once"
                " it is gone."
            ),
            case.seen("metadata.deletionTimestamp", "metadata.finalizers"),
        )
    yield from _out_of_range(case)
    yield from _shared(case)


def cluster_ips(case: Case) -> list[str]:
    return [each for each in case.service.addresses if each not in ("", "None")]


def _out_of_range(case: Case) -> Iterator[Finding]:
    cidrs = case.world.seen.cidrs or ()
    networks = [network for cidr in cidrs for network in cidr.networks]
    if not networks:
        return
    outside = [each for each in cluster_ips(case) if not covered(each, cidrs)]
    if outside:
        ranges = listed([str(each) for each in networks])
        yield Finding(
            Code.CLUSTER_IP_OUT_OF_RANGE,
            Severity.WARNING,
            f"Its cluster IP {listed(outside)} lies outside the cluster's service ranges ({ranges}): proxies and"
            " routes may not know it.",
            Fix(
                "Make the Service anew to have it given another (it cannot be changed), or add a ServiceCIDR around it."
            ),
            (*case.seen("spec.clusterIP", "spec.clusterIPs"), *evidence.each(cidrs, "spec.cidrs")),
        )


def _shared(case: Case) -> Iterator[Finding]:
    for address in cluster_ips(case):
        others = [
            f"{other.metadata.namespace}/{other.metadata.name}"
            for other in case.world.services_by_cluster_ip.get(address, ())
            if other.key != case.key
        ]
        if others:
            yield Finding(
                Code.CLUSTER_IP_SHARED,
                Severity.WARNING,
                f"Its cluster IP {address} is also that of Service {listed(others)}: only one gets the traffic.",
                Fix("Make one of them anew, so that it is given an address of its own."),
                evidence.each(
                    case.world.services_by_cluster_ip[address],
                    "metadata.namespace",
                    "spec.clusterIP",
                    "spec.clusterIPs",
                ),
            )
