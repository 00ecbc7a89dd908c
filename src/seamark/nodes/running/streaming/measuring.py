"""Measures what containers use: CPU since the last measurement, and memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from seamark.clock import Clock
from seamark.kinds.autoscaling.usage import Measurement, Used

if TYPE_CHECKING:
    from seamark.nodes.running.life import PodLife
    from seamark.nodes.running.machine.machine import Machine
    from seamark.nodes.running.machine.messages import Spent

PERIOD = 10.0
_CROWDED = 0.9  # of the processes that a container may have
FIRST = 1.0  # seconds until a container that is new is measured for the first time


class Meter:
    """Measures the containers of ``lives`` while ``run`` runs."""

    def __init__(self, lives: Mapping[str, PodLife], clock: Clock, *, processes: int = 0) -> None:
        """``processes`` is how many a container may have, if not 0."""
        self._processes = processes
        self._lives = lives
        self._clock = clock
        self._before: dict[tuple[str, str], tuple[float, float]] = {}  # by container: when, and CPU seconds until then
        self.last = Measurement()

    async def run(self, machine: Machine) -> None:
        while True:
            known = {(pod, name) for pod, life in self._lives.items() for name in life.open}
            if known:
                self.take(await machine.usage())
            await self._clock.sleep(FIRST if known - self._before.keys() else PERIOD)

    def take(self, usage: Mapping[str, Spent]) -> None:
        """What the machine says that processes have used, by their names."""
        now = self._clock.time()
        pods: dict[str, dict[str, Used]] = {}
        seen: dict[tuple[str, str], tuple[float, float]] = {}
        for pod, life in self._lives.items():
            for name, opened in life.open.items():
                if opened.process.name in usage:
                    spent = usage[opened.process.name]
                    seconds = spent.seconds
                    seen[pod, name] = now, seconds
                    if self._processes and spent.threads >= self._processes * _CROWDED:
                        life.crowded(name, spent.threads)
                    when, before = self._before.get((pod, name), (life.records[name].started, 0.0))
                    if before > seconds:  # another run of the container
                        when, before = life.records[name].started, 0.0
                    cpu = (seconds - before) / max(now - when, 0.001)
                    pods.setdefault(pod, {})[name] = Used(max(cpu, 0.0), spent.memory)
        window = now - self.last.at if self.last.at else PERIOD
        self._before = seen
        self.last = Measurement(now, window, pods)
