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


def test_memory_is_given_back_after_a_collection_of_older_objects(monkeypatch, collector):
    given, now = [], 1000.0

    def trim(left):
        nonlocal now
        given.append(left)
        now += 0.01

    monkeypatch.setattr(memory, "_give_back", memory._GivingBack(lambda: now))
    monkeypatch.setattr(memory, "_trim", lambda: trim)
    memory.settle()
    memory.settle()
    assert gc.isenabled()
    given.clear()
    gc.collect(0)
    assert given == []
    gc.collect(1)
    gc.collect(2)
    assert given == [0], "it is not done again at once"
    now += 2
    gc.collect(2)
    assert given == [0, 0]


def test_what_the_start_has_freed_is_given_back(monkeypatch, collector):
    given = []
    monkeypatch.setattr(memory, "_trim", lambda: given.append)
    memory.settle()
    assert given == [0]


def test_another_c_library_is_left_alone(monkeypatch, collector):
    monkeypatch.setattr(memory, "_trim", lambda: None)
    memory.settle()
    gc.collect()


@GNU
def test_the_kernel_has_the_pages_between_those_in_use():
    """In a process of its own, because what other tests have freed would be given back, too."""
    program = """
        import gc
        from pathlib import Path
        from seamark.cli.running import memory

        def resident():
            return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

        memory.settle()
        blocks = [bytes(8192) for _ in range(8000)]
        full = resident()
        del blocks[::2]
        blocks += [None] * 4000
        gc.collect()
        print((full - resident()) / (4000 * 8192))
    """
    if not Path("/proc/self/statm").exists():
        pytest.skip("memory is read from /proc")
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    assert float(done.stdout) > 0.3
