"""When each address of a Service came and went, and which change caused it (pure).

The source is a sequence of changes in the order of their versions, as a server that keeps its revisions replays them.
Kubernetes writes most times in whole seconds, so a latency is exact to the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from seamark.kinds.values import times
from seamark.rules.membership import selects
from seamark.rules.objects.metadata import View
from seamark.why.case import pairs
from seamark.why.views import EndpointSlice, Manager, Pod, Service

ChangeKind = Literal["ADDED", "MODIFIED", "DELETED"]


Remembered = Pod | Service | EndpointSlice


class Change(View, frozen=True):
    """One version of one object."""

    revision: int
    type: ChangeKind
    object: Remembered


class Moment(msgspec.Struct, frozen=True):
    """Something that happened: ``cause`` is what led to it, ``latency`` the seconds in between, where that is known."""

    time: float | None
    revision: int
    what: str
    cause: str = ""
    latency: float | None = None
    hops: tuple[str, ...] = ()


class _Cause(msgspec.Struct, frozen=True):
    """A change that may move an address; ``noticed`` is when it happened, ``written`` when the API knew."""

    revision: int
    text: str
    noticed: float | None
    written: float | None


def moments(changes: Iterable[Change], service: Service) -> list[Moment]:
    """The story of a Service's addresses, oldest first."""
    return list(_Teller(service).tell(sorted(changes, key=lambda change: change.revision)))


class _Teller:
    """Keeps what was last known of everything, and says what each change changes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._pods: dict[str, Pod] = {}
        self._slices: dict[str, dict[str, tuple[bool, str]]] = {}
        self._causes: dict[str, _Cause] = {}
        self._service_cause: _Cause | None = None

    def tell(self, changes: Iterable[Change]) -> Iterator[Moment]:
        for change in changes:
            match change.object:
                case Pod() as pod:
                    self._pod(change, pod)
                case Service() as service:
                    yield from self._changed_service(change, service)
                case EndpointSlice() as endpoint_slice:
                    yield from self._slice(change, endpoint_slice)

    # --- what may move an address ------------------------------------------------------------------

    def _pod(self, change: Change, pod: Pod) -> None:
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

    def _changed_service(self, change: Change, service: Service) -> Iterator[Moment]:
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

    def _slice(self, change: Change, endpoint_slice: EndpointSlice) -> Iterator[Moment]:
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
            # What was in it before nobody remembers, but what is in it now follows from what changed just before.
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
    """When an object was last written, by its own account."""
    return max((at for each in managers if (at := _seconds(each.time)) is not None), default=None)


def _seconds(timestamp: str | None) -> float | None:
    if not timestamp:
        return None
    try:
        return times.parse(timestamp)
    except times.TimeError:
        return None


def _lasted(seconds: float) -> str:
    return "under 1 s" if seconds < 1 else times.duration(seconds)


def lasted(moment: Moment) -> str:
    """The latency, for a table."""
    return "" if moment.latency is None else _lasted(moment.latency)
