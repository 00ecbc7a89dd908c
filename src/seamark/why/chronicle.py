"""A Service's recent past for a person: what the server remembers, what Events tell, and what nobody knows."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from seamark.kinds.values import times
from seamark.kinds.wellknown import TRIGGER_TIME_ANNOTATION
from seamark.why.case import Case, plural
from seamark.why.history import Moment, lasted, moments
from seamark.why.recall import Memory
from seamark.why.render import Style
from seamark.why.text import table
from seamark.why.views import Event, Key, Service
from seamark.why.world import World


class Chronicle(msgspec.Struct, frozen=True):
    """``unknown`` says what is missing from it."""

    service: str
    namespace: str
    found: bool
    moments: tuple[Moment, ...] = ()
    present: tuple[tuple[str, ...], ...] = ()
    unknown: tuple[str, ...] = ()


def chronicle(world: World, key: Key, memory: Memory, *, since: float) -> Chronicle:
    """What happened within the last ``since`` seconds, oldest first."""
    namespace, name = key
    service = world.services.get(key)
    now = world.now if world.now is not None else time.time()
    if service is None:
        gone = [change.object for change in memory.changes if isinstance(change.object, Service)]
        if not gone:
            return Chronicle(name, namespace, False, unknown=("there is no such Service, and none is remembered",))
        service = gone[-1]
    recent = [
        each
        for each in (*moments(memory.changes, service), *_told(world, service, memory))
        if each.time is None or each.time >= now - since
    ]
    return Chronicle(
        name,
        namespace,
        True,
        tuple(_in_order(recent)),
        tuple(_present(Case(world, service))),
        tuple(_unknown(memory, since, now)),
    )


def _in_order(found: list[Moment]) -> list[Moment]:
    """By version where there is one; Events, which have none, by their time in between."""
    versioned = sorted((each for each in found if each.revision), key=lambda each: each.revision)
    told = sorted((each for each in found if not each.revision), key=lambda each: each.time or 0.0)
    ordered: list[Moment] = []
    for each in versioned:
        while told and each.time is not None and (told[0].time or 0.0) < each.time:
            ordered.append(told.pop(0))
        ordered.append(each)
    return [*ordered, *told]


def _told(world: World, service: Service, memory: Memory) -> list[Moment]:
    """Events about the Service and about Pods it selects or has selected."""
    pods = {pod.metadata.name for pod in world.pods_of(service)}
    selector = (service.spec.selector or {}).items()
    pods |= {
        change.object.metadata.name
        for change in memory.changes
        if change.object.metadata.labels.items() >= selector and selector
    }
    found = []
    for event in memory.events:
        kind, name = event.involved_object.kind, event.involved_object.name
        if (kind == "Pod" and name in pods) or (kind in ("Service", "Endpoints") and name == service.metadata.name):
            found.append(Moment(_time(event), 0, f"{kind} {name}: {event.reason}", " ".join(event.message.split())))
    return found


def _time(event: Event) -> float | None:
    try:
        return times.parse(event.time)
    except times.TimeError:
        return None


def _present(case: Case) -> list[tuple[str, ...]]:
    """Since when each Pod is what it is now, by its own account, and how long its slice took to follow."""
    rows: list[tuple[str, ...]] = []
    for each in case.candidates:
        ready = each.pod.condition("Ready")
        since = ready.last_transition_time if ready is not None else None
        rows.append((each.pod.metadata.name, each.verdict.standing.value, since or "unknown"))
    for each_slice in case.slices:
        trigger = each_slice.metadata.annotations.get(TRIGGER_TIME_ANNOTATION)
        written = max((m.time for m in each_slice.metadata.managed_fields if m.time), default="")
        if trigger and written:
            took = times.parse(written) - times.parse(trigger)
            said = "under 1 s" if took < 1 else times.duration(took)
            rows.append((f"slice {each_slice.metadata.name}", "last written", f"{written}, {said} after its trigger"))
    return rows


def _unknown(memory: Memory, since: float, now: float) -> list[str]:
    if memory.oldest is None:
        return ["this server replays no versions, so when addresses came and went is told only by Events and Pods"]
    dated = [at for change in memory.changes if (at := _when(change.object.metadata)) is not None]
    first = min(dated, default=None)
    if memory.oldest > 1 and (first is None or first > now - since):
        when = f", about {times.duration(now - first)} ago" if first is not None else ""
        return [f"the server remembers nothing before version {memory.oldest}{when}"]
    return []


def _when(metadata: Any) -> float | None:
    managers = getattr(metadata, "managed_fields", ())
    return max((times.parse(each.time) for each in managers if each.time), default=None)


# --- showing ---------------------------------------------------------------------------------------


def render(told: Chronicle, style: Style) -> str:
    head = f"service/{told.service} in namespace {told.namespace}"
    if not told.found:
        return f"{head}: {told.unknown[0]}"
    lines = [f"{head}: {plural(len(told.moments), 'thing')} happened"]
    if told.moments:
        rows = [(_clock(each), lasted(each) or "-", _story(each)) for each in told.moments]
        lines += ["", *table(("TIME", "AFTER", "WHAT"), rows, style.columns)]
    if told.present:
        lines += ["", *table(("NOW", "STANDING", "SINCE"), told.present, style.columns)]
    for note in told.unknown:
        lines += style.block("note", note)
    return "\n".join(lines)


def _clock(moment: Moment) -> str:
    return times.text(moment.time) if moment.time is not None else f"version {moment.revision}"


def _story(moment: Moment) -> str:
    if not moment.revision:
        return f"{moment.what}: {moment.cause}"
    hops = f" ({'; '.join(moment.hops)})" if moment.hops else ""
    return f"{moment.what}, because {moment.cause}{hops}" if moment.cause else f"{moment.what}{hops}"


def to_builtins(told: Chronicle) -> Any:
    return msgspec.to_builtins(told)
