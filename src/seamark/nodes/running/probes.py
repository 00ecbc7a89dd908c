"""When the probes of a container are asked, and what their answers mean for it.

    a container starts ──▶ startup, until it passes ──▶ liveness and readiness, side by side, until the container ends

A verdict follows after ``successThreshold`` or ``failureThreshold`` equal answers in a row.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from functools import partial
from typing import Literal

import msgspec
from msgspec.structs import replace

from seamark.clock import Clock
from seamark.nodes.running import decisions
from seamark.nodes.running.decisions import Record
from seamark.nodes.running.spec import Container, Probe

Kind = Literal["Startup", "Liveness", "Readiness"]


class Answer(msgspec.Struct, frozen=True):
    """What one question found, in a kubelet's words; ``warning`` says what is odd about a success."""

    passed: bool
    said: str = ""
    warning: str = ""


class Errored(Exception):
    """The question could not be asked: that counts neither as a success nor as a failure."""


class Tally(msgspec.Struct, frozen=True):
    """Equal answers in a row, and the verdict so far (None: there is none yet)."""

    verdict: bool | None = None
    last: bool | None = None
    row: int = 0

    def after(self, passed: bool, probe: Probe) -> Tally:
        row = self.row + 1 if passed == self.last else 1
        enough = row >= (probe.success_threshold if passed else probe.failure_threshold)
        return Tally(passed if enough else self.verdict, passed, row)


class Prober:
    """Asks the probes of one run of a container, for as long as ``run`` runs.

    ``ask`` puts one question and may raise ``Errored``; ``tell`` records an Event about the container; ``change``
    changes its record.
    """

    def __init__(
        self,
        container: Container,
        *,
        ask: Callable[[Probe], Awaitable[Answer]],
        tell: Callable[[str, str], None],
        change: Callable[[Callable[[Record], Record]], None],
        restarts: bool,
        clock: Clock,
    ) -> None:
        self._container = container
        self._ask, self._tell, self._change = ask, tell, change
        self._restarts = restarts
        self._clock = clock
        self._started = clock.monotonic()

    async def run(self) -> None:
        startup, liveness, readiness = (
            self._container.startup_probe,
            self._container.liveness_probe,
            self._container.readiness_probe,
        )
        if startup is not None:
            passed = await self._first("Startup", startup)
            if not passed:
                self._condemn("Startup", startup)
                return
            self._change(lambda record: replace(record, booted=True, ready=readiness is None))
        async with asyncio.TaskGroup() as tasks:
            if liveness is not None:
                tasks.create_task(self._keep_alive(liveness))
            if readiness is not None:
                tasks.create_task(self._follow_readiness(readiness))

    async def _keep_alive(self, probe: Probe) -> None:
        async with aclosing(self._verdicts("Liveness", probe)) as verdicts:
            async for passed in verdicts:
                if not passed:
                    self._condemn("Liveness", probe)
                    return

    async def _follow_readiness(self, probe: Probe) -> None:
        async with aclosing(self._verdicts("Readiness", probe)) as verdicts:
            async for passed in verdicts:
                self._change(partial(replace, ready=passed))

    async def _first(self, kind: Kind, probe: Probe) -> bool:
        async with aclosing(self._verdicts(kind, probe)) as verdicts:
            return await anext(verdicts)

    def _condemn(self, kind: Kind, probe: Probe) -> None:
        words = f"Container {self._container.name} failed {kind.lower()} probe"
        if self._restarts:
            words += ", will be restarted"
        self._change(partial(decisions.condemned, why=words, grace=probe.termination_grace_period_seconds))

    async def _verdicts(self, kind: Kind, probe: Probe) -> AsyncGenerator[bool, None]:
        """Each new verdict."""
        clock, tally = self._clock, Tally()
        await clock.sleep(max(0.0, self._started + probe.initial_delay_seconds - clock.monotonic()))
        while True:
            began = clock.monotonic()
            if (passed := await self._answer(kind, probe)) is not None:
                before, tally = tally.verdict, tally.after(passed, probe)
                if tally.verdict is not None and tally.verdict != before:
                    yield tally.verdict
            await clock.sleep(max(0.0, began + probe.period_seconds - clock.monotonic()))

    async def _answer(self, kind: Kind, probe: Probe) -> bool | None:
        try:
            answer = await self._ask(probe)
        except Errored as error:
            self._tell("Unhealthy", f"{kind} probe errored and resulted in unknown state: {error}")
            return None
        if not answer.passed:
            self._tell("Unhealthy", f"{kind} probe failed: {answer.said}")
        elif answer.warning:
            self._tell("ProbeWarning", f"{kind} probe warning: {answer.warning}")
        return answer.passed


def port_number(port: int | str, containers: Iterable[Container]) -> int:
    """The number of a port; a name is looked up in the containers, the one that is probed first."""
    if isinstance(port, int) or port.isdecimal():
        return int(port)
    for container in containers:
        for each in container.ports:
            if each.name == port:
                return each.container_port
    raise Errored(f"unknown port: {port}")
