"""A selector that matches no Pod: labels that it almost matches, and Pods elsewhere that it would match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from seamark.kinds.wellknown import POD_NAME_LABEL
from seamark.why import evidence
from seamark.why.case import Case, listed, pairs, patient, plural, visible
from seamark.why.checks.near import FAR, DifferenceKind, NearMiss
from seamark.why.checks.pods import trouble
from seamark.why.codes import Code
from seamark.why.finding import Command, Finding, Fix, Severity, create, look, merge_patch, scale
from seamark.why.views import AnyWorkload, Event, Pod, Service
from seamark.why.world import Shape

_FEW = 3
_ENDS = ("Complete", "Failed")  # conditions of a Job that has ended

_CODES = {
    DifferenceKind.SPELLING: Code.SELECTOR_VALUE_TYPO,
    DifferenceKind.KEY_SPELLING: Code.SELECTOR_KEY_TYPO,
    DifferenceKind.OTHER_KEY: Code.SELECTOR_OTHER_KEY,
}


def findings(case: Case) -> Iterator[Finding]:
    """Why the selector matches no Pod: the most likely reason only."""
    if not case.service.managed or case.candidates:
        return
    yield next(_reasons(case))


def _reasons(case: Case) -> Iterator[Finding]:
    selector = case.service.spec.selector or {}
    shapes = case.world.shapes(case.namespace)
    for shape in shapes:
        if shape.workload is not None and not shape.pods and selector.items() <= shape.labels.items():
            yield _without_pods(case, shape.workload)
    yield from _replica(case)
    misses = case.near_misses
    yield from (_near(case, misses) for _ in misses[:1] if misses[0].cost < FAR)
    for shape in shapes:
        if shape.workload is not None and selector.items() <= shape.workload.metadata.labels.items():
            yield _on_workload_only(case, shape)
    elsewhere = pods_elsewhere(case)
    # Pods in many namespaces say nothing about the namespace that was meant.
    if 0 < len(elsewhere) <= _FEW:
        yield _elsewhere(case, elsewhere)
    yield from (_near(case, misses) for _ in misses[:1])
    yield _nothing(case, shapes)


# --- a workload without Pods -----------------------------------------------------------------------


def _without_pods(case: Case, workload: AnyWorkload) -> Finding:
    wanted = workload.wanted
    where = workload.metadata.namespace, workload.metadata.name
    if wanted == 0 and workload.kind != "DaemonSet":
        return Finding(
            Code.WORKLOAD_SCALED_TO_ZERO,
            Severity.ERROR,
            f"{workload} makes the Pods it selects, but is scaled to zero replicas.",
            Fix("Scale it up:", (scale(workload.kind, where, 1),)),
            (case.pods_found(), *_of_workload(workload)),
        )
    event = _refused(case, workload)
    failed = next(
        (c for c in workload.status.conditions if c.type == "ReplicaFailure" and c.status == "True"), None
    ) or next((c for c in workload.status.conditions if c.type == "Progressing" and c.status == "False"), None)
    reason, message = (failed.reason, failed.message) if failed is not None else ("", "")
    if event is not None and not (failed is not None and failed.type == "ReplicaFailure"):
        reason, message = event.reason, event.message
    seen: tuple[evidence.Evidence, ...] = (
        case.pods_found(),
        *_of_workload(workload),
        *([evidence.told(event)] if event is not None else []),
    )
    describe = look("describe", workload.kind.lower(), workload.metadata.name, namespace=workload.metadata.namespace)
    if reason:
        return Finding(
            Code.WORKLOAD_CANNOT_CREATE_PODS,
            Severity.ERROR,
            f"{workload} cannot make the Pods it selects ({reason}): {' '.join(message.split()).rstrip('.')}.",
            Fix(
                "Remove what stands in its way; often it is a quota, an admission webhook or a service account.",
                (),
                (describe,),
            ),
            seen,
        )
    if workload.kind in ("Job", "CronJob"):
        return _without_run(workload, seen, describe)
    if wanted == 0:
        cause = f"{workload} makes the Pods it selects, but no node is eligible for it."
        fix = "Check its node selector, affinity and tolerations against the nodes."
    elif workload.spec.paused:
        return Finding(
            Code.WORKLOAD_WITHOUT_PODS,
            Severity.ERROR,
            f"{workload} makes the Pods it selects, but is paused and has made none.",
            Fix("Resume it:", (merge_patch(workload.kind.lower(), where, {"spec": {"paused": False}}),), (describe,)),
            seen,
        )
    else:
        count = f"{wanted} " if wanted is not None else ""
        cause = f"{workload} should have made {count}Pods that it selects, but there are none."
        fix = f"Check that the controllers for {workload.kind}s run, and its events."
    return Finding(Code.WORKLOAD_WITHOUT_PODS, Severity.ERROR, cause, Fix(fix, (), (describe,)), seen)


def _without_run(workload: AnyWorkload, seen: tuple[evidence.Evidence, ...], describe: Command) -> Finding:
    """A Job or CronJob, whose Pods are there only while they run."""
    where = workload.metadata.namespace, workload.metadata.name
    ended = next((c.type for c in workload.status.conditions if c.status == "True" and c.type in _ENDS), "")
    stay = "A Service needs Pods that stay: if it should always answer, run the server in a Deployment."
    fix = Fix(stay, (), (describe,), certain=False)
    if workload.spec.suspend:
        cause = "is suspended and has none"
        resume = merge_patch(workload.kind.lower(), where, {"spec": {"suspend": False}})
        fix = Fix("If it should run now, resume it:", (resume,), (describe,), certain=False)
    elif ended:
        cause = f"has ended ({ended}), and its Pods are gone"
    elif workload.kind == "CronJob":
        cause = f"has them only while it runs (schedule {workload.spec.schedule})"
    else:
        cause = "has none"
        fix = Fix("Check that the controllers for Jobs run, and its events.", (), (describe,))
    text = f"{workload} makes the Pods it selects, but {cause}."
    return Finding(Code.WORKLOAD_WITHOUT_PODS, Severity.ERROR, text, fix, seen)


def _refused(case: Case, workload: AnyWorkload) -> Event | None:
    """The newest Event that says why the workload, or the ReplicaSet it made, cannot make Pods."""
    owned = [
        (each.kind, each.metadata.namespace, each.metadata.name)
        for each in case.world.seen.workloads or ()
        if each.metadata.namespace == workload.metadata.namespace
        and any(o.controller and o.name == workload.metadata.name for o in each.metadata.owner_references)
    ]
    about = [(workload.kind, workload.metadata.namespace, workload.metadata.name), *owned]
    told = [event for key in about for event in case.world.events_by_object.get(key, ())]
    return max((e for e in told if e.reason == "FailedCreate"), key=lambda each: each.time, default=None)


def _of_workload(workload: AnyWorkload) -> tuple[evidence.Field, ...]:
    return evidence.of(
        workload,
        "spec.replicas",
        "spec.paused",
        "spec.suspend",
        "spec.schedule",
        "spec.template.metadata.labels",
        "status.conditions",
        "status.desiredNumberScheduled",
    )


def _on_workload_only(case: Case, shape: Shape) -> Finding:
    """The labels of a Deployment are not those of its Pods, although both are in one manifest."""
    selector = case.service.spec.selector or {}
    patch: dict[str, str | None] = {key: None for key in selector if key not in shape.labels}
    patch |= {key: value for key, value in shape.labels.items() if selector.get(key) != value}
    return Finding(
        Code.LABELS_ON_WORKLOAD_ONLY,
        Severity.ERROR,
        f"The selector {pairs(selector)} matches the labels of {shape.workload} itself, but not those of its Pods"
        f" ({pairs(shape.labels) or 'none'}): a Service selects by the labels of the Pod template.",
        Fix(
            f"If those Pods are meant, select by their labels (or give the template {pairs(selector)}):",
            (merge_patch("service", case.key, {"spec": {"selector": patch}}),) if shape.labels else (),
            certain=False,
        ),
        (
            *case.seen("spec.selector"),
            case.pods_found(),
            *evidence.each(filter(None, [shape.workload]), "metadata.labels", "spec.template.metadata.labels"),
        ),
        weight=max(1, len(shape.pods)),
    )


# --- one replica -----------------------------------------------------------------------------------


def _replica(case: Case) -> Iterator[Finding]:
    """A selector for one Pod of a StatefulSet, by the label with the Pod's name, and the Pod does not exist."""
    name = (case.service.spec.selector or {}).get(POD_NAME_LABEL, "")
    owner, _, ordinal = name.rpartition("-")
    found: AnyWorkload | None = case.world.find("StatefulSet", case.namespace, owner)
    if found is None or not ordinal.isdigit() or (case.namespace, name) in case.world.pods:
        return
    wanted, first = found.wanted or 0, found.spec.ordinals.start
    replicas = [f"{owner}-{number}" for number in range(first, first + wanted)]
    seen: tuple[evidence.Evidence, ...] = (
        *case.seen("spec.selector"),
        case.pods_found(),
        *(evidence.search(case.world, "Pod", case.namespace, name=each) for each in (name, *replicas[:4])),
        *evidence.of(found, "spec.replicas", "spec.ordinals"),
    )
    cause = f"It selects Pod {name} alone, which does not exist: {found} "
    if name in replicas:
        earlier = (case.world.pods.get((case.namespace, each)) for each in replicas[: replicas.index(name)])
        waits = next((pod for pod in earlier if pod is not None and not pod.ready), None)
        told = f"; Pod {waits.metadata.name}, which comes before it, is not ready" if waits is not None else ""
        yield Finding(
            Code.WORKLOAD_WITHOUT_PODS,
            Severity.ERROR,
            f"{cause}should have made it, as it has {plural(wanted, 'replica')}{told}.",
            Fix(
                f"Repair Pod {waits.metadata.name}: a StatefulSet makes its Pods one after the other, unless"
                " podManagementPolicy is Parallel."
                if waits is not None
                else "Check that the controllers for StatefulSets run, and its events.",
                (),
                (look("describe", "statefulset", owner, namespace=case.namespace),),
            ),
            (*seen, *evidence.each(filter(None, [waits]), "status.conditions[Ready].status")),
        )
        return
    has = f"has {plural(wanted, 'replica')} ({listed(replicas)})" if wanted else "is scaled to zero replicas"
    enough = int(ordinal) - first + 1
    fix = Fix(f"Select a Pod that {found} makes.", certain=False)
    if enough > 0:
        fix = Fix(
            f"If that replica should exist, scale {found} up; if not, select another Pod:",
            (scale("StatefulSet", (case.namespace, owner), enough),),
            certain=False,
        )
    code = Code.SELECTOR_MATCHES_NOTHING if wanted else Code.WORKLOAD_SCALED_TO_ZERO
    yield Finding(code, Severity.ERROR, f"{cause}{has}.", fix, seen)


# --- close by --------------------------------------------------------------------------------------


def _near(case: Case, misses: list[NearMiss]) -> Finding:
    best = misses[0]
    patch = {"spec": {"selector": best.corrected(case.service.spec.selector or {})}}
    others = [f"also close: {_who(miss.shape)} with {pairs(miss.shape.labels)}" for miss in misses[1:]]
    sick, more = _sick(case, best)
    others[:0] = sick
    label = ", ".join(pairs({each.key: each.wanted}) for each in best.differences)
    alternative = "" if best.first.kind is DifferenceKind.INSTANCE else f" (or give the Pods {label} instead)"
    return Finding(
        _CODES.get(best.first.kind, Code.SELECTOR_ONE_LABEL_OFF),
        Severity.ERROR,
        _near_sentence(case, best),
        Fix(
            f"If {'those are the Pods' if len(best.shape.pods) != 1 else 'that is the Pod'} meant,"
            f" correct the selector{alternative}:",
            (merge_patch("service", case.key, patch),),
            certain=False,
        ),
        (case.pods_found(), *case.seen("spec.selector"), *_of_shapes(misses), *more),
        weight=max(1, len(best.shape.pods)),
        facts=tuple(others),
    )


def _sick(case: Case, miss: NearMiss) -> tuple[list[str], tuple[evidence.Evidence, ...]]:
    """What keeps the Pods that may be meant from serving as well; the corrected selector alone would not help."""
    if case.world.planned:
        return [], ()
    found = [(pod, wrong) for pod in miss.shape.pods if (wrong := trouble(patient(case.world, pod))) is not None]
    if not found or len(found) < len(miss.shape.pods):
        return [], ()
    pod, wrong = found[0]
    told = f"and Pod {pod.metadata.name} would not serve yet: {wrong.detail}. {wrong.fix}"
    return [told], (*evidence.of(pod, "metadata.name"), *wrong.evidence)


def _of_shapes(misses: Iterable[NearMiss]) -> Iterator[evidence.Evidence]:
    """The labels that come close."""
    for miss in misses:
        yield from evidence.each(miss.shape.pods, "metadata.labels")
        if miss.shape.workload is not None:
            yield from evidence.of(miss.shape.workload, "spec.template.metadata.labels")


def _near_sentence(case: Case, miss: NearMiss) -> str:
    first, who = miss.first, _who(miss.shape)
    has = "has" if len(miss.shape.pods) == 1 else "have"
    no_match = f"No Pod in namespace {case.namespace} matches {pairs(case.service.spec.selector)}"
    rest = "" if len(miss.differences) == 1 else f" (and {miss.differences[1].key} differs as well)"
    found, wanted = pairs({first.found_key or first.key: first.found or ""}), pairs({first.key: first.wanted})
    match first.kind:
        case DifferenceKind.SPELLING:
            return f"{no_match}; {who} {has} {found}, {_letters(first.letters)}{rest}."
        case DifferenceKind.KEY_SPELLING:
            return f"{no_match}; {who} {has} it under the key {first.found_key}, not {first.key}{rest}."
        case DifferenceKind.OTHER_KEY:
            return f"{no_match}; {who} {has} that value under another key: {found}{rest}."
        case DifferenceKind.INSTANCE:
            return (
                f"The selector pins {wanted}, which changes with every rollout;"
                f" {who} {'matches' if has == 'has' else 'match'} the rest{rest}."
            )
        case DifferenceKind.MISSING:
            return f"{no_match}; {who} {has} all of it but the label {first.key} (wanted: {visible(first.wanted)})."
    lead = "the rest of it, but " if len(case.service.spec.selector or {}) > 1 else ""
    return f"{no_match}; {who} {has} {lead}{found} instead of {wanted}."


def _letters(count: int) -> str:
    if count == 0:
        return "different only in case or punctuation"
    return "one letter away" if count == 1 else f"{count} letters away"


def _who(shape: Shape) -> str:
    workload = f"the Pods of {shape.workload}" if shape.workload is not None else ""
    if not shape.pods:
        return workload
    names = plural(len(shape.pods), "Pod")
    if len(shape.pods) == 1:
        return f"Pod {shape.pods[0].metadata.name}"
    return f"{names} ({shape.workload})" if shape.workload is not None else names


# --- far away --------------------------------------------------------------------------------------


def pods_elsewhere(case: Case) -> dict[str, list[Pod]]:
    """Active Pods of other namespaces that the selector would match, by namespace."""
    world, selector = case.world, case.service.spec.selector or {}
    found: dict[str, list[Pod]] = {}
    there = [
        pod for space in world.pods_by_namespace if space != case.namespace for pod in world.selected(space, selector)
    ]
    for pod in (*world.seen.elsewhere, *there):
        if pod.active and selector.items() <= pod.metadata.labels.items():
            found.setdefault(pod.metadata.namespace, []).append(pod)
    return found


def _elsewhere(case: Case, found: dict[str, list[Pod]]) -> Finding:
    best = max(sorted(found), key=lambda namespace: len(found[namespace]))
    there = _service_there(case, best)
    count = plural(len(found[best]), "Pod")
    meant, them = ("If that is meant", "it") if len(found[best]) == 1 else ("If those are meant", "them")
    more = f" (and in {listed(sorted(set(found) - {best}))})" if len(found) > 1 else ""
    cause = (
        f"No Pod in namespace {case.namespace} matches {pairs(case.service.spec.selector)}; {count} in namespace"
        f" {best} would{more}, but a Service selects only Pods of its own namespace."
    )
    if there is not None:
        fix = Fix(
            f"{meant}, use Service {there.metadata.name} of namespace {best}, which selects {them} already:"
            f" {there.metadata.name}.{best} in DNS.",
            certain=False,
        )
    else:
        fix = Fix(
            f"{meant}, make the Service in namespace {best}; from elsewhere it is called {case.name}.{best}:",
            (create(_moved(case.service, best)),),
            certain=False,
        )
    seen: tuple[evidence.Evidence, ...] = (
        case.pods_found(),
        *case.seen("spec.selector", "metadata.namespace"),
        *(
            evidence.search(case.world, "Pod", namespace, labels=case.service.spec.selector or {})
            for namespace in sorted(found)
        ),
        *evidence.each(filter(None, [there]), "spec.selector"),
    )
    return Finding(Code.PODS_IN_OTHER_NAMESPACE, Severity.ERROR, cause, fix, seen, weight=len(found[best]))


def _service_there(case: Case, namespace: str) -> Service | None:
    selector = case.service.spec.selector or {}
    for service in case.world.services.values():
        if service.metadata.namespace == namespace and service.spec.selector == selector and service.managed:
            return service
    return None


def _moved(service: Service, namespace: str) -> dict[str, Any]:
    """The manifest of the Service for another namespace, without the fields that the API server fills in."""
    spec = service.spec
    ports: list[dict[str, Any]] = []
    for port in spec.ports:
        entry: dict[str, Any] = {"port": port.port, "targetPort": port.target_port or port.port}
        entry |= {"protocol": port.protocol} if port.protocol != "TCP" else {}
        ports.append({"name": port.name, **entry} if port.name else entry)
    made: dict[str, Any] = {"selector": spec.selector, "ports": ports}
    if service.headless:
        made["clusterIP"] = "None"
    if spec.type != "ClusterIP":
        made["type"] = spec.type
    if not ports:
        del made["ports"]
    metadata = {"name": service.metadata.name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": made}


# --- nothing ---------------------------------------------------------------------------------------


def _nothing(case: Case, shapes: Iterable[Shape]) -> Finding:
    selector = case.service.spec.selector or {}
    world, key = case.world, next(iter(selector))
    where = "in these manifests" if world.seen.hypothetical else f"in namespace {case.namespace}"
    counts: dict[str, int] = {}
    # The labels of the Pods themselves: a shape leaves out those that tell replicas apart.
    have = [pod.metadata.labels for pod in world.pods_by_namespace.get(case.namespace, ())]
    planned = [shape for shape in shapes if not shape.pods]  # labels of templates whose Pods are not there
    have += [shape.labels for shape in planned]
    for labels in have:
        for label in selector.keys() & labels.keys():
            pair = f"{label}={labels[label]}"
            counts[pair] = counts.get(pair, 0) + 1
    present = sorted(counts, key=lambda pair: (-counts[pair], pair))
    what = "Nothing" if world.seen.hypothetical else "No Pod"
    cause = f"{what} {where} matches the selector {pairs(selector)}, or comes close to it."
    facts: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()
    namesake = next((s for s in shapes if s.labels.get(key) == case.name), None) if len(selector) == 1 else None
    if namesake is not None:
        fix = f"If it should take {_who(namesake)}, select by {key}={case.name}:"
        commands = (merge_patch("service", case.key, {"spec": {"selector": {key: case.name}}}),)
    elif present:
        facts = (f"Pods {'have, or would have,' if planned else 'have'} {listed(present, 5)}",)
        fix = f"Start Pods with {pairs(selector)}, or select by a label that is there: {listed(present, 5)}."
    elif not any(shape.pods or shape.workload for shape in shapes):
        cause = f"{what} {where} matches the selector {pairs(selector)}: there are no Pods at all."
        fix = f"Start Pods with {pairs(selector)}, or look in another namespace."
    else:
        none = f"none has the label {listed(selector)}"
        fix = f"Start Pods with {pairs(selector)}, or select by labels that Pods have; {none}."
    return Finding(
        Code.SELECTOR_MATCHES_NOTHING,
        Severity.ERROR,
        cause,
        Fix(fix, commands, certain=False),
        (
            case.pods_found(),
            *case.seen("spec.selector"),
            evidence.search(world, "Pod", case.namespace),
            *evidence.each((pod for shape in shapes for pod in shape.pods), "metadata.labels"),
            *evidence.each((each.workload for each in planned if each.workload), "spec.template.metadata.labels"),
        ),
        facts=facts,
    )
