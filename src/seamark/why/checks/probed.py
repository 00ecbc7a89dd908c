"""Hand-made members that health checks decide about: which are kept out, what their probe said, and broken probes."""

from __future__ import annotations

from collections.abc import Iterator

from seamark.rules import probing
from seamark.rules.probing import PROBE_ANNOTATION, Probe
from seamark.why import evidence
from seamark.why.case import Case, listed
from seamark.why.codes import Code
from seamark.why.finding import Finding, Fix, Severity, look
from seamark.why.views import Endpoints, EndpointSlice


def probed(case: Case) -> list[EndpointSlice | Endpoints]:
    """What users wrote for the Service and asked to have probed."""
    written: list[EndpointSlice | Endpoints] = [*case.slices]
    if case.endpoints is not None:
        written.append(case.endpoints)
    return [each for each in written if is_probed(each)]


def is_probed(obj: EndpointSlice | Endpoints) -> bool:
    return PROBE_ANNOTATION in obj.metadata.annotations and probing.hand_made(obj)


def findings(case: Case) -> Iterator[Finding]:
    """What is wrong with the members that probes decide about."""
    for obj in probed(case):
        probe, complaints = probing.parse(obj.metadata.annotations)
        if probe is not None:
            complaints = probing.members(probe, obj)[1] or _told(case, obj, probing.INVALID)
        if probe is None or complaints:
            yield _invalid(case, obj, complaints)
        else:
            yield from _kept_out(case, obj, probe)


def _kept_out(case: Case, obj: EndpointSlice | Endpoints, probe: Probe) -> Iterator[Finding]:
    out = [str(target) for target, ready in probing.members(probe, obj)[0].items() if ready is False]
    if not out:
        return
    told = [said for said in _told(case, obj, probing.UNHEALTHY) if any(f"{each} is not" in said for each in out)]
    if told:
        said = told[0].partition(" is not ready: ")[2] or told[0]
        cause = f"Its probe keeps {listed(out)} out: {said}."
    else:
        cause = (
            f"{_shown(obj)} says that {listed(out)} {'is' if len(out) == 1 else 'are'} not ready, and its probe"
            " decides about that, but no Event tells what the probe found."
        )
    healthy = "Make it answer as its probe asks" if len(out) == 1 else "Make them answer as their probe asks"
    otherwise = "" if told else ", and check that the probes run (`seamark up`, or `seamark controllers`)"
    yield Finding(
        Code.PROBE_KEEPS_OUT,
        Severity.WARNING if case.ready_addresses else Severity.ERROR,
        cause,
        Fix(
            f"{healthy} ({obj.metadata.annotations[PROBE_ANNOTATION]}){otherwise}; it is ready again by itself.",
            (),
            (look("describe", _resource(obj), obj.metadata.name, namespace=case.namespace),),
        ),
        (*_seen(obj), *_events(case, obj, probing.UNHEALTHY)),
        weight=len(out),
        facts=tuple(told[:3]),
    )


def _invalid(case: Case, obj: EndpointSlice | Endpoints, complaints: tuple[str, ...]) -> Finding:
    return Finding(
        Code.PROBE_INVALID,
        Severity.WARNING if case.ready_addresses else Severity.ERROR,
        f"{_shown(obj)} asks for health checks that cannot be made, so its members stay as they are written:"
        f" {complaints[0]}.",
        Fix(f"Correct the annotation {PROBE_ANNOTATION}, or remove it."),
        (*_seen(obj), *evidence.of(obj, "metadata.annotations"), *_events(case, obj, probing.INVALID)),
        facts=complaints[1:],
    )


def _told(case: Case, obj: EndpointSlice | Endpoints, reason: str) -> tuple[str, ...]:
    """The messages of the Events about the object, the newest first."""
    return tuple(" ".join(event.message.split())[:300] for event in _events(case, obj, reason))


def _events(case: Case, obj: EndpointSlice | Endpoints, reason: str) -> tuple[evidence.Told, ...]:
    events = case.world.events_by_object.get((evidence.kind_of(obj), case.namespace, obj.metadata.name), ())
    return tuple(evidence.told(event) for event in events if event.reason == reason)


def _seen(obj: EndpointSlice | Endpoints) -> tuple[evidence.Field, ...]:
    held = "subsets" if isinstance(obj, Endpoints) else "endpoints"
    return evidence.of(
        obj, f"metadata.annotations[{PROBE_ANNOTATION}]", held, *(["ports"] if held != "subsets" else [])
    )


def _shown(obj: EndpointSlice | Endpoints) -> str:
    return f"{'Endpoints' if isinstance(obj, Endpoints) else 'EndpointSlice'} {obj.metadata.name}"


def _resource(obj: EndpointSlice | Endpoints) -> str:
    return "endpoints" if isinstance(obj, Endpoints) else "endpointslice"
