"""Parts of the logs of containers."""

from __future__ import annotations

import os

import pytest

from seamark.access.pod_streams import LogOptions
from seamark.nodes.running.spec import Container
from seamark.nodes.running.streaming import log_reading
from seamark.nodes.running.streaming.consoles import Console
from seamark.nodes.running.streaming.container_logs import LogFile

WRITTEN = """\
2026-11-17T07:00:01.000000000Z stdout F one
2026-11-17T07:00:02.000000000Z stderr F two
2026-11-17T07:00:03.000000000Z stdout P thr
2026-11-17T07:00:04.000000000Z stdout F ee
2026-11-17T07:00:05.000000000Z stdout P four
"""
THIRD = 1794898803.0  # 2026-11-17T07:00:03Z


async def read(folder, console=None, **options):
    return b"".join([piece async for piece in log_reading.read(folder, LogOptions(**options), console)]).decode()


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, "one\ntwo\nthree\nfour"),
        ({"stream": "Stderr"}, "two\n"),
        ({"tail": 3}, "three\nfour"),
        ({"tail": 0}, ""),
        ({"tail": 100}, "one\ntwo\nthree\nfour"),
        ({"limit": 6}, "one\ntw"),
        ({"since": THIRD}, "three\nfour"),
        (
            {"since": THIRD, "timestamps": True},
            "2026-11-17T07:00:03.000000000Z three\n2026-11-17T07:00:05.000000000Z four",
        ),
        ({"run": 1}, ""),
        ({"follow": True}, "one\ntwo\nthree\nfour"),
    ],
)
async def test_parts_of_a_log(tmp_path, options, shown):
    (tmp_path / "0.log").write_text(WRITTEN)
    assert await read(tmp_path, **options) == shown


async def test_files_that_were_moved_aside_are_part_of_the_log(tmp_path):
    log = LogFile(tmp_path / "0.log", largest=100)
    for number in range(4):
        log.write("stdout", [(b"%d" % number, True)])
    log.close()
    assert (tmp_path / "0.log.1").exists()
    assert await read(tmp_path) == "0\n1\n2\n3\n"
    assert await read(tmp_path, tail=3) == "1\n2\n3\n"


async def test_a_log_is_followed_into_its_next_file_until_the_container_ends(tmp_path):
    log = LogFile(tmp_path / "0.log", largest=200)
    console = Console(Container(), log)
    _, out, err = console.files
    pieces = log_reading.read(tmp_path, LogOptions(follow=True), console)
    seen = ""
    for number in range(6):
        os.write(out, b"a line of text %d\n" % number)
        while f"text {number}" not in seen:
            seen += (await anext(pieces)).decode()
    assert (tmp_path / "0.log.1").exists()
    os.write(err, b"last\n")
    console.handed_over()
    await console.finish()
    seen += "".join([piece.decode() async for piece in pieces])
    assert seen == "".join(f"a line of text {number}\n" for number in range(6)) + "last\n"
    assert not console.listeners
