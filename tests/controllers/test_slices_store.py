"""What a controller knows of its slices between its own writes and what its informer tells."""

import msgspec
from virtual_time import VirtualClock
from worlds import Slices, pod, service
from worlds import node as make_node

from seamark.controllers.discovery.slices_store import SliceStore
from seamark.kinds.wellknown import SLICE_CONTROLLER
from seamark.rules.slices.state import SlicesState
from seamark.runtime.confirmations import Confirmations

KEY = "default/web"


def empty_store(clock=None, overdue=print):
    return SliceStore(SLICE_CONTROLLER, Confirmations(clock or VirtualClock(), overdue))


def made(slices):
    state = SlicesState(service())
    state.put("a", pod("a"), make_node())
    [planned] = state.plan().changes.create
    return slices.create(planned)


def relabelled(each, **labels):
    """The slice as it comes back after somebody changed labels, which counts as a new generation."""
    meta = each.metadata
    changed = msgspec.structs.replace(
        meta,
        labels={**meta.labels, **labels},
        generation=meta.generation + 1,
        resource_version=meta.resource_version + "+",
    )
    return msgspec.structs.replace(each, metadata=changed)


def test_our_own_write_coming_back_is_no_news():
    store, slices = empty_store(), Slices()
    first = made(slices)
    store.wrote(KEY, first)
    assert store.see(None, first) == []
    assert list(store.of(KEY)) == [first.metadata.name]


def test_what_was_before_our_write_is_old_news():
    store, slices = empty_store(), Slices()
    first = made(slices)
    store.see(None, first)
    second = slices.update(first)
    store.wrote(KEY, second)
    assert store.see(first, first) == []
    assert store.of(KEY)[first.metadata.name] is second


def test_what_others_do_is_news():
    store, slices = empty_store(), Slices()
    first = made(slices)
    store.wrote(KEY, first)
    theirs = slices.update(first)
    [news] = store.see(first, theirs)
    assert (news.key, news.slice, news.taken) == (KEY, theirs, False)
    [news] = store.see(theirs, None)
    assert (news.key, news.slice, news.taken) == (KEY, None, False)
    assert store.of(KEY) == {}


def test_what_is_no_new_generation_is_trifling_news():
    store, slices = empty_store(), Slices()
    first = made(slices)
    store.wrote(KEY, first)
    noted = msgspec.structs.replace(
        first, metadata=msgspec.structs.replace(first.metadata, annotations={"a": "b"}, resource_version="9999")
    )
    [news] = store.see(first, noted)
    assert news.trifling
    assert store.of(KEY)[first.metadata.name] is noted
    [news] = store.see(noted, relabelled(noted, mine="x"))
    assert not news.trifling


def test_our_own_deletion_is_no_news_and_neither_is_what_led_up_to_it():
    store, slices = empty_store(), Slices()
    first = made(slices)
    store.see(None, first)
    store.deleted(first)
    assert store.of(KEY) == {}
    assert store.see(first, slices.update(first)) == []
    assert store.see(first, None) == []
    assert store.of(KEY) == {}
    assert len(store.see(None, first)) == 1  # forgotten: it would be another one


def test_a_slice_taken_away_is_told_as_such():
    store, slices = empty_store(), Slices()
    first = made(slices)
    store.wrote(KEY, first)
    label = "endpointslice.kubernetes.io/managed-by"
    [news] = store.see(first, relabelled(first, **{label: "me"}))
    assert (news.key, news.slice, news.taken) == (KEY, None, True)


def test_a_slice_that_moves_concerns_both_services():
    store, slices = empty_store(), Slices()
    first = made(slices)
    store.wrote(KEY, first)
    moved = relabelled(first, **{"kubernetes.io/service-name": "other"})
    left, joined = store.see(first, moved)
    assert (left.key, left.taken) == (KEY, True)
    assert (joined.key, joined.slice) == ("default/other", moved)
    assert list(store.of("default/other")) == [first.metadata.name]


def test_others_slices_do_not_concern_us():
    store, slices = empty_store(), Slices()
    foreign = relabelled(made(slices), **{"endpointslice.kubernetes.io/managed-by": "me"})
    assert store.see(None, foreign) == []
    assert store.see(foreign, None) == []


def test_reading_everything_anew_replaces_what_was_known():
    store, slices = empty_store(), Slices()
    first, second = made(slices), made(slices)
    store.see(None, first)
    store.replace(KEY, {second.metadata.name: second})
    assert list(store.of(KEY)) == [second.metadata.name]
    assert store.see(None, first) == []  # gone on the server, whatever the informer says


async def test_what_we_made_and_nobody_ever_shows_is_looked_for():
    clock, missed = VirtualClock(), []
    store, slices = empty_store(clock, missed.append), Slices()
    first, second, third = made(slices), made(slices), made(slices)
    store.wrote(KEY, first)
    await clock.advance(20)
    store.wrote(KEY, second)
    store.wrote(KEY, third)
    store.see(None, first)
    store.deleted(third)
    await clock.advance(20)
    assert missed == []
    await clock.advance(20)
    assert missed == [KEY]
    store.wrote(KEY, slices.update(first))
    await clock.advance(100)
    assert missed == [KEY]  # the informer knows the first, and would tell of its end


def test_an_answer_that_comes_late_does_not_undo_what_was_seen_meanwhile():
    store, slices = empty_store(), Slices()
    first = made(slices)
    theirs = slices.update(first)
    store.see(None, theirs)
    store.wrote(KEY, first)
    assert store.of(KEY)[first.metadata.name] is theirs
