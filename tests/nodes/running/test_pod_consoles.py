"""The standard streams of containers: logged, and shared with those who are attached."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

from seamark.nodes.running.spec import Container
from seamark.nodes.running.streaming import descriptors
from seamark.nodes.running.streaming.consoles import STDERR, STDOUT, Console
from seamark.nodes.running.streaming.container_logs import LogFile

ECHO = "import sys\nfor line in sys.stdin: print('got', line.strip(), flush=True)\nprint('over', file=sys.stderr)"
SIZE = "import os, sys\nsys.stdin.readline()\nprint(os.isatty(0), *os.get_terminal_size())"


class Attached:
    def __init__(self, console):
        self.heard = {STDOUT: b"", STDERR: b""}
        self.ended = asyncio.Event()
        self.changed = asyncio.Event()
        console.listeners.add(self.hear)

    def hear(self, stream, data):
        self.heard[stream] += data
        self.changed.set()
        if not data:
            self.ended.set()

    async def until(self, text):
        while text not in self.heard[STDOUT]:
            self.changed.clear()
            await self.changed.wait()


def started(console, script):
    reading, out, err = console.files
    process = subprocess.Popen([sys.executable, "-c", script], stdin=reading, stdout=out, stderr=err)
    console.handed_over()
    return process


def logged(path):
    return [line.split(" ", 3)[1:] for line in path.read_text().splitlines()]


async def test_input_reaches_the_container_and_ends_with_the_first_attached(tmp_path):
    console = Console(Container(stdin=True, stdin_once=True), LogFile(tmp_path / "0.log"))
    process = started(console, ECHO)
    attached = Attached(console)
    await console.write(b"hello\n")
    await attached.until(b"got hello\n")
    console.end_input()
    await console.finish()
    assert attached.ended.is_set()
    assert attached.heard == {STDOUT: b"got hello\n", STDERR: b"over\n"}
    assert process.wait() == 0
    assert sorted(logged(tmp_path / "0.log")) == [["stderr", "F", "over"], ["stdout", "F", "got hello"]]


async def test_input_that_stays_open_for_the_next_attached(tmp_path):
    console = Console(Container(stdin=True), LogFile(tmp_path / "0.log"))
    process = started(console, ECHO)
    attached = Attached(console)
    console.end_input()
    await console.write(b"again\n")
    await attached.until(b"got again\n")
    process.kill()
    process.wait()
    await console.finish()
    await console.write(b"late\n")  # is dropped


async def test_a_terminal_has_a_size(tmp_path):
    console = Console(Container(stdin=True, tty=True), LogFile(tmp_path / "0.log"))
    console.resize(100, 30)
    process = started(console, SIZE)
    attached = Attached(console)
    await console.write(b"go\n")
    await attached.until(b"True 100 30")
    process.wait()
    await console.finish()
    assert ["stdout", "F", "True 100 30"] in logged(tmp_path / "0.log")


async def test_a_container_without_input_reads_nothing(tmp_path):
    console = Console(Container(), LogFile(tmp_path / "0.log"))
    process = started(console, "import sys; print(repr(sys.stdin.read()))")
    await console.write(b"ignored")
    await console.finish()
    process.wait()
    assert logged(tmp_path / "0.log") == [["stdout", "F", "''"]]


async def test_descriptors_wait_for_the_other_side():
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    much = b"x" * 1_000_000
    task = asyncio.create_task(descriptors.write(writing, much))
    got = b""
    while len(got) < len(much):
        got += await descriptors.read(reading)
    await task
    os.close(writing)
    assert await descriptors.read(reading) == b""
    os.close(reading)
