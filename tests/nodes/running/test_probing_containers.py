"""Probes of containers: thresholds, the order in which they are asked, and what follows."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from seamark.nodes.running.decisions import Record
from seamark.nodes.running.probes import Answer, Errored, Prober, Tally, port_number
from seamark.nodes.running.spec import Container, Probe
from seamark.rules.objects.pod import ContainerPort
from virtual_time import HastyClock


@pytest.mark.parametrize(
    ("answers", "success", "failure", "verdicts"),
    [
        ("+", 1, 3, "+"),
        ("-", 1, 3, "?"),
        ("---", 1, 3, "??-"),
        ("--+--", 1, 3, "??+++"),
        ("+---+", 1, 3, "+++-+"),
        ("---++", 2, 3, "??--+"),
        ("-", 1, 1, "-"),
        ("++-++", 2, 1, "?+--+"),
    ],
)
def test_thresholds(answers, success, failure, verdicts):
    probe, tally, seen = Probe(success_threshold=success, failure_threshold=failure), Tally(), ""
    for answer in answers:
        tally = tally.after(answer == "+", probe)
        seen += {None: "?", True: "+", False: "-"}[tally.verdict]
    assert seen == verdicts


class Asked:
    """A container whose probes get these answers; the one after the last ends the test."""

    def __init__(self, restarts=True, **answers):
        self.answers = {id(probe): list(said) for probe, said in answers.values()}
        self.kinds = {id(probe): kind for kind, (probe, _) in answers.items()}
        container = Container(name="main", **{f"{kind}_probe": probe for kind, (probe, _) in answers.items()})
        self.record = Record("running")
        self.told, self.order, self.moments = [], [], []
        self.clock = HastyClock()
        self.prober = Prober(
            container,
            ask=self.ask,
            tell=lambda reason, message: self.told.append((reason, message)),
            change=self.change,
            restarts=restarts,
            clock=self.clock,
        )
        self.enough = asyncio.Event()

    def change(self, how):
        self.record = how(self.record)

    async def ask(self, probe):
        if not self.answers[id(probe)]:
            self.enough.set()
            await asyncio.Event().wait()
        self.order.append(self.kinds[id(probe)])
        self.moments.append(self.clock.monotonic())
        said = self.answers[id(probe)].pop(0)
        if said == "!":
            raise Errored("cannot ask")
        return Answer(said in "+w", "refused", "odd" if said == "w" else "")

    async def run(self):
        running = asyncio.create_task(self.prober.run())
        waiting = asyncio.create_task(self.enough.wait())
        await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
        for each in (running, waiting):
            each.cancel()
            with suppress(asyncio.CancelledError):
                await each
        return self


async def test_readiness_follows_its_probe():
    asked = await Asked(readiness=(Probe(), "+")).run()
    assert asked.record.ready
    asked = await Asked(readiness=(Probe(failure_threshold=2), "+--")).run()
    assert not asked.record.ready
    assert asked.told == [("Unhealthy", "Readiness probe failed: refused")] * 2


async def test_a_container_whose_liveness_probe_fails_is_condemned():
    probe = Probe(failure_threshold=2, termination_grace_period_seconds=5)
    asked = await Asked(liveness=(probe, "--")).run()
    assert asked.record.condemned == "Container main failed liveness probe, will be restarted"
    assert asked.record.grace == 5
    asked = await Asked(restarts=False, liveness=(probe, "--")).run()
    assert asked.record.condemned == "Container main failed liveness probe"


async def test_startup_comes_before_the_others():
    asked = await Asked(startup=(Probe(), "--+"), readiness=(Probe(), "+")).run()
    assert asked.order == ["startup"] * 3 + ["readiness"]
    assert asked.record.booted
    assert asked.record.ready
    asked = await Asked(startup=(Probe(), "+")).run()
    assert asked.record.ready
    asked = await Asked(startup=(Probe(), "---"), readiness=(Probe(), "+")).run()
    assert asked.record.condemned.startswith("Container main failed startup probe")
    assert asked.order == ["startup"] * 3


async def test_delay_and_period():
    asked = await Asked(readiness=(Probe(initial_delay_seconds=5, period_seconds=3), "-++")).run()
    first = asked.moments[0]
    assert [moment - first for moment in asked.moments] == [0, 3, 6]
    assert first == asked.prober._started + 5


async def test_a_question_that_cannot_be_asked_changes_nothing_and_is_told():
    asked = await Asked(readiness=(Probe(failure_threshold=1), "+!")).run()
    assert asked.record.ready
    assert asked.told == [("Unhealthy", "Readiness probe errored and resulted in unknown state: cannot ask")]
    asked = await Asked(readiness=(Probe(), "w")).run()
    assert asked.told == [("ProbeWarning", "Readiness probe warning: odd")]


def test_named_ports():
    containers = [
        Container(name="main"),
        Container(name="other", ports=(ContainerPort(name="web", container_port=80),)),
    ]
    assert port_number("web", containers) == 80
    assert port_number("8080", containers) == port_number(8080, ()) == 8080
    with pytest.raises(Errored, match="unknown port: nothing"):
        port_number("nothing", containers)
