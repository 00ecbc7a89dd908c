"""When each address of a Service came and went, which change caused it, and what is not known (pure).

The source is a sequence of versions of objects, in order, as a server that keeps its revisions replays them.
Kubernetes writes most times in whole seconds, so a latency is exact to the second.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from seamark.kinds.values import times
from seamark.kinds.wellknown import TRIGGER_TIME_ANNOTATION
from seamark.rules.membership import selects
from seamark.rules.objects.metadata import View
from seamark.why.case import Case, pairs, plural
from seamark.why.render import Style, table
from seamark.why.views import EndpointSlice, Event, Key, Manager, Pod, Service
from seamark.why.world import World

ChangeKind = Literal["ADDED", "MODIFIED", "DELETED"]
Remembered = Pod | Service | EndpointSlice


class Version(View, frozen=True):
    """One version of one object, and what kind of change led to it."""

    revision: int
    type: ChangeKind
    object: Remembered


class Memory(msgspec.Struct, frozen=True):
    """The versions that a server still knows, from ``oldest`` on (None: it knows none), and Events."""

    versions: tuple[Version, ...]
    events: tuple[Event, ...]
    oldest: int | None
    newest: int


class Moment(msgspec.Struct, frozen=True):
    """Something that happened; ``latency`` is the seconds between its ``cause`` and the moment, where that is known."""

    time: float | None
    revision: int
    what: str
    cause: str = ""
    latency: float | None = None
    hops: tuple[str, ...] = ()


class _Cause(msgspec.Struct, frozen=True):
    """A change that may move an address: ``noticed`` is when it happened, ``written`` when the API server had it."""

    revision: int
    text: str
    noticed: float | None
    written: float | None


def moments(changes: Iterable[Version], service: Service) -> list[Moment]:
    """What happened to the addresses of a Service, oldest first."""
    return list(_Teller(service).tell(sorted(changes, key=lambda change: change.revision)))


class _Teller:
    """Keeps the last version of each object, and says what each new version changes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._pods: dict[str, Pod] = {}
        self._slices: dict[str, dict[str, tuple[bool, str]]] = {}
        self._causes: dict[str, _Cause] = {}
        self._service_cause: _Cause | None = None

    def tell(self, changes: Iterable[Version]) -> Iterator[Moment]:
        for change in changes:
            match change.object:
                case Pod() as pod:
                    self._pod(change, pod)
                case Service() as service:
                    yield from self._changed_service(change, service)
                case EndpointSlice() as endpoint_slice:
                    yield from self._slice(change, endpoint_slice)

    # --- changes that can move an address ------------------------------------------------------------------

    def _pod(self, change: Version, pod: Pod) -> None:
        name, before = pod.metadata.name, self._pods.pop(pod.metadata.name, None)
        if change.type != "DELETED":
            self._pods[name] = pod
        text = _pod_change(change.type, before, pod, self._service)
        if text:
            ready = pod.condition("Ready")
            flipped = before is None or before.ready != pod.ready
            noticed = _seconds(ready.last_transition_time) if ready is not None and flipped else None
            written = _written(pod.metadata.managed_fields)
            self._causes[name] = _Cause(change.revision, f"Pod {name} {text}", noticed or written, written)

    def _changed_service(self, change: Version, service: Service) -> Iterator[Moment]:
        before, self._service = self._service, service
        written = _written(service.metadata.managed_fields)
        if change.type == "DELETED":
            text = "the Service was deleted"
        elif change.type == "ADDED":
            text = "the Service was made"
        elif before.spec.selector != service.spec.selector:
            text = f"the selector became {pairs(service.spec.selector) or 'empty'}"
        elif before.spec.ports != service.spec.ports:
            text = "the Service's ports changed"
        elif before.spec != service.spec:
            text = "the Service's spec changed"
        else:
            return
        self._service_cause = _Cause(change.revision, text, written, written)
        yield Moment(written, change.revision, text)

    # --- what it did -------------------------------------------------------------------------------

    def _slice(self, change: Version, endpoint_slice: EndpointSlice) -> Iterator[Moment]:
        name = endpoint_slice.metadata.name
        known = name in self._slices or change.type == "ADDED"
        before = self._everything()
        if change.type == "DELETED":
            self._slices.pop(name, None)
        else:
            self._slices[name] = _content(endpoint_slice)
        after = self._everything()
        written = _written(endpoint_slice.metadata.managed_fields) if change.type != "DELETED" else None
        if not known:
            # Its earlier content is not known, but what it lists now follows from the changes just before.
            for address, (ready, pod) in sorted(self._slices.get(name, {}).items()):
                if pod in self._causes:
                    what = f"{address} is listed as {'ready' if ready else 'not ready'} ({pod})"
                    yield self._moment(change.revision, written, what, pod)
            return
        for address in sorted(before.keys() | after.keys()):
            what = _movement(before.get(address), after.get(address))
            if what:
                pod = (after.get(address) or before.get(address) or (False, ""))[1]
                yield self._moment(change.revision, written, f"{address} {what}{f' ({pod})' if pod else ''}", pod)

    def _everything(self) -> dict[str, tuple[bool, str]]:
        return {address: state for content in self._slices.values() for address, state in content.items()}

    def _moment(self, revision: int, written: float | None, what: str, pod: str) -> Moment:
        causes = [cause for cause in (self._causes.get(pod), self._service_cause) if cause is not None]
        if not causes:
            return Moment(written, revision, what)
        cause = max(causes, key=lambda each: each.revision)
        hops = []
        if cause.noticed is not None and cause.written is not None and cause.written != cause.noticed:
            hops.append(f"{_lasted(cause.written - cause.noticed)} until the API knew")
        if cause.written is not None and written is not None:
            hops.append(f"{_lasted(written - cause.written)} until the EndpointSlice was written")
        known = written is not None and cause.noticed is not None
        latency = max(0.0, written - cause.noticed) if known and written and cause.noticed else None
        return Moment(written, revision, what, cause.text, latency, tuple(hops))


def _pod_change(type: ChangeKind, before: Pod | None, pod: Pod, service: Service) -> str:
    """What changed about a Pod that matters to its endpoints; "" if nothing does."""
    if type == "DELETED":
        return "was deleted"
    if type == "ADDED":
        return "was made" if not pod.ready else "was made and is ready"
    if before is None:
        return f"became {'ready' if pod.ready else 'not ready'}"
    if before.metadata.deletion_timestamp is None and pod.metadata.deletion_timestamp is not None:
        return "began to terminate"
    if selects(service, before) != selects(service, pod):
        return f"was relabelled {pairs(pod.metadata.labels)}"
    if before.ready != pod.ready:
        return f"became {'ready' if pod.ready else 'not ready'}"
    if before.ips != pod.ips:
        return f"got the address {', '.join(pod.ips)}" if pod.ips else "lost its address"
    if before.status.phase != pod.status.phase:
        return f"is {pod.status.phase} now"
    return ""


def _content(endpoint_slice: EndpointSlice) -> dict[str, tuple[bool, str]]:
    return {
        address: (endpoint.ready, endpoint.target_ref.name if endpoint.target_ref is not None else "")
        for endpoint in endpoint_slice.endpoints or ()
        for address in endpoint.addresses or ()
    }


def _movement(before: tuple[bool, str] | None, after: tuple[bool, str] | None) -> str:
    if after is None:
        return "went"
    if before is None:
        return "came" if after[0] else "was listed, not ready"
    if before[0] != after[0]:
        return "became ready" if after[0] else "became not ready"
    return ""


# --- times -----------------------------------------------------------------------------------------


def _written(managers: Iterable[Manager]) -> float | None:
    """When an object was last written, as its managed fields say."""
    return max((at for each in managers if (at := _seconds(each.time)) is not None), default=None)


def _seconds(timestamp: str | None) -> float | None:
    if not timestamp:
        return None
    try:
        return times.parse(timestamp)
    except times.TimeError:
        return None


def _lasted(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return "under 1 s" if seconds < 1 else times.duration(seconds)


# --- for a person ----------------------------------------------------------------------------------


class Chronicle(msgspec.Struct, frozen=True):
    """The recent past of a Service; ``unknown`` says what is missing from it."""

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
        gone = [change.object for change in memory.versions if isinstance(change.object, Service)]
        if not gone:
            return Chronicle(name, namespace, False, unknown=("there is no such Service, and none is remembered",))
        service = gone[-1]
    recent = [
        each
        for each in (*moments(memory.versions, service), *_told(world, service, memory))
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
    """Sorted by version; Events have none and are put in between by their time."""
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
        for change in memory.versions
        if change.object.metadata.labels.items() >= selector and selector
    }
    found = []
    for event in memory.events:
        kind, name = event.involved_object.kind, event.involved_object.name
        if (kind == "Pod" and name in pods) or (kind in ("Service", "Endpoints") and name == service.metadata.name):
            message = " ".join(event.message.split())
            found.append(Moment(_seconds(event.time), 0, f"{kind} {name}: {event.reason}", message))
    return found


def _present(case: Case) -> list[tuple[str, ...]]:
    """Since when each Pod has been in its present state, and how long its slice took to follow."""
    rows: list[tuple[str, ...]] = []
    for each in case.candidates:
        ready = each.pod.condition("Ready")
        since = ready.last_transition_time if ready is not None else None
        rows.append((each.pod.metadata.name, each.verdict.standing.value, since or "unknown"))
    for each_slice in case.slices:
        trigger = each_slice.metadata.annotations.get(TRIGGER_TIME_ANNOTATION)
        written = max((m.time for m in each_slice.metadata.managed_fields if m.time), default="")
        if trigger and written:
            took = _lasted(times.parse(written) - times.parse(trigger))
            rows.append((f"slice {each_slice.metadata.name}", "last written", f"{written}, {took} after its trigger"))
    return rows


def _unknown(memory: Memory, since: float, now: float) -> list[str]:
    if memory.oldest is None:
        return ["this server replays no versions, so when addresses came and went is told only by Events and Pods"]
    dated = [at for each in memory.versions if (at := _written(each.object.metadata.managed_fields)) is not None]
    first = min(dated, default=None)
    if memory.oldest > 1 and (first is None or first > now - since):
        when = f", about {times.duration(now - first)} ago" if first is not None else ""
        return [f"the server remembers nothing before version {memory.oldest}{when}"]
    return []


def render(told: Chronicle, style: Style) -> str:
    head = f"service/{told.service} in namespace {told.namespace}"
    if not told.found:
        return f"{head}: {told.unknown[0]}"
    lines = [f"{head}: {plural(len(told.moments), 'thing')} happened"]
    if told.moments:
        rows = [(_clock(each), _lasted(each.latency), _story(each)) for each in told.moments]
        lines += ["", *table(("TIME", "AFTER", "WHAT"), rows, style.table_columns)]
    if told.present:
        lines += ["", *table(("NOW", "STANDING", "SINCE"), told.present, style.table_columns)]
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
