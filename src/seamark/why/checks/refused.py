"""Manifests of a Service, or of what it needs, that the API server would refuse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seamark.why.case import Case
from seamark.why.codes import Code
from seamark.why.evidence import Asked
from seamark.why.finding import Finding, Fix, Severity
from seamark.why.report import Report
from seamark.why.world import Mistake, World


def findings(case: Case) -> Iterator[Finding]:
    mistakes = case.world.seen.mistakes
    if not mistakes:
        return
    concerned = {("Service", case.name)}
    concerned |= {("Endpoints", case.name)} if case.endpoints is not None else set()
    concerned |= {("EndpointSlice", each.metadata.name) for each in case.slices}
    # Also those that almost match: what is refused may be what keeps them from it.
    close = (pod for miss in case.near_misses for pod in miss.shape.pods)
    for pod in (*(each.pod for each in case.candidates), *close):
        name, _, kind = pod.metadata.name.removesuffix(")").partition(" (")
        concerned.add((kind or "Pod", name))
    for ingress in case.world.ingresses_by_namespace.get(case.namespace, ()):
        if any(backend.name == case.name for _, backend in ingress.backends()):
            concerned.add(("Ingress", ingress.metadata.name))
    for mistake in mistakes:
        if mistake.namespace == case.namespace and (mistake.kind, mistake.name) in concerned:
            what = "it" if mistake.kind == "Service" else f"{mistake.kind} {mistake.name}"
            yield Finding(
                Code.MANIFEST_REFUSED,
                Severity.ERROR,
                f"The API server would refuse {what}: {mistake.message}.",
                Fix("Correct the manifest as the message says."),
                (Asked(f"validate {mistake.kind} {mistake.name}", mistake.message),),
            )


def unsaid(world: World, reports: Iterable[Report]) -> list[Mistake]:
    """Refused manifests that no Service's report tells of."""
    told = {finding.cause for report in reports for finding in report.findings}
    return [each for each in world.seen.mistakes if not any(each.message in cause for cause in told)]
