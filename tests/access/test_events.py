"""Events are counted up, combined and limited, and recording one never waits."""

import asyncio
import contextlib
import logging

import pytest

from seamark import errors
from seamark.access.correlation import Correlator, Occurrence, Reference
from seamark.access.events import EventRecorder, reference
from seamark.kinds.resource import EVENTS
from turns import turns
from virtual_time import VirtualClock

WEB = Reference(kind="Service", name="web", namespace="default", uid="u1", api_version="v1", resource_version="7")


class EventBox:
    """A cluster with room for Events."""

    def __init__(self):
        self.events = {}
        self.failures = []

    def _check(self, resource):
        assert resource is EVENTS
        if self.failures:
            raise self.failures.pop(0)

    async def create(self, resource, event, *, namespace):
        self._check(resource)
        key = (namespace, event["metadata"]["name"])
        if key in self.events:
            raise errors.AlreadyExists("already exists")
        self.events[key] = event
        return event

    async def patch(self, resource, name, patch, *, namespace, type):
        self._check(resource)
        assert type == "strategic"
        if (namespace, name) not in self.events:
            raise errors.NotFound("not found")
        self.events[namespace, name] |= patch
        return self.events[namespace, name]


@pytest.fixture
def time():
    return VirtualClock(1_700_000_000)


@contextlib.asynccontextmanager
async def recording(box, time, **more):
    recorder = EventRecorder(box, component="endpoint-controller", clock=time, random=lambda: 0.5, **more)
    try:
        yield recorder
    finally:
        await recorder.stop()


async def test_an_event_as_client_go_writes_it(time):
    box = EventBox()
    async with recording(box, time, host="node-a") as recorder:
        recorder.record(WEB, "Warning", reason="FailedToCreateEndpoint", message="no room")
        await recorder.written()
    name = f"web.{1_700_000_000 * 10**9:x}"
    assert box.events == {
        ("default", name): {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": "default"},
            "involvedObject": {
                "kind": "Service",
                "namespace": "default",
                "name": "web",
                "uid": "u1",
                "apiVersion": "v1",
                "resourceVersion": "7",
            },
            "type": "Warning",
            "reason": "FailedToCreateEndpoint",
            "message": "no room",
            "count": 1,
            "firstTimestamp": "2023-11-14T22:13:20Z",
            "lastTimestamp": "2023-11-14T22:13:20Z",
            "source": {"component": "endpoint-controller", "host": "node-a"},
            "reportingComponent": "endpoint-controller",
            "reportingInstance": "node-a",
        }
    }


async def test_the_same_again_is_counted(time):
    box = EventBox()
    async with recording(box, time) as recorder:
        for _ in range(3):
            recorder.record(WEB, "Normal", reason="R", message="m")
            await recorder.written()
            time.now += 10
    (event,) = box.events.values()
    assert (event["count"], event["firstTimestamp"], event["lastTimestamp"]) == (
        3,
        "2023-11-14T22:13:20Z",
        "2023-11-14T22:13:40Z",
    )


async def test_a_counted_event_that_is_gone_is_made_anew(time):
    box = EventBox()
    async with recording(box, time) as recorder:
        recorder.record(WEB, "Normal", reason="R", message="m")
        await recorder.written()
        box.events.clear()
        recorder.record(WEB, "Normal", reason="R", message="m")
        await recorder.written()
    (event,) = box.events.values()
    assert event["count"] == 2


async def test_similar_ones_are_combined_from_the_tenth_on(time):
    box = EventBox()
    async with recording(box, time) as recorder:
        for number in range(12):
            recorder.record(WEB, "Normal", reason="R", message=f"pod {number}")
        recorder.record(WEB, "Normal", reason="Other", message="pod 12")
        await recorder.written()
    messages = {event["message"]: event["count"] for event in box.events.values()}
    assert messages == {
        **{f"pod {number}": 1 for number in range(9)},
        "(combined from similar events): pod 11": 3,
        "pod 12": 1,
    }


async def test_cluster_scoped_objects_have_their_events_in_default(time):
    box = EventBox()
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "node-a", "uid": "u"}}
    async with recording(box, time) as recorder:
        recorder.record(reference(node), "Normal", reason="R", message="m")
        await recorder.written()
    ((namespace, _),) = box.events
    assert namespace == "default"


async def test_a_server_out_of_reach_is_tried_again_for_a_while(time):
    box = EventBox()
    begun = time.now
    async with recording(box, time) as recorder:
        box.failures += [errors.ServiceUnavailable("refused")] * 3
        recorder.record(WEB, "Normal", reason="R", message="m")
        await time.advance(5 + 10 + 10)
        assert len(box.events) == 1
        assert time.now - begun == 25


async def test_but_not_forever(time, caplog):
    box = EventBox()
    async with recording(box, time) as recorder:
        box.failures += [errors.ServiceUnavailable("refused")] * 12
        recorder.record(WEB, "Normal", reason="R", message="lost")
        recorder.record(WEB, "Normal", reason="R", message="kept")
        await time.advance(5 + 11 * 10)
        await recorder.written()
    assert [event["message"] for event in box.events.values()] == ["kept"]
    assert "gave up on an event about web: refused" in caplog.text


async def test_rejections_are_final(time, caplog):
    box = EventBox()
    terminating = errors.Forbidden("ending", causes=[errors.Cause(reason="NamespaceTerminating")])
    with caplog.at_level(logging.WARNING):
        async with recording(box, time) as recorder:
            box.failures += [errors.Forbidden("not allowed"), terminating]
            recorder.record(WEB, "Normal", reason="R", message="one")
            recorder.record(WEB, "Normal", reason="R", message="two")
            await recorder.written()
    assert box.events == {}
    assert [record.message for record in caplog.records] == ["the server rejected an event: not allowed"]


async def test_recording_never_waits(time):
    box = EventBox()
    recorder = EventRecorder(box, component="x", clock=time)
    for number in range(1200):
        recorder.record(WEB, "Normal", reason="R", message=str(number))
    assert recorder.dropped == 200
    await recorder.stop()


def tasks():
    return [task for task in asyncio.all_tasks() if task.get_name() == "events of endpoint-controller"]


async def test_only_a_recorder_with_events_to_write_has_a_task(time):
    box = EventBox()
    async with recording(box, time) as recorder:
        for number in range(3):
            assert tasks() == []
            recorder.record(WEB, "Normal", reason="R", message=str(number))
            recorder.record(WEB, "Normal", reason="R", message=str(number))
            assert len(tasks()) == 1
            await recorder.written()
        assert [event["count"] for event in box.events.values()] == [2, 2, 2]
        box.failures.append(errors.ServiceUnavailable("refused"))
        recorder.record(WEB, "Normal", reason="R", message="m")
        await turns()
        assert len(tasks()) == 1, "it waits for the server"
    assert tasks() == []


async def test_an_unforeseen_failure_loses_only_one_event(time, caplog):
    box = EventBox()
    async with recording(box, time) as recorder:
        box.failures.append(ValueError("a bug"))
        recorder.record(WEB, "Normal", reason="R", message="lost")
        recorder.record(WEB, "Normal", reason="R", message="kept")
        await recorder.written()
    assert [event["message"] for event in box.events.values()] == ["kept"]
    assert "could not write an event about web" in caplog.text


# --- correlation alone -----------------------------------------------------------------------------------


def occurred(time, message="m", about=WEB, reason="R"):
    return Occurrence(about, "Normal", reason, message, time.now)


def test_spam_is_counted_but_not_told(time):
    correlator = Correlator(clock=time)
    told = [correlator.consider(occurred(time)) for _ in range(30)]
    assert [telling.count for telling in told[:25]] == list(range(1, 26))
    assert told[25:] == [None] * 5
    other = Reference(kind="Service", name="db", namespace="default")
    assert correlator.consider(occurred(time, about=other)).count == 1
    time.now += 301
    assert correlator.consider(occurred(time)).count == 31
    assert correlator.consider(occurred(time)) is None


def test_combining_begins_anew_after_a_quiet_while(time):
    correlator = Correlator(clock=time)
    for number in range(10):
        telling = correlator.consider(occurred(time, message=str(number)))
    assert telling.message == "(combined from similar events): 9"
    time.now += 601
    assert correlator.consider(occurred(time, message="10")).message == "10"


def test_names_are_unique_and_valid_even_at_the_same_moment(time):
    correlator = Correlator(clock=time)
    long = Reference(kind="Pod", name="x" * 253)
    names = {
        correlator.consider(occurred(time, message=str(number), about=about)).name
        for number in range(5)
        for about in (WEB, long)
    }
    assert len(names) == 10
    assert all(len(name) <= 253 for name in names)


def test_only_so_much_is_remembered(time):
    correlator = Correlator(clock=time, remembered=2)
    for name in "abca":
        about = Reference(kind="Pod", name=name)
        assert correlator.consider(occurred(time, about=about)).count == 1
    assert correlator.consider(occurred(time, about=Reference(kind="Pod", name="c"))).count == 2


async def test_two_components_tell_of_one_object_in_the_same_moment(time):
    box = EventBox()
    async with recording(box, time) as one, recording(box, time) as other:
        one.record(WEB, "Normal", reason="First", message="one")
        other.record(WEB, "Normal", reason="Second", message="two")
        await one.written()
        await other.written()
        other.record(WEB, "Normal", reason="Second", message="two")
        await other.written()
    assert sorted((e["reason"], e["count"]) for e in box.events.values()) == [("First", 1), ("Second", 2)]
