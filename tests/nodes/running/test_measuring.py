"""How it is measured what containers use."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from seamark.kinds.autoscaling.usage import Measurement, Used
from seamark.nodes.running.decisions import Record
from seamark.nodes.running.machine.messages import Spent
from seamark.nodes.running.streaming.measuring import AGAIN, PERIOD, SOON, Meter, threads_of_machine


class Over(Exception):
    pass


class Ticking:
    def __init__(self):
        self.now = 100.0
        self.slept = []

    def time(self):
        return self.now

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds
        if len(self.slept) == 3:
            raise Over


async def test_cpu_is_what_was_used_since_the_last_measurement():
    life = SimpleNamespace(
        open={"main": SimpleNamespace(process=SimpleNamespace(name="uid/main"))},
        records={"main": Record("running", started=90.0)},
    )
    clock = Ticking()
    meter = Meter({"uid": life}, clock)
    meter.take({"uid/main": Spent(5.0, 1000), "other": Spent(9.0, 9)})
    assert meter.last == Measurement(100.0, PERIOD, {"uid": {"main": Used(0.5, 1000)}})
    clock.now = 110.0
    meter.take({"uid/main": Spent(7.0, 2000)})
    assert meter.last == Measurement(110.0, 10.0, {"uid": {"main": Used(0.2, 2000)}})
    life.records["main"] = Record("running", started=118.0)
    clock.now = 120.0
    meter.take({"uid/main": Spent(1.0, 10)})
    assert meter.last.pods == {"uid": {"main": Used(0.5, 10)}}


def container(name):
    return SimpleNamespace(process=SimpleNamespace(name=name))


class Machine:
    def __init__(self, threads=1):
        self.threads = threads

    async def usage(self):
        return {"uid/main": Spent(1.0, 1, self.threads)}


class Life:
    def __init__(self, **open):
        self.open = open
        self.records = {"main": Record("running", started=90.0)}
        self.crowds = []

    def crowded(self, name, processes, *, still):
        self.crowds.append((name, processes, still))


async def test_nothing_is_measured_until_a_container_starts():
    life, clock = Life(), Ticking()
    meter = Meter({"uid": life}, clock)
    running = asyncio.create_task(meter.run(Machine()))
    await asyncio.sleep(0)
    assert clock.slept == []
    life.open["main"] = container("uid/main")
    meter.begun.set()
    with pytest.raises(Over):
        await running
    assert clock.slept == [SOON, PERIOD, PERIOD]
    assert meter.last.pods["uid"]["main"].memory == 1


async def test_many_new_threads_on_the_machine_are_a_reason_to_measure():
    life, clock = Life(main=container("uid/main")), Ticking()
    counted = iter([140, 100, 151])
    meter = Meter({"uid": life}, clock, processes=100, threads=lambda: next(counted))
    life.crowded = lambda *_, **__: pytest.fail("it has no more than it may have")
    measured = []
    meter.take = lambda usage: measured.append(clock.now) if not measured else (_ for _ in ()).throw(Over)
    with pytest.raises(Over):
        await meter.run(Machine(threads=100))
    assert (measured, clock.slept) == ([100.0], [SOON, SOON])


async def test_a_container_with_too_many_processes_is_looked_at_again_soon():
    life, clock = Life(main=container("uid/main")), Ticking()
    meter = Meter({"uid": life}, clock, processes=100, threads=lambda: 0)
    with pytest.raises(Over):
        await meter.run(Machine(threads=101))
    assert clock.slept == [AGAIN] * 3
    assert life.crowds == [("main", 101, False), ("main", 101, True), ("main", 101, True)]


def test_the_threads_of_the_machine_are_counted():
    assert threads_of_machine() > 0
