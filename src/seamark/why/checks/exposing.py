"""Ways from outside that do not lead to the Service: a load balancer without an address, and Ingresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seamark.kinds.values import times
from seamark.why import evidence
from seamark.why.case import Case, listed
from seamark.why.checks.near import misspelt
from seamark.why.codes import Code
from seamark.why.finding import Command, Finding, Fix, Severity, json_patch, look, merge_patch
from seamark.why.views import BackendService, Ingress, IngressClass

_CLASS_ANNOTATION = "kubernetes.io/ingress.class"  # how classes were named before the field
_DEFAULT_ANNOTATION = "ingressclass.kubernetes.io/is-default-class"
_PATIENCE = 120.0  # seconds that a cloud may need to make a load balancer


def findings(case: Case) -> Iterator[Finding]:
    yield from _pending(case)
    for ingress in case.world.ingresses_by_namespace.get(case.namespace, ()):
        yield from _ingress(case, ingress)


# --- load balancers --------------------------------------------------------------------------------


def _pending(case: Case) -> Iterator[Finding]:
    """A Service of type LoadBalancer without an address, which ``kubectl get`` shows as <pending>."""
    service, now = case.service, case.world.now
    if not service.is_load_balancer or service.status.load_balancer.ingress or case.world.planned:
        return
    made = service.metadata.creation_timestamp
    age = now - times.parse(made) if made is not None and now is not None else None
    if age is not None and age < _PATIENCE:
        return  # it has only just been made
    wanted = service.spec.load_balancer_class
    only = f" of class {wanted} (loadBalancerClass)" if wanted else ""
    waited = f" in the {times.duration(age)} it exists" if age is not None else ""
    read = (evidence.reading(service, "metadata.creationTimestamp", now, limit=_PATIENCE),) if age and now else ()
    told = case.world.events_by_object.get(("Service", *case.key), ())
    said = next((event for event in told if event.type == "Warning" and "LoadBalancer" in event.reason), None)
    because = f": {said.reason}: {' '.join(said.message.split()).rstrip('.')}" if said is not None else ""
    run = (
        f"Run the controller for the class {wanted}, or make the Service anew without it (it cannot be changed)"
        if wanted
        else "Run a controller for load balancers (the cloud's, MetalLB or such)"
    )
    yield Finding(
        Code.LOAD_BALANCER_PENDING,
        Severity.WARNING,
        f"No load balancer{only} has given it an address{waited} (<pending>), so nothing leads to it from outside but"
        f" its node ports{because}.",
        Fix(
            f"{run}; its Events say what it waits for.",
            (),
            (look("describe", "service", case.name, namespace=case.namespace),),
        ),
        (
            *case.seen("spec.type", "spec.loadBalancerClass", "status.loadBalancer.ingress"),
            *read,
            *([evidence.told(said)] if said is not None else []),
        ),
    )


# --- Ingresses -------------------------------------------------------------------------------------


def _ingress(case: Case, ingress: Ingress) -> Iterator[Finding]:
    leads = False
    for path, backend in ingress.backends():
        if backend.name == case.name:
            leads = True
            if not case.service.external and not _offered(case, backend):
                yield _no_port(case, ingress, path, backend)
        elif (case.namespace, backend.name) not in case.world.services and misspelt(
            backend.name, case.name
        ) is not None:
            yield _no_service(case, ingress, path, backend)
    if leads:
        yield from _no_class(case, ingress)


def _offered(case: Case, backend: BackendService) -> bool:
    ports = case.service.spec.ports
    if backend.port.name:
        return any(port.name == backend.port.name for port in ports)
    return any(port.port == backend.port.number for port in ports)


def _no_port(case: Case, ingress: Ingress, path: str, backend: BackendService) -> Finding:
    ports = case.service.spec.ports
    have = listed([f"{port.name} ({port.port})" if port.name else str(port.port) for port in ports]) or "none"
    meant = [port for port in ports if backend.port.number and port.target_port == backend.port.number]
    aside = f"; {backend.port} is where its Pods listen (targetPort)" if meant else ""
    choice = meant or [
        p for p in ports if backend.port.name and p.name and misspelt(p.name, backend.port.name) is not None
    ]
    choice = choice or (list(ports) if len(ports) == 1 else [])
    fix = Fix(f"Name one of the ports that it has: {have}.", certain=False)
    if choice:
        value = {"name": choice[0].name} if backend.port.name and choice[0].name else {"number": choice[0].port}
        fix = Fix(
            f"If port {choice[0].name or choice[0].port} is meant, correct the Ingress:",
            (_replace(ingress, f"{path}.port", value),),
            certain=False,
        )
    return Finding(
        Code.INGRESS_PORT_MISSING,
        Severity.WARNING,
        f"Ingress {ingress.metadata.name} sends to port {backend.port} of it, which it does not have: its ports are"
        f" {have}{aside}.",
        fix,
        (*evidence.of(ingress, path), *case.seen("spec.ports")),
    )


def _no_service(case: Case, ingress: Ingress, path: str, backend: BackendService) -> Finding:
    return Finding(
        Code.INGRESS_SERVICE_MISSING,
        Severity.WARNING,
        f"Ingress {ingress.metadata.name} sends to Service {backend.name}, which does not exist; {case.name} is spelt"
        " almost like it.",
        Fix(
            f"If {case.name} is meant, correct the Ingress:",
            (_replace(ingress, f"{path}.name", case.name),),
            certain=False,
        ),
        (
            *evidence.of(ingress, path),
            *case.seen("metadata.name"),
            evidence.search(case.world, "Service", case.namespace, name=backend.name),
        ),
    )


def _no_class(case: Case, ingress: Ingress) -> Iterator[Finding]:
    wanted, classes = ingress.spec.ingress_class_name, case.world.seen.ingress_classes
    if classes is None or case.world.seen.hypothetical:
        return
    names = sorted(each.metadata.name for each in classes)
    if not wanted:
        yield from _no_default(case, ingress, classes, names)
        return
    if wanted in names:
        return
    close = [each for each in names if misspelt(each, wanted) is not None] or (names if len(names) == 1 else [])
    fix = Fix(f"Install the ingress controller that brings the class {wanted}, or correct ingressClassName.")
    if close:
        fix = Fix(
            f"If {close[0]} is meant, correct the Ingress:",
            (_replace(ingress, "spec.ingressClassName", close[0]),),
            certain=False,
        )
    yield Finding(
        Code.INGRESS_CLASS_MISSING,
        Severity.WARNING,
        f"Ingress {ingress.metadata.name}, which leads to it, names the IngressClass {wanted}, which does not exist"
        f" (there is {listed(names) or 'none'}), so no ingress controller knows that it should serve it.",
        fix,
        (
            *evidence.of(ingress, "spec.ingressClassName"),
            evidence.search(case.world, "IngressClass", "", name=wanted),
            evidence.search(case.world, "IngressClass", ""),
        ),
    )


def _no_default(
    case: Case, ingress: Ingress, classes: Sequence[IngressClass], names: Sequence[str]
) -> Iterator[Finding]:
    """An Ingress without a class, where none is the default.  One that has an address is served nevertheless."""
    by_annotation = _CLASS_ANNOTATION in ingress.metadata.annotations
    default = any(each.metadata.annotations.get(_DEFAULT_ANNOTATION) == "true" for each in classes)
    if by_annotation or default or ingress.status.load_balancer.ingress or not names:
        return
    where = (ingress.metadata.namespace, ingress.metadata.name)
    fix = Fix(f"Set ingressClassName to the class that should serve it: {listed(names)}.", certain=False)
    if len(names) == 1:
        patch = merge_patch("ingress", where, {"spec": {"ingressClassName": names[0]}})
        fix = Fix(f"If {names[0]} should serve it, say so:", (patch,), certain=False)
    yield Finding(
        Code.INGRESS_CLASS_MISSING,
        Severity.WARNING,
        f"Ingress {ingress.metadata.name}, which leads to it, names no IngressClass, none is the default (there is"
        f" {listed(names)}), and it has no address: perhaps no ingress controller serves it.",
        fix,
        (
            *evidence.of(ingress, "spec.ingressClassName", "metadata.annotations", "status.loadBalancer.ingress"),
            *evidence.each(classes, "metadata.annotations"),
        ),
    )


def _replace(ingress: Ingress, path: str, value: object) -> Command:
    pointer = "/" + path.replace("[", "/").replace("]", "").replace(".", "/")
    where = (ingress.metadata.namespace, ingress.metadata.name)
    return json_patch("ingress", where, [{"op": "replace", "path": pointer, "value": value}])
