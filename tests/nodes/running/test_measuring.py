"""How it is measured what containers use."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from seamark.kinds.autoscaling.usage import Measurement, Used
from seamark.nodes.running.decisions import Record
from seamark.nodes.running.machine.messages import Spent
from seamark.nodes.running.streaming.measuring import PERIOD, Meter


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


async def test_new_containers_are_measured_soon():
    life = SimpleNamespace(open={}, records={"main": Record("running", started=90.0)})
    clock = Ticking()
    meter = Meter({"uid": life}, clock)

    class Machine:
        async def usage(self):
            return {"uid/main": Spent(1.0, 1)}

    async def run():
        with pytest.raises(Over):
            await meter.run(Machine())

    await run()
    assert (clock.slept, meter.last.at) == ([PERIOD] * 3, 0.0)
    life.open["main"] = SimpleNamespace(process=SimpleNamespace(name="uid/main"))
    clock.slept.clear()
    await run()
    assert meter.last.pods["uid"]["main"].memory == 1
