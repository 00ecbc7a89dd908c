"""What is wrong with a Service: the findings of every check, ranked, with the evidence (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from seamark.rules.membership import Reason, Standing
from seamark.rules.objects.service import ServicePort
from seamark.why import evidence
from seamark.why.case import Candidate, Case, listed, pairs, plural
from seamark.why.checks import (
    exposing,
    external,
    handmade,
    members,
    names,
    porting,
    reaching,
    refused,
    selecting,
    standing,
    traffic,
    written,
)
from seamark.why.checks.near import misspelt
from seamark.why.codes import Code
from seamark.why.finding import Finding, Fix, Severity, ranked
from seamark.why.report import Health, PodRow, Report, Table, health_of
from seamark.why.views import Key
from seamark.why.world import World


def _policies(case: Case) -> Iterator[Finding]:
    """Reading NetworkPolicies takes code of its own, which is loaded where there are any."""
    if case.world.seen.policies:
        from seamark.why.checks import policies

        yield from policies.findings(case)


CHECKS: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    standing.findings,
    external.findings,
    selecting.findings,
    handmade.findings,
    members.findings,
    porting.findings,
    written.findings,
    names.findings,
    traffic.findings,
    reaching.findings,
    exposing.findings,
    _policies,
    refused.findings,
)


def findings(case: Case) -> tuple[Finding, ...]:
    """Everything wrong with a Service; the first is the cause to repair first."""
    return ranked([found for check in CHECKS for found in check(case)])


def explain(world: World, key: Key) -> Report:
    """The whole report on one Service."""
    service = world.services.get(key)
    if service is None:
        return _no_service(world, key)
    case = Case(world, service)
    return _report(case, findings(case))


def unhealthy(world: World) -> Iterator[tuple[Key, Report]]:
    """The reports on all Services that need attention; healthy ones are left out."""
    for key, service in world.surveyed.items():
        case = Case(world, service)
        found = findings(case)
        if health_of(found) is not Health.HEALTHY:
            yield key, _report(case, found)
    for key in missing(world):
        yield key, _no_service(world, key)


def missing(world: World) -> list[Key]:
    """The Services that Ingresses send to and that do not exist."""
    wanted = {
        (ingress.metadata.namespace, backend.name)
        for ingress in world.seen.ingresses or ()
        for _, backend in ingress.backends()
    }
    return sorted(wanted - world.services.keys())


def _report(case: Case, found: tuple[Finding, ...]) -> Report:
    world = case.world
    return Report(
        subject=f"service/{case.name}",
        namespace=case.namespace,
        state=state(case, health_of(found)),
        health=health_of(found),
        findings=found,
        facts=tuple(_facts(case)),
        pods=(*(_row(each, planned=world.planned) for each in case.candidates), *_near_rows(case)),
        tables=tuple(_tables(case)),
        ready=() if world.planned else case.ready_addresses,
        notes=tuple(str(each) for each in world.seen.refused),
    )


def state(case: Case, health: Health) -> str:
    """In a few words, for a headline."""
    if case.service.external:
        return f"an alias for {case.service.spec.external_name}"
    count = len(case.ready_addresses)
    if case.world.planned:
        names = [each.pod.metadata.name for each in case.ready]
        return f"will be served by {listed(names)}" if names else f"will have {count or 'no'} endpoints"
    if not count:
        headless = case.service.headless
        return "no ready endpoints (NXDOMAIN in DNS)" if headless else "no ready endpoints"
    yet = ", yet nothing gets through" if health is Health.BROKEN else ""
    alive = [each for each in case.candidates if each.verdict.reason is not Reason.FINISHED]
    some = f" ({len(case.ready)} of {plural(len(alive), 'Pod')} ready)" if len(case.ready) < len(alive) else ""
    return f"{plural(count, 'ready endpoint')}{some}{yet}"


# --- evidence --------------------------------------------------------------------------------------


def _facts(case: Case) -> Iterator[tuple[str, str]]:
    spec = case.service.spec
    yield "type", _type(case)
    if spec.selector:
        yield "selector", pairs(spec.selector)
    if spec.ports:
        yield "ports", listed([_port(port) for port in spec.ports], 6)
    if spec.type == "LoadBalancer" and not case.service.status.load_balancer.ingress:
        yield "outside", "no address from a load balancer yet (pending)"
    if spec.publish_not_ready_addresses:
        yield "publishes", "Pods that are not ready, too (publishNotReadyAddresses)"
    yield "DNS", names.answer(case)


def _type(case: Case) -> str:
    spec = case.service.spec
    if case.service.external:
        return "ExternalName: an alias in DNS; it has no endpoints"
    source = (
        "its endpoints are the Pods it selects" if spec.selector else "no selector: its endpoints are written by hand"
    )
    if case.service.headless:
        return f"headless {spec.type}: DNS answers with the endpoints themselves; {source}"
    return f"{spec.type} {listed(standing.cluster_ips(case))}; {source}".replace("  ", " ").replace(" ;", ";")


def _port(port: ServicePort) -> str:
    name = f"{port.name} " if port.name else ""
    node = f", node port {port.node_port}" if port.node_port else ""
    return f"{name}{port.port} → {port.target_port or port.port}/{port.protocol}{node}"


def _row(candidate: Candidate, *, planned: bool) -> PodRow:
    verdict, pod = candidate.verdict, candidate.pod
    reasons = [reason.value for reason in verdict.reasons]
    if candidate.trouble is not None:
        reasons.insert(0, candidate.trouble.code.value)
    return PodRow(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        standing=verdict.standing.value,
        ready=candidate.listed_ready,
        addresses=() if planned else (*verdict.ipv4, *verdict.ipv6) or pod.ips,
        reasons=tuple(dict.fromkeys(reasons)),
        why=reason_of(candidate),
    )


def reason_of(candidate: Candidate) -> str:
    """Why a Pod has its standing; "" for one that simply gets traffic."""
    verdict = candidate.verdict
    if Reason.NO_ADDRESS_OF_FAMILY in verdict.reasons:
        return "no address of the Service's family"
    told = [candidate.trouble.detail] if candidate.trouble is not None else []
    if Reason.PUBLISHED_ANYWAY in verdict.reasons:
        told.append("published anyway")
    told += [f"no port {missing.target}/{missing.protocol}" for missing in verdict.unresolved]
    return "; ".join(told)


def _near_rows(case: Case) -> Iterable[PodRow]:
    """Pods that the selector almost matches, if it matches none."""
    if case.candidates or not case.service.managed:
        return
    for miss in case.near_misses:
        for pod in miss.shape.pods[:3]:
            wrong = [f"{d.key} is {d.found}" if d.found_key == d.key else f"no {d.key}" for d in miss.differences]
            ips = () if case.world.planned else pod.ips
            yield _stranger(pod.key, ips, Reason.LABEL_MISMATCH, f"not selected: {', '.join(wrong)}")
    for namespace, pods in sorted(selecting.pods_elsewhere(case).items())[:3]:
        for pod in pods[:3]:
            yield _stranger(pod.key, pod.ips, Reason.OTHER_NAMESPACE, f"matches, but is in namespace {namespace}")


def _stranger(key: Key, ips: tuple[str, ...], reason: Reason, why: str) -> PodRow:
    return PodRow(key[0], key[1], Standing.EXCLUDED.value, False, ips, (reason.value,), why)


def _tables(case: Case) -> Iterator[Table]:
    """The Endpoints and EndpointSlices that are written for the Service."""
    rows: list[tuple[str, ...]] = []
    if case.endpoints is not None:
        ready = [each.ip for each in case.endpoints.ready()]
        waiting = [each.ip for each in case.endpoints.not_ready()]
        by = "controller" if case.endpoints.made_by_controller else "hand"
        rows.append((f"Endpoints {case.name}", by, listed(ready, 4) or "-", listed(waiting, 4) or "-"))
    for each in case.slices[:20]:
        waiting = sorted(set(each.all_addresses()) - set(each.ready_addresses()))
        by = each.managed_by.removesuffix(".k8s.io") or "hand"
        rows.append((each.metadata.name, by, listed(each.ready_addresses(), 4) or "-", listed(waiting, 4) or "-"))
    if rows:
        yield Table(("WRITTEN", "BY", "READY", "NOT READY"), tuple(rows))


# --- what is not there -----------------------------------------------------------------------------


def _no_service(world: World, key: Key) -> Report:
    namespace, name = key
    others = sorted(where for where, other in world.services if other == name and where != namespace)
    alike = sorted(other for where, other in world.services if where == namespace and misspelt(other, name) is not None)
    leading = [
        (path, ingress)
        for ingress in world.ingresses_by_namespace.get(namespace, ())
        for path, backend in ingress.backends()
        if backend.name == name
    ]
    cause = f"There is no Service {name} in namespace {namespace}"
    if leading:
        cause += f", to which Ingress {listed(sorted({each.metadata.name for _, each in leading}))} sends"
    fix = Fix("Make it, or check the name and the namespace (-n).")
    if alike:
        cause += f"; there is {listed(alike)}"
        fix = Fix(f"If {alike[0]} is meant, use that name.", certain=False)
    elif others:
        cause += f", but in {listed(others)}"
        fix = Fix(f"Ask with -n {others[0]}; Pods of other namespaces reach it as {name}.{others[0]}.", certain=False)
    seen: tuple[evidence.Evidence, ...] = (
        evidence.search(world, "Service", namespace, name=name),
        *(evidence.search(world, "Service", namespace, name=other) for other in alike),
        evidence.search(world, "Service", "", name=name),
        *evidence.each(world.services[where, name] for where in others),
        *(field for path, ingress in leading for field in evidence.of(ingress, path)),
    )
    missing = Finding(Code.SERVICE_NOT_FOUND, Severity.ERROR, f"{cause}.", fix, seen)
    notes = tuple(str(each) for each in world.seen.refused)
    return Report(f"service/{name}", namespace, "does not exist", Health.BROKEN, (missing,), notes=notes)
