"""What DNS answers for a Service, and DNS names of its Pods that do not exist."""

from __future__ import annotations

from collections.abc import Iterator

from seamark.kinds.values import addresses
from seamark.why import evidence
from seamark.why.case import Case, listed
from seamark.why.codes import Code
from seamark.why.finding import Finding, Fix, Severity, create


def answer(case: Case, zone: str = "cluster.local") -> str:
    """The Service's name in DNS, what it answers, and why, in one line."""
    service = case.service
    name = f"{case.name}.{case.namespace}.svc.{zone}"
    if service.external:
        if addresses.parse(service.spec.external_name.rstrip(".")) is not None:
            return f"{name} → NXDOMAIN: externalName is an address"
        return f"{name} → CNAME {service.spec.external_name.rstrip('.')}."
    if service.headless:
        if not case.ready_addresses:
            return f"{name} → NXDOMAIN: it is headless and has no ready endpoint"
        pods = "the addresses its Pods will have" if case.world.planned else listed(case.ready_addresses, 4)
        return f"{name} → {pods} (headless: its ready endpoints)"
    found = [each for each in service.addresses if each]
    if not found:
        return f"{name} → the cluster IP it will be given"
    behind = "" if case.ready_addresses else ", though nothing is behind it"
    return f"{name} → {listed(found)} (its cluster IP{behind})"


def findings(case: Case) -> Iterator[Finding]:
    """Pods with a subdomain without a Service: ``web-0.web`` resolves only if Pod ``web-0`` has subdomain ``web``."""
    if not case.service.headless or not case.service.managed:
        return
    wrong = [
        each
        for each in case.candidates
        if each.pod.spec.hostname
        and each.pod.spec.subdomain
        and each.pod.spec.subdomain != case.name
        and (case.namespace, each.pod.spec.subdomain) not in case.world.services
    ]
    if not wrong:
        return
    first = wrong[0].pod
    meant = first.spec.subdomain
    manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": meant, "namespace": case.namespace},
        "spec": {
            "clusterIP": "None",
            "selector": case.service.spec.selector,
            "ports": [
                {"name": p.name or f"port-{p.port}", "port": p.port, "targetPort": p.target_port or p.port}
                for p in case.service.spec.ports
            ],
        },
    }
    yield Finding(
        Code.SUBDOMAIN_MISMATCH,
        Severity.WARNING,
        f"Its Pods ({listed(each.pod.metadata.name for each in wrong)}) have the subdomain {meant},"
        f" but there is no Service {meant}: names like {first.spec.hostname}.{case.name} do not exist in DNS.",
        Fix(
            f"Make the headless Service {meant} that they name (a StatefulSet's serviceName cannot be changed):",
            (create(manifest),),
        ),
        (
            *evidence.each((each.pod for each in wrong), "spec.hostname", "spec.subdomain"),
            evidence.search(case.world, "Service", case.namespace, name=meant),
            *case.seen("metadata.name"),
        ),
        weight=len(wrong),
    )
