"""Measures what containers use: CPU since the last measurement, and memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from seamark.clock import Clock
from seamark.kinds.autoscaling.usage import Measurement, Used

if TYPE_CHECKING:
    from seamark.nodes.running.life import PodLife
    from seamark.nodes.running.machine.machine import Machine
    from seamark.nodes.running.machine.messages import Spent

PERIOD = 10.0
SOON = 1.0  # seconds until the first container is measured
AGAIN = 0.2  # seconds until it is seen whether a container that had too many processes still has


def threads_of_machine() -> int:
    """How many threads there are, of all processes: the kernel keeps count."""
    with open("/proc/loadavg") as file:
        return int(file.read().split()[3].partition("/")[2])


class Meter:
    """Measures the containers of ``lives`` while ``run`` runs."""

    def __init__(
        self,
        lives: Mapping[str, PodLife],
        clock: Clock,
        *,
        processes: int = 0,
        threads: Callable[[], int] = threads_of_machine,
    ) -> None:
        """``processes`` is how many a container may have, if not 0; ``threads`` counts those of the whole machine."""
        self._processes = processes
        self._threads = threads
        self._crowded: set[tuple[str, str]] = set()  # containers that had too many processes when last measured
        self._lives = lives
        self._clock = clock
        self._before: dict[tuple[str, str], tuple[float, float]] = {}  # by container: when, and CPU seconds until then
        self.last = Measurement()
        self.begun = asyncio.Event()  # set when a container starts

    async def run(self, machine: Machine) -> None:
        while True:
            if not any(life.open for life in self._lives.values()):
                self.begun.clear()
                await self.begun.wait()
                await self._clock.sleep(SOON)
            self.take(await machine.usage())
            await (self._clock.sleep(AGAIN) if self._crowded else self._rest())

    async def _rest(self) -> None:
        """Sleep until the next measurement is due, or until there are so many more threads that it may be a bomb."""
        if not self._processes:
            await self._clock.sleep(PERIOD)
            return
        least = self._threads()
        for _ in range(int(PERIOD / SOON)):
            await self._clock.sleep(SOON)
            now = self._threads()
            if now - least > self._processes / 2:
                return
            least = min(least, now)

    def take(self, usage: Mapping[str, Spent]) -> None:
        """What the machine says that processes have used, by their names."""
        now = self._clock.time()
        pods: dict[str, dict[str, Used]] = {}
        seen: dict[tuple[str, str], tuple[float, float]] = {}
        crowded = set()
        for pod, life in self._lives.items():
            for name, opened in life.open.items():
                if opened.process.name in usage:
                    spent = usage[opened.process.name]
                    seconds = spent.seconds
                    seen[pod, name] = now, seconds
                    if self._processes and spent.threads > self._processes:
                        crowded.add((pod, name))
                        life.crowded(name, spent.threads, still=(pod, name) in self._crowded)
                    when, before = self._before.get((pod, name), (life.records[name].started, 0.0))
                    if before > seconds:  # another run of the container
                        when, before = life.records[name].started, 0.0
                    cpu = (seconds - before) / max(now - when, 0.001)
                    pods.setdefault(pod, {})[name] = Used(max(cpu, 0.0), spent.memory)
        window = now - self.last.at if self.last.at else PERIOD
        self._before, self._crowded = seen, crowded
        self.last = Measurement(now, window, pods)
