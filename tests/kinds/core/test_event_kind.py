"""Events: one stored form, two views, and what each view refuses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kind_rules import NOW, Recorded, change, check, create, recorded_creations, sentences, shaped
from merge_patch import merged

from seamark.errors import Invalid, Object
from seamark.kinds.core.event import EVENT, NEW_EVENT, from_events_v1, to_events_v1
from seamark.kinds.kind import Kind
from seamark.kinds.values.times import parse

ABOUT = {"kind": "Pod", "name": "p", "namespace": "ns"}
WHOLE = {
    "metadata": {"name": "e"},
    "regarding": ABOUT,
    "eventTime": "2038-01-19T03:14:00.000000Z",
    "type": "Normal",
    "reason": "Started",
    "action": "Starting",
    "reportingController": "example.com/ctl",
    "reportingInstance": "ctl-1",
    "note": "hello",
}


@pytest.mark.parametrize("recorded", recorded_creations("events"), ids=str)
def test_recorded(recorded: Recorded) -> None:
    check(recorded)


def refusals(kind: Kind, body: Object) -> list[str]:
    with pytest.raises(Invalid) as refused:
        create(kind, body)
    return sentences(refused.value)


# --- two views ---------------------------------------------------------------------------------------------

names = st.text("abc", min_size=1, max_size=3)
times = st.just("2020-01-01T00:00:00Z")
micro_times = st.just("2020-01-01T00:00:00.000001Z")
references = st.fixed_dictionaries({}, optional={"kind": names, "name": names, "namespace": names, "uid": names})
stored_events = st.fixed_dictionaries(
    {"metadata": st.just({"name": "e"})},
    optional={
        "involvedObject": references,
        "related": references.filter(bool),
        "message": names,
        "reason": names,
        "type": names,
        "action": names,
        "count": st.integers(1, 9),
        "source": st.fixed_dictionaries({}, optional={"component": names, "host": names}),
        "firstTimestamp": times,
        "lastTimestamp": times,
        "eventTime": micro_times,
        "reportingComponent": names,
        "reportingInstance": names,
        "series": st.fixed_dictionaries({"count": st.integers(2, 9), "lastObservedTime": micro_times}),
    },
)


@given(stored_events)
def test_nothing_is_lost_between_the_views(body: Object) -> None:
    event = shaped(EVENT, body)
    view = to_events_v1(event)
    assert shaped(NEW_EVENT, view) == view, "the view is just as Go would encode it"
    assert from_events_v1(view) == event


def test_views_do_not_share_their_version() -> None:
    event = {"apiVersion": "v1", "kind": "Event", **shaped(EVENT, {"metadata": {"name": "e"}})}
    view = NEW_EVENT.from_stored(event)
    assert view["apiVersion"] == "events.k8s.io/v1"
    assert NEW_EVENT.to_stored(view)["apiVersion"] == "v1"
    assert event["apiVersion"] == "v1"


def test_both_views_can_be_selected_by_their_own_names() -> None:
    event = create(NEW_EVENT, WHOLE)
    values = NEW_EVENT.fields(event)
    assert values == EVENT.fields(NEW_EVENT.to_stored(event)), "values are kept with the stored Event, for both"
    assert set(EVENT.field_names) | set(NEW_EVENT.field_names) == set(values)
    assert (values["regarding.name"], values["involvedObject.name"]) == ("p", "p")
    assert values["source"] == values["reportingController"] == "example.com/ctl"


# --- rules -------------------------------------------------------------------------------------------------


def core(**more: Any) -> Object:
    return {"metadata": {"name": "e"}, "involvedObject": ABOUT, **more}


def test_an_old_event_needs_little() -> None:
    assert create(EVENT, core())["source"] == {}


@pytest.mark.parametrize(
    ("kind", "about", "fits"),
    [
        (EVENT, "other", ()),
        (EVENT, "", ("default",)),  # of what has no namespace
        (NEW_EVENT, "other", ("default", "kube-system", "ns")),
        (NEW_EVENT, "", ("default", "kube-system")),
    ],
)
def test_where_an_event_may_be(kind: Kind, about: str, fits: tuple[str, ...]) -> None:
    body = {**(WHOLE if kind is NEW_EVENT else core())}
    field = "regarding" if kind is NEW_EVENT else "involvedObject"
    for namespace in ("default", "kube-system", "ns"):
        event = {**body, "metadata": {"name": "e", "namespace": namespace}, field: {"kind": "Node", "namespace": about}}
        wrong = [sentence for sentence in map(str, kind.validate(event)) if "does not match" in sentence]
        assert bool(wrong) == (namespace not in fits)


def test_an_event_with_an_event_time_must_be_whole() -> None:
    assert refusals(EVENT, core(eventTime="2038-01-19T03:14:00.000000Z")) == [
        "reportingComponent: Required value",
        'reportingComponent: Invalid value: "": name part must be non-empty',
        "reportingComponent: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or "
        "'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
        "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        "reportingInstance: Required value",
        "action: Required value",
        "reason: Required value",
    ]


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"type": "Odd"}, ['type: Invalid value: "": has invalid value: Odd']),
        ({"deprecatedCount": 2}, ['count: Invalid value: "": needs to be unset']),
        ({"deprecatedSource": {"host": "h"}}, ['source: Invalid value: "": needs to be unset']),
        ({"deprecatedFirstTimestamp": NOW}, ['firstTimestamp: Invalid value: "": needs to be unset']),
        ({"note": "x" * 1025}, ['message: Invalid value: "": can have at most 1024 characters']),
        ({"action": "x" * 129}, ['action: Invalid value: "": can have at most 128 characters']),
        ({"series": {"count": 1, "lastObservedTime": "2038-01-19T03:14:00.000000Z"}},
         ['series.count: Invalid value: "": should be at least 2']),
    ],
)  # fmt: skip
def test_new_events_refused(patch: Object, expected: list[str]) -> None:
    assert refusals(NEW_EVENT, merged(WHOLE, patch)) == expected


def test_new_events_stay_but_for_their_series() -> None:
    old = create(NEW_EVENT, WHOLE)
    series = {"count": 2, "lastObservedTime": "2038-01-19T03:14:01.000000Z"}
    assert change(NEW_EVENT, old, merged(old, {"series": series}))["series"] == series
    with pytest.raises(Invalid) as refused:
        change(NEW_EVENT, old, merged(old, {"note": "other", "reportingController": "example.com/x"}))
    assert sentences(refused.value) == [
        'message: Invalid value: "other": field is immutable',
        'reportingController: Invalid value: "example.com/x": field is immutable',
    ]
    stored = NEW_EVENT.to_stored(old)
    assert change(EVENT, stored, merged(stored, {"message": "other"}))["message"] == "other", "the old API lets it"


# --- rows --------------------------------------------------------------------------------------------------


def test_rows() -> None:
    old = create(
        EVENT,
        core(
            reason="Started",
            type="Normal",
            message=" hello ",
            count=3,
            firstTimestamp="2038-01-19T03:04:07Z",
            lastTimestamp="2038-01-19T03:12:07Z",
            source={"component": "me", "host": "node-a"},
        ),
    )
    assert list(EVENT.row(old, parse(NOW))) == [
        "2m", "Normal", "Started", "pod/p", "", "me, node-a", "hello", "10m", 3, "e",
    ]  # fmt: skip
    new = create(NEW_EVENT, merged(WHOLE, {"series": {"count": 4, "lastObservedTime": "2038-01-19T03:14:05.000000Z"}}))
    row = list(NEW_EVENT.row(new, parse(NOW)))
    assert (row[0], row[5], row[7], row[8]) == ("2s", "example.com/ctl, ctl-1", "7s", 4)
    bare = create(EVENT, {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "ns"}})
    assert list(EVENT.row(bare, parse(NOW)))[:4] == ["<unknown>", "", "", "pod"]
