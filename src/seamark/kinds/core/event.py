"""Event: stored as core/v1, with events.k8s.io/v1 as a second view that has other field names and stricter rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.kind import Column, Kind
from seamark.kinds.language import go_names
from seamark.kinds.resource import EVENTS, NEW_EVENTS
from seamark.kinds.values.fields import Errors, immutable, invalid, required
from seamark.kinds.values.metadata import dns_subdomain, path_segment, qualified_name
from seamark.kinds.values.times import age

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_LONGEST = 128
_LONGEST_NOTE = 1024

# Stored field name → name in events.k8s.io/v1.  Fields that are not listed have the same name in both.
_NEW_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_OLD_NAMES = {new: old for old, new in _NEW_NAMES.items()}
# Fields that the stored form always has, while the newer view has them only if they are not empty.
_STORED_FILLINGS = {"reportingComponent": "", "reportingInstance": ""}
_API_VERSIONS = (EVENTS.api_version, NEW_EVENTS.api_version)
_COLUMNS = (
    Column("Last Seen"),
    Column("Type"),
    Column("Reason"),
    Column("Object"),
    Column("Subobject", priority=1),
    Column("Source", priority=1),
    Column("Message"),
    Column("First Seen", priority=1),
    Column("Count", priority=1),
    Column("Name", format="name", priority=1),
)


def to_events_v1(event: Object) -> Object:
    """A new object: the events.k8s.io/v1 view of a stored Event."""
    view = {_NEW_NAMES.get(field, field): value for field, value in event.items()}
    for field in ("reportingController", "reportingInstance"):
        if view.get(field) == "":
            del view[field]
    if "apiVersion" in view:
        view["apiVersion"] = NEW_EVENTS.api_version
    for field in ("regarding", "deprecatedSource"):
        view.setdefault(field, {})
    return view


def from_events_v1(view: Object) -> Object:
    """A new object: the stored form of an events.k8s.io/v1 Event."""
    event = {_OLD_NAMES.get(field, field): value for field, value in view.items()}
    if "apiVersion" in event:
        event["apiVersion"] = EVENTS.api_version
    for field, value in _STORED_FILLINGS.items():
        event.setdefault(field, value)
    event.setdefault("involvedObject", {})
    event.setdefault("source", {})
    return event


class EventKind(Kind):
    """core/v1: the stored form, which most programs still write."""

    resource = EVENTS
    singular = "event"
    shape_name = "io.k8s.api.core.v1.Event"
    short_names = ("ev",)
    create_on_update = True
    has_dependents = False
    sibling_versions = _API_VERSIONS
    columns = _COLUMNS
    field_names = (
        *(f"involvedObject.{field}" for field in _INVOLVED),
        "reason",
        "reportingComponent",
        "source",
        "type",
    )

    def validate_name(self, name: str, *, prefix: bool) -> list[str]:
        return path_segment(name, prefix=prefix)

    def validate(self, obj: Object) -> Errors:
        return _common_mistakes(obj, reporter="reportingComponent")

    def validate_update(self, obj: Object, old: Object) -> Errors:
        return self.validate(obj)

    def fields(self, obj: Object) -> Mapping[str, str]:
        return _selectable(obj)

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        return _row(obj, now)


class NewEventKind(Kind):
    """events.k8s.io/v1: the same Events under other field names; new Events must follow stricter rules."""

    resource = NEW_EVENTS
    stored_as = EVENTS
    singular = "event"
    shape_name = "io.k8s.api.events.v1.Event"
    short_names = ("ev",)
    create_on_update = True
    has_dependents = False
    sibling_versions = _API_VERSIONS
    columns = _COLUMNS
    field_names = (*(f"regarding.{field}" for field in _INVOLVED), "reason", "reportingController", "type")

    def to_stored(self, obj: Object) -> Object:
        return from_events_v1(obj)

    def from_stored(self, obj: Object) -> Object:
        return to_events_v1(obj)

    def validate(self, obj: Object) -> Errors:
        event = from_events_v1(obj)
        errors = _common_mistakes(event)
        errors += _series_mistakes(event)
        if event.get("eventTime") is None:
            errors.append(required("eventTime"))
        kind = event.get("type", "")
        if kind not in ("Normal", "Warning"):
            errors.append(invalid("type", "", f"has invalid value: {kind}"))
        errors += [
            invalid(field, "", "needs to be unset")
            for field in ("firstTimestamp", "lastTimestamp", "count", "source")
            if event.get(field)
        ]
        return errors

    def validate_update(self, obj: Object, old: Object) -> Errors:
        event, before = from_events_v1(obj), from_events_v1(old)
        errors = _common_mistakes(event)
        if event.get("series") != before.get("series"):
            errors += _series_mistakes(event)
        for field in _FIXED:
            if event.get(field) != before.get(field):
                said = "reportingController" if field == "reportingComponent" else field
                shown = _PRINTED[field](event.get(field)) if field in _PRINTED else event.get(field, "")
                errors.append(immutable(said, shown))
        return errors

    def fields(self, obj: Object) -> Mapping[str, str]:
        return _selectable(from_events_v1(obj))

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        return _row(from_events_v1(obj), now)


_CLUSTER_WIDE = ("default", "kube-system")
_PRINTED = {
    "involvedObject": go_names.OBJECT_REFERENCE,
    "related": go_names.OBJECT_REFERENCE,
    "source": go_names.EVENT_SOURCE,
}
_FIXED = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
)


def _common_mistakes(event: Object, *, reporter: str = "reportingController") -> Errors:
    """Mistakes that both views reject.  An Event with ``eventTime`` is a new-style one and must be complete.

    ``reporter`` is the view's name for the field of the reporting controller.
    """
    errors: Errors = []
    namespace = event["metadata"].get("namespace", "")
    involved = (event.get("involvedObject") or {}).get("namespace", "")
    new = event.get("eventTime") is not None
    # Events about objects without a namespace are in `default` (new-style ones also in kube-system); new-style Events
    # may be about an object in another namespace.
    fits = new or involved == namespace if involved else namespace in _CLUSTER_WIDE[: 2 if new else 1]
    if not fits:
        errors.append(invalid("involvedObject.namespace", involved, "does not match event.namespace"))
    if new:
        errors += _new_mistakes(event, reporter)
    errors += [invalid("namespace", namespace, sentence) for sentence in dns_subdomain(namespace)]
    return errors


def _new_mistakes(event: Object, reporter: str) -> Errors:
    errors: Errors = []
    controller = event.get("reportingComponent", "")
    if not controller:
        errors.append(required(reporter))
    errors += [invalid(reporter, controller, sentence) for sentence in qualified_name(controller)]
    for field in ("reportingInstance", "action", "reason"):
        value = event.get(field, "")
        if not value:
            errors.append(required(field))
        if len(value) > _LONGEST:
            errors.append(invalid(field, "", f"can have at most {_LONGEST} characters"))
    if len(event.get("message", "")) > _LONGEST_NOTE:
        errors.append(invalid("message", "", f"can have at most {_LONGEST_NOTE} characters"))
    return errors


def _series_mistakes(event: Object) -> Errors:
    series = event.get("series")
    if series is None:
        return []
    errors: Errors = []
    if series.get("count", 0) < 2:
        errors.append(invalid("series.count", "", "should be at least 2"))
    if series.get("lastObservedTime") is None:
        errors.append(required("series.lastObservedTime"))
    return errors


def _selectable(event: Object) -> dict[str, str]:
    """Values under the names of both views, because both select from the same stored Events."""
    involved = event.get("involvedObject") or {}
    controller = event.get("reportingComponent", "")
    values = {
        "reason": event.get("reason", ""),
        "reportingComponent": controller,
        "reportingController": controller,
        "source": (event.get("source") or {}).get("component") or controller,
        "type": event.get("type", ""),
    }
    for field in _INVOLVED:
        values[f"involvedObject.{field}"] = values[f"regarding.{field}"] = involved.get(field, "")
    return values


def _row(event: Object, now: float) -> list[Any]:
    involved, source = event.get("involvedObject") or {}, event.get("source") or {}
    series, first = event.get("series"), event.get("firstTimestamp") or event.get("eventTime")
    if series is not None:
        last, count = series.get("lastObservedTime"), series.get("count", 0)
    else:
        last, count = event.get("lastTimestamp") or first, event.get("count") or 1
    component = source.get("component") or event.get("reportingComponent", "")
    host = source.get("host") or event.get("reportingInstance", "")
    target = involved.get("kind", "").lower()
    if name := involved.get("name"):
        target = f"{target}/{name}"
    return [
        age(now, last),
        event.get("type", ""),
        event.get("reason", ""),
        target,
        involved.get("fieldPath", ""),
        f"{component}, {host}" if host else component,
        event.get("message", "").strip(),
        age(now, first),
        count,
        event["metadata"].get("name", ""),
    ]


EVENT = EventKind()
NEW_EVENT = NewEventKind()
