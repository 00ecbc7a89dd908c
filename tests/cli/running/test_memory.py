"""A process that runs for days gives back the memory that it no longer needs."""

import gc
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from seamark.cli.running import memory

GNU = pytest.mark.skipif(memory._trim() is None, reason="the C library has no malloc_trim")


@pytest.fixture
def collector():
    """What these tests change of the process is put back."""
    thresholds, callbacks, enabled = gc.get_threshold(), list(gc.callbacks), gc.isenabled()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    gc.callbacks[:] = callbacks
    (gc.enable if enabled else gc.disable)()


class Ended(Exception):
    """Ends what runs for ever."""


def test_a_process_that_works_gives_memory_back_each_minute():
    slept, given, now, worked = [], [], 1000.0, 5.0

    def sleep(seconds):
        nonlocal worked
        slept.append(seconds)
        if len(slept) == 6:
            raise Ended
        worked += 0.5 if len(slept) < 4 else memory.WORK

    def trim(left):
        nonlocal now
        given.append((len(slept), left))
        now += 0.01 if len(given) == 1 else 1.0

    with pytest.raises(Ended):
        memory.give_back(trim, sleep=sleep, now=lambda: now, worked=lambda: worked)
    assert given == [(4, 0), (5, 0)], "not while it has hardly worked"
    assert slept == [memory.PAUSE] * 5 + [memory.REST * 1.0], "after a long time it rests longer"


def test_what_the_start_has_freed_is_given_back_and_one_thread_goes_on(monkeypatch, collector):
    given, started = [], []

    class Thread:
        def __init__(self, *, target, args, name, daemon):
            self.name, self.work = name, (target, args, daemon)

        def start(self):
            started.append(self)

    monkeypatch.setattr(memory, "_trim", lambda: given.append)
    monkeypatch.setattr(memory.threading, "Thread", Thread)
    monkeypatch.setattr(memory.threading, "enumerate", lambda: started)
    memory.settle()
    memory.settle()
    assert gc.isenabled()
    assert given == [0, 0]
    assert [thread.work for thread in started] == [(memory.give_back, (given.append,), True)]


def test_another_c_library_is_left_alone(monkeypatch, collector):
    monkeypatch.setattr(memory, "_trim", lambda: None)
    memory.settle()
    gc.collect()


@GNU
def test_the_kernel_has_the_pages_between_those_in_use():
    """In a process of its own, because what other tests have freed would be given back, too."""
    program = """
        import time
        from pathlib import Path
        from seamark.cli.running import memory

        def resident():
            return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

        memory.PAUSE, memory.WORK = 0.01, 0.0
        memory.settle()
        blocks = [bytes(8192) for _ in range(8000)]
        full = resident()
        del blocks[::2]
        blocks += [None] * 4000
        while full - resident() < 0.3 * 4000 * 8192:
            time.sleep(0.01)
    """
    if not Path("/proc/self/statm").exists():
        pytest.skip("memory is read from /proc")
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)
