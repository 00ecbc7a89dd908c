"""Derived state: handlers keep it right, and what a failed handler spoiled is rebuilt and counted."""

import pytest
from hand_fed import HandFed, thing

from failing_handlers import fail_once, failures
from seamark.metrics import Registry
from seamark.runtime.following import TRUSTED_AFTER, Derived, Following
from virtual_time import VirtualClock


class Colors(Derived):
    """Which colors there are, how many of each."""

    def __init__(self, *informers, name="colors"):
        super().__init__(name)
        self.looks = 0
        self.reset()
        for informer in informers:
            self.watch(informer, self.changed)

    def reset(self):
        self.names = {}

    def look_around(self):
        self.looks += 1

    def changed(self, key, old, new):
        if new is None:
            self.remove(key)
        else:
            self.names[key] = new.color

    def remove(self, key):
        del self.names[key]


class Scene:
    def __init__(self, *states):
        self.clock, self.metrics = VirtualClock(), Registry()
        self.following = Following(*states, clock=self.clock, metrics=self.metrics)


async def test_handlers_are_told_what_is_there_and_what_changes():
    informer = HandFed(thing("a", 2, color="red"))
    colors = Colors(informer)
    informer.show(thing("b", 3, color="blue"))
    assert colors.names == {}, "nothing is told before it is connected"
    scene = Scene(colors)
    scene.following.connect()
    informer.show(thing("c", 4, color="green"))
    assert colors.names == {"default/a": "red", "default/b": "blue", "default/c": "green"}
    await scene.following.synced()
    assert colors.looks == 1
    assert failures(scene.metrics) == {}


async def test_a_handler_that_fails_is_counted_and_its_state_rebuilt(caplog):
    informer = HandFed(thing("a", 2, color="red"), thing("b", 3, color="blue"))
    colors = Colors(informer)
    scene = Scene(colors)
    scene.following.connect()
    await scene.following.synced()
    fail_once(colors, "remove")
    informer.drop("a", 4)
    assert colors.names == {"default/a": "red", "default/b": "blue"}, "wrong, and no event will put it right"
    await scene.clock.advance(0)
    assert colors.names == {"default/b": "blue"}
    assert colors.looks == 2
    assert failures(scene.metrics) == {"colors": 1}
    assert "colors could not bring its state up to date" in caplog.text
    assert "ValueError: a bug" in caplog.text
    informer.drop("b", 5)
    assert colors.names == {}


async def test_all_that_build_on_each_other_are_rebuilt_together():
    first, second = HandFed(thing("a", 2)), HandFed(thing("b", 2))
    one, other = Colors(first, name="one"), Colors(first, second, name="other")
    scene = Scene(one, other)
    scene.following.connect()
    other.names["default/wrong"] = "gray"
    fail_once(one, "remove")
    first.drop("a", 3)
    await scene.clock.advance(0)
    assert (one.names, other.names) == ({}, {"default/b": ""})
    assert failures(scene.metrics) == {"one": 1}


async def test_what_fails_for_one_object_is_told_of_all_others_and_tried_again_later_each_time():
    informer = HandFed(thing("a", 2), thing("bad", 3), thing("c", 4))
    colors = Colors(informer)
    working, bad = colors.changed, []

    def changed(key, old, new):
        if key == "default/bad":
            bad.append(scene.clock.now - began)
            raise ValueError("a bug")
        working(key, old, new)

    colors.watches = [(informer, changed)]
    scene = Scene(colors)
    began = scene.clock.now
    scene.following.connect()
    assert list(colors.names) == ["default/a", "default/c"]
    await scene.clock.advance(20)
    assert bad == [0, 0, 1, 3, 7, 15]
    assert list(colors.names) == ["default/a", "default/c"]
    informer.drop("bad", 5)
    before = len(bad)
    await scene.clock.advance(1000)
    assert len(bad) == before, "with the object the trouble is gone"


@pytest.mark.parametrize("step", ["reset", "look_around"])
async def test_a_rebuild_that_fails_is_counted_and_repeated_later_each_time(step):
    informer = HandFed(thing("a", 2), thing("b", 3))
    colors, others = Colors(informer), Colors(informer, name="others")
    scene = Scene(colors, others)
    scene.following.connect()
    await scene.following.synced()
    began, attempts = scene.clock.now, []

    def fail():
        attempts.append(scene.clock.now - began)
        raise ValueError("a bug")

    setattr(colors, step, fail)
    fail_once(colors, "remove")
    informer.drop("a", 4)
    await scene.clock.advance(20)
    assert attempts == [0, 1, 3, 7, 15]
    assert failures(scene.metrics) == {"colors": 1 + len(attempts)}
    assert list(others.names) == ["default/b"], "the rest of the rebuild is done all the same"
    delattr(colors, step)
    await scene.clock.advance(1000)
    assert list(colors.names) == ["default/b"]
    assert failures(scene.metrics) == {"colors": 1 + len(attempts)}


async def test_a_first_look_around_that_fails_is_repeated():
    colors = Colors(HandFed(thing("a", 2)))
    scene = Scene(colors)
    fail_once(colors, "look_around")
    scene.following.connect()
    await scene.following.synced()
    assert colors.looks == 0
    await scene.clock.advance(0)
    assert colors.looks == 1
    assert failures(scene.metrics) == {"colors": 1}


async def test_a_failure_after_a_long_time_is_mended_at_once_again():
    informer = HandFed(thing("a", 2), thing("b", 2), thing("c", 2))
    colors = Colors(informer)
    scene = Scene(colors)
    scene.following.connect()
    for version, name in enumerate("ab", start=3):
        fail_once(colors, "remove")
        informer.drop(name, version)
        await scene.clock.advance(0)
        assert f"default/{name}" not in colors.names
        await scene.clock.advance(TRUSTED_AFTER + 1)


async def test_what_is_watched_later_is_connected_at_once():
    informer, later = HandFed(thing("a", 2)), HandFed(thing("b", 2))
    colors = Colors(informer)
    scene = Scene(colors)
    scene.following.connect()
    colors.watch(later, colors.changed)
    assert list(colors.names) == ["default/a", "default/b"]
    colors.unwatch(later)
    fail_once(colors, "remove")
    informer.drop("a", 3)
    await scene.clock.advance(0)
    assert colors.names == {}, "what is no longer watched is not told again"


async def test_what_is_closed_is_told_nothing_more_and_not_rebuilt():
    informer = HandFed(thing("a", 2, color="red"))
    colors, others = Colors(informer), Colors(informer, name="others")
    scene, another = Scene(colors), Scene(others)
    scene.following.connect()
    another.following.connect()
    fail_once(colors, "remove")
    informer.drop("a", 3)
    scene.following.close()
    await scene.clock.advance(TRUSTED_AFTER)
    informer.show(thing("b", 4, color="blue"))
    assert colors.names == {"default/a": "red"}
    assert others.names == {"default/b": "blue"}, "other readers of the informer go on"
