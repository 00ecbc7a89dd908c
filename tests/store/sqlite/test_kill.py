"""``kill -9`` in the middle of concurrent writes: what was acknowledged is there, and nothing is there by halves."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from seamark.store.sqlite import SqliteStore

CHILD = Path(__file__).with_name("writing_child.py")


def write_until_killed(path: Path, lines: int) -> list[tuple[int, int, int]]:
    """Let a process write, kill it after some acknowledgements, return all it gave."""
    child = subprocess.Popen([sys.executable, str(CHILD), str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    acknowledged = []
    for line in child.stdout:
        acknowledged.append(line)
        if len(acknowledged) == lines:
            child.kill()
    child.stdout.close()
    assert child.wait() == -9
    whole = [line.split() for line in acknowledged if line.endswith("\n")]
    return [(int(number), int(counter), int(revision)) for number, counter, revision in whole]


async def check(path: Path, acknowledged: dict[tuple[int, int], int], before: int) -> int:
    store = SqliteStore(path, history_seconds=None)
    await store.open()
    revision = await store.revision()
    assert revision >= max(acknowledged.values())
    assert revision >= before
    parts: dict[str, set[tuple[bytes, int]]] = {}
    for row in (await store.read("/writer/", "/writer0")).rows:
        number = row.key.split("/")[2]
        parts.setdefault(number, set()).add((row.value.split(b".", 1)[0], row.revision))
    steps = {row.key: row.revision for row in (await store.read("/step/", "/step0")).rows}
    assert max(steps.values()) <= revision
    for (number, counter), at in acknowledged.items():
        assert steps[f"/step/{number}/{counter}"] == at
    for number, seen in parts.items():
        ((counter_text, at),) = seen  # the three keys agree in value and revision
        assert steps[f"/step/{number}/{int(counter_text)}"] == at
        assert f"/step/{number}/{int(counter_text) + 1}" not in steps
    await store.close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    return revision


async def rounds(path: Path, count: int) -> None:
    chance = random.Random(count)
    acknowledged: dict[tuple[int, int], int] = {}
    revision = 0
    for _ in range(count):
        for number, counter, at in write_until_killed(path, chance.randrange(1, 400)):
            acknowledged[number, counter] = at
        revision = await check(path, acknowledged, revision)


async def test_killed_twenty_times(tmp_path: Path) -> None:
    await rounds(tmp_path / "store.db", 20)


@pytest.mark.soak
async def test_killed_a_thousand_times(tmp_path: Path) -> None:
    for part in range(20):
        await rounds(tmp_path / f"store-{part}.db", 50)
