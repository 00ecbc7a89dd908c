"""Which Services take a Pod, which do not, and why (pure)."""

from __future__ import annotations

from seamark.why import evidence
from seamark.why.case import Case, listed, pairs, patient, plural
from seamark.why.checks import porting
from seamark.why.checks.near import misspelt, near_miss
from seamark.why.checks.pods import trouble
from seamark.why.codes import Code
from seamark.why.explain import reason_of
from seamark.why.finding import Finding, Fix, Severity, ranked
from seamark.why.report import Health, Report, Table, health_of
from seamark.why.views import Key, Pod
from seamark.why.world import Shape, World

_NOT_SELECTED = "not selected"


def explain_pod(world: World, key: Key) -> Report:
    """The report on a Pod: the verdict of each Service of its namespace, and what keeps traffic from it."""
    pod = world.pods.get(key)
    if pod is None:
        return _no_pod(world, key)
    rows: list[tuple[str, str, str]] = []
    found: list[Finding] = []
    for case in (Case(world, s) for s in world.services.values() if s.metadata.namespace == key[0]):
        mine = next((each for each in case.candidates if each.pod.key == key), None)
        if mine is None:
            rows.append((case.name, _NOT_SELECTED, _why_not(case, pod)))
            continue
        rows.append((case.name, mine.verdict.standing.value, reason_of(mine) or "gets traffic"))
        if mine.verdict.unresolved:
            found += porting.findings(case)
    taken = [row for row in rows if row[1] != _NOT_SELECTED]
    wrong = trouble(patient(world, pod))
    if wrong is not None:
        look = (wrong.look,) if wrong.look is not None else ()
        fix = Fix(wrong.fix, wrong.commands, look, certain=not wrong.commands)
        seen: tuple[evidence.Evidence, ...] = (*evidence.of(pod, "metadata.name"), *wrong.evidence)
        found.append(Finding(wrong.code, Severity.ERROR, f"Pod {key[1]}: {wrong.detail}.", fix, seen))
    if not taken:
        found.append(_unselected(world, pod, Severity.ERROR if wrong is None else Severity.WARNING))
    ordered = ranked(found)
    rows.sort(key=lambda row: (row[1] == _NOT_SELECTED, row[2].startswith("selects"), row[0]))
    return Report(
        subject=f"pod/{key[1]}",
        namespace=key[0],
        state=f"{'ready' if wrong is None else 'not ready'}, taken by {_services(len(taken))}",
        health=health_of(ordered),
        findings=ordered,
        facts=(("labels", pairs(pod.metadata.labels)), ("addresses", ", ".join(pod.ips) or "none")),
        tables=(Table(("SERVICE", "VERDICT", "WHY"), tuple(rows)),) if rows else (),
        ready=pod.ips if wrong is None else (),
        notes=tuple(str(each) for each in world.seen.refused),
    )


def _services(count: int) -> str:
    return plural(count, "Service") if count else "no Service"


def _why_not(case: Case, pod: Pod) -> str:
    selector = case.service.spec.selector
    if case.service.external:
        return "it is an ExternalName Service, which has no endpoints"
    if not selector:
        return "it has no selector"
    wrong = [key for key, value in selector.items() if pod.metadata.labels.get(key) != value]
    if near_miss(selector, Shape(pod.metadata.labels)) is not None:
        told = [f"{key}={selector[key]}, the Pod has {_has(pod, key)}" for key in wrong]
        return f"wants {', '.join(told)}"
    return f"selects {pairs(selector)}"


def _has(pod: Pod, key: str) -> str:
    value = pod.metadata.labels.get(key)
    return f"no {key}" if value is None else f"{key}={value}"


def _unselected(world: World, pod: Pod, severity: Severity) -> Finding:
    namespace, name = pod.key
    close = [
        service.metadata.name
        for service in world.services.values()
        if service.metadata.namespace == namespace
        and service.managed
        and near_miss(service.spec.selector or {}, Shape(pod.metadata.labels)) is not None
    ]
    labels = pairs(pod.metadata.labels) or "none"
    if close:
        fix = Fix(f"If {close[0]} should, see `why svc/{close[0]}`; it comes close.", certain=False)
        cause = (
            f"No Service in namespace {namespace} selects Pod {name} (labels: {labels}); {listed(close)} almost does."
        )
    else:
        fix = Fix("Make a Service that selects it, or give it the labels of one.", certain=False)
        cause = f"No Service in namespace {namespace} selects Pod {name} (labels: {labels}), or comes close to it."
    seen: tuple[evidence.Evidence, ...] = (
        *evidence.of(pod, "metadata.labels"),
        evidence.search(world, "Service", namespace),
        *evidence.each((world.services[namespace, other] for other in close), "spec.selector"),
    )
    return Finding(Code.POD_NOT_SELECTED, severity, cause, fix, seen)


def _no_pod(world: World, key: Key) -> Report:
    namespace, name = key
    alike = sorted(other for where, other in world.pods if where == namespace and misspelt(other, name) is not None)
    owned = sorted(other for where, other in world.pods if where == namespace and other.startswith(f"{name}-"))
    cause = f"There is no Pod {name} in namespace {namespace}"
    fix = Fix("Check the name and the namespace (-n).")
    if alike or owned:
        cause += f"; there is {listed(alike or owned)}"
        fix = Fix(f"If {(alike or owned)[0]} is meant, use that name.", certain=False)
    seen: tuple[evidence.Evidence, ...] = (
        evidence.search(world, "Pod", namespace, name=name),
        evidence.search(world, "Pod", namespace),
    )
    missing = Finding(Code.POD_NOT_FOUND, Severity.ERROR, f"{cause}.", fix, seen)
    return Report(f"pod/{name}", namespace, "does not exist", Health.BROKEN, (missing,))
