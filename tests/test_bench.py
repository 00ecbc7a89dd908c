"""The load generator of the benchmarks reads every answer that HTTP/1.1 allows, and two runs can be compared."""

import asyncio
import contextlib

import msgspec
import pytest
from bench import compare
from bench._load import Server, drive
from bench._report import Line, Report, Results

SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
REFUSED = b"HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nnope\r\n0\r\n\r\n"


async def driven(answer: bytes, requests: int, *, piece: int):
    """The result of sending requests to a server that gives this answer, in pieces of so many bytes."""

    async def serve(reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError), contextlib.closing(writer):
            while await reader.readuntil(b"\r\n\r\n"):
                for at in range(0, len(answer), piece):
                    writer.write(answer[at : at + piece])
                    await writer.drain()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        return await drive(Server(host, port, None, "token"), [b"GET / HTTP/1.1\r\n\r\n"] * requests, 2)


@pytest.mark.parametrize("piece", [1, 7, 1000])
@pytest.mark.parametrize("answer", [SIZED, CHUNKED], ids=["sized", "chunked"])
async def test_every_answer_is_counted_once(answer, piece):
    result = await driven(answer, 20, piece=piece)
    assert round(result.rate * result.seconds) == 20
    assert result.cpu is None  # no process was named


async def test_a_refusal_ends_the_run_with_its_text():
    with pytest.raises(RuntimeError, match=r"403 .*nope"):
        await driven(REFUSED, 20, piece=1000)


def test_runs_are_compared_by_cost():
    a = Results("api", "old", "", "", [Line("get", 100, 50.0), Line("idle", megabytes=40), Line("only here", 5)])
    b = Results("api", "new", "", "", [Line("get", 900, 25.0), Line("idle", megabytes=60), Line("only there", 7)])
    lines = [line.split() for line in compare.table(a, b)]
    assert lines[1] == ["get", "100/s,", "50", "µs", "900/s,", "25", "µs", "0.50", "×"]
    assert lines[2][-2:] == ["1.50", "×"]
    assert lines[3][-1] == lines[4][-1] == "–"


def test_a_saved_run_can_be_read_again(tmp_path, capsys):
    report = Report("api", "this")
    report.memory("idle", 44)
    report.save(str(tmp_path / "run.json"))
    assert compare.read(str(tmp_path / "run.json")).lines == [Line("idle", megabytes=44)]
    (tmp_path / "bad.json").write_bytes(msgspec.json.encode([1]))
    for name in ("bad.json", "absent.json"):
        with pytest.raises(SystemExit, match=name):
            compare.read(str(tmp_path / name))
