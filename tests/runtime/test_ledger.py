"""What a controller has written and its informer has yet to show."""

import pytest
from hand_fed import HandFed, thing
from hypothesis import given
from hypothesis import strategies as st

from seamark.runtime.ledger import PATIENCE, Ledger
from virtual_time import VirtualClock

OWNER = "default/owner"


# --- waiting for the informer ------------------------------------------------------------------------


def test_the_informer_has_caught_up_when_it_has_reached_the_version():
    informer = HandFed()
    ledger = Ledger(informer, clock=VirtualClock())
    assert ledger.caught_up(OWNER)
    ledger.wrote(OWNER, "10")
    ledger.wrote(OWNER, "8")
    assert not ledger.caught_up(OWNER)
    assert ledger.caught_up("default/other")
    informer.last_version = ""  # it has to list again
    assert not ledger.caught_up(OWNER)
    informer.reach(10)
    assert ledger.caught_up(OWNER)
    ledger.wrote(OWNER, "12")
    ledger.forget(OWNER)
    assert ledger.caught_up(OWNER)


def test_a_deletion_is_awaited_until_the_object_is_gone():
    informer = HandFed(thing("a", 5), thing("b", 6))
    ledger = Ledger(informer, clock=VirtualClock())
    for name in "ab":
        ledger.deleted(OWNER, informer.get(name, "default"))
    assert not ledger.caught_up(OWNER)
    informer.drop("a", 7)
    assert not ledger.caught_up(OWNER)
    informer.show(thing("b", 8, uid="another"))
    assert ledger.caught_up(OWNER)


def test_a_deletion_may_be_over_when_the_object_is_going():
    informer = HandFed(thing("a", 5))
    ledger = Ledger(informer, clock=VirtualClock(), there=lambda obj: obj.metadata.deletion_timestamp is None)
    ledger.deleted(OWNER, informer.get("a", "default"))
    assert not ledger.caught_up(OWNER)
    informer.show(thing("a", 6, deleted=True))
    assert ledger.caught_up(OWNER)


def test_doubts_are_kept_until_they_are_cleared():
    ledger = Ledger(HandFed(), clock=VirtualClock())
    ledger.doubt(OWNER, "default/a")
    ledger.doubt(OWNER, "default/b")
    ledger.certain(OWNER, "default/a")
    ledger.certain("default/other")
    assert ledger.doubts(OWNER) == ("default/b",)
    ledger.certain(OWNER, "default/b")
    assert not ledger.doubts(OWNER)


# --- going on from what was written ------------------------------------------------------------------


def test_what_was_written_counts_until_the_informer_shows_it():
    informer = HandFed(thing("a", 5))
    ledger = Ledger(informer, clock=VirtualClock())
    written = thing("a", 9, color="red")
    ledger.put(OWNER, written)
    assert ledger.latest("default/a") is written
    assert ledger.pending(OWNER) == {"default/a": written}
    informer.show(thing("a", 7))  # a version between
    assert ledger.latest("default/a") is written
    shown = thing("a", 9, color="red, and more")
    informer.show(shown)
    assert ledger.latest("default/a") is shown
    assert ledger.pending(OWNER) == {}


def test_what_was_deleted_is_gone_at_once():
    informer = HandFed(thing("a", 5))
    ledger = Ledger(informer, clock=VirtualClock())
    ledger.deleted(OWNER, informer.get("a", "default"))
    assert ledger.latest("default/a") is None
    assert ledger.pending(OWNER) == {"default/a": None}


def test_what_was_made_and_deleted_before_it_was_shown_stays_gone():
    informer = HandFed()
    ledger = Ledger(informer, clock=VirtualClock())
    made = thing("a", 9)
    ledger.put(OWNER, made)
    ledger.deleted(OWNER, made)
    informer.reach(8)
    assert ledger.pending(OWNER) == {"default/a": None}
    informer.show(made)
    assert ledger.latest("default/a") is None
    informer.drop("a", 10)
    assert ledger.pending(OWNER) == {}


def test_an_answer_that_comes_late_does_not_undo_what_was_shown():
    informer = HandFed()
    ledger = Ledger(informer, clock=VirtualClock())
    theirs = thing("a", 12, color="theirs")
    informer.show(theirs)
    ledger.put(OWNER, thing("a", 9, color="ours"))
    assert ledger.latest("default/a") is theirs


def test_a_server_that_listed_again_without_our_object_is_right():
    informer = HandFed()
    ledger = Ledger(informer, clock=VirtualClock())
    ledger.put(OWNER, thing("a", 9))
    informer.reach(20)
    assert ledger.latest("default/a") is None


# --- what the informer tells -------------------------------------------------------------------------


def followed(ledger, informer):
    """What the ledger takes for news, as it comes in."""
    news = []
    informer.on_change(lambda key, old, new: news.append(ledger.news(key, old, new)))
    return news


def test_news_is_what_was_not_so_before_our_write():
    informer = HandFed(thing("a", 5))
    ledger = Ledger(informer, clock=VirtualClock())
    news = followed(ledger, informer)
    news.clear()
    ledger.put(OWNER, thing("a", 9))
    informer.show(thing("a", 7))
    informer.show(thing("a", 9, color="as written"))
    informer.show(thing("a", 11))
    informer.drop("a", 12)
    assert news == [False, True, True, True]


def test_our_own_deletion_is_no_news_and_neither_is_what_led_up_to_it():
    informer = HandFed(thing("a", 5))
    ledger = Ledger(informer, clock=VirtualClock())
    ledger.deleted(OWNER, informer.get("a", "default"))
    news = followed(ledger, informer)
    news.clear()
    informer.show(thing("a", 7))
    informer.drop("a", 8)
    informer.show(thing("a", 9, uid="another"))
    assert news == [False, False, True]


def test_the_end_of_an_earlier_object_of_the_name_is_no_news():
    informer = HandFed(thing("a", 5, uid="first"))
    ledger = Ledger(informer, clock=VirtualClock())
    ledger.put(OWNER, thing("a", 9, uid="second"))
    news = followed(ledger, informer)
    news.clear()
    informer.drop("a", 7)
    assert news == [False]
    assert ledger.latest("default/a").metadata.uid == "second"


# --- what is never shown -----------------------------------------------------------------------------


async def test_what_was_made_and_is_never_shown_is_doubted():
    clock, woken, informer = VirtualClock(), [], HandFed()
    ledger = Ledger(informer, clock=clock, wake=woken.append)
    followed(ledger, informer)
    ledger.put("default/first", thing("a", 5))
    await clock.advance(PATIENCE - 10)
    for name, owner in (("b", "default/second"), ("c", "default/third"), ("d", "default/fourth")):
        ledger.put(owner, thing(name, 6))
    informer.show(thing("a", 5))
    ledger.deleted("default/third", thing("c", 6))
    ledger.forget("default/fourth")
    await clock.advance(PATIENCE - 10)
    assert woken == []
    await clock.advance(20)
    assert woken == ["default/second"]
    assert list(ledger.doubts("default/second")) == [""]
    ledger.put("default/first", thing("a", 9))
    await clock.advance(10 * PATIENCE)
    assert woken == ["default/second"], "the informer shows the first, and would tell of its end"


# --- whatever happens --------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["write", "edit", "delete", "remove", "tell"]), st.sampled_from("ab"), st.integers(1, 3)
        ),
        max_size=40,
    )
)
def test_the_ledger_and_the_server_agree_about_our_own_writes(script):
    """However far the informer is behind: what we wrote last is there, unless others wrote after us."""
    informer = HandFed()
    ledger = Ledger(informer, clock=VirtualClock())
    server, log, version, told = {}, [], 1, 0
    ours = {}  # by name: what our last write came to, until others touch it

    def commit(name, obj):
        nonlocal version
        version += 1
        if obj is None:
            server.pop(name, None)
        else:
            server[name] = obj
        log.append((name, obj, version))

    def tell():
        nonlocal told
        name, obj, at = log[told]
        told += 1
        if obj is not None:
            informer.show(obj)
        elif informer.get(name, "default") is not None:
            informer.drop(name, at)

    informer.on_change(ledger.news)
    for step, name, many in script:
        uid = server[name].metadata.uid if name in server else f"{name}-{version}"
        if step == "write":
            commit(name, thing(name, version + 1, uid=uid, color="ours"))
            ledger.put(OWNER, server[name])
            ours[name] = server[name]
        elif step == "edit":
            commit(name, thing(name, version + 1, uid=uid, color="theirs"))
            ours.pop(name, None)
        elif step == "delete" and name in server:
            gone = server[name]
            commit(name, None)
            ledger.deleted(OWNER, gone)
            ours[name] = None
        elif step == "remove" and name in server:
            commit(name, None)
            ours.pop(name, None)
        else:
            for _ in range(min(many, len(log) - told)):
                tell()
        for known, obj in ours.items():
            assert ledger.latest(f"default/{known}") == obj
    while told < len(log):
        tell()
    informer.reach(version)
    assert ledger.caught_up(OWNER)
    for name in "ab":
        assert ledger.latest(f"default/{name}") == server.get(name)


@pytest.mark.parametrize("version", ["", "abc"])
def test_versions_that_are_no_numbers_are_never_waited_for(version):
    ledger = Ledger(HandFed(), clock=VirtualClock())
    ledger.wrote(OWNER, version)
    assert ledger.caught_up(OWNER)
