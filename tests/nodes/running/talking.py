"""Programs on a machine whose output can be read."""

from __future__ import annotations

import os

from seamark.nodes.running.machine.machine import Machine, Process
from seamark.nodes.running.machine.messages import Start

PATH = "/usr/local/bin:/usr/bin:/bin"


class Talking:
    """A process whose output can be read."""

    def __init__(self, process: Process, reading: int) -> None:
        self.process = process
        self.reading = reading

    async def output(self) -> str:
        """All it wrote, once it has ended and everything it started has let go of its output."""
        await self.process.ended
        with open(self.reading, "rb") as file:
            return file.read().decode()


async def talking(machine: Machine, name: str, *arguments: str, **more) -> Talking:
    """Start a program and catch what it writes."""
    reading, writing = os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        start = Start(name, arguments, {"PATH": PATH}, **more)
        return Talking(await machine.run(start, [nothing, writing, writing]), reading)
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
        os.close(nothing)
