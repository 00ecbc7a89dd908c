"""The load generator of the benchmarks reads every answer that HTTP/1.1 allows, and two runs can be compared."""

import asyncio
import contextlib
from xml.etree import ElementTree

import msgspec
import pytest
from bench import compare
from bench.rig.load import Server, drive
from bench.rig.plot import Curve, growth, plot
from bench.rig.report import Line, Report, Results

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
    mine = [Line("get", 100, 50.0), Line("idle", megabytes=40), Line("start", seconds=1.25), Line("only here", 5)]
    theirs = [Line("get", 900, 25.0), Line("idle", megabytes=60), Line("start", seconds=5), Line("only there", 7)]
    a, b = Results("api", "old", "", "", mine), Results("api", "new", "", "", theirs)
    lines = [line.split() for line in compare.table(a, b)]
    assert lines[1] == ["get", "100/s,", "50", "µs", "900/s,", "25", "µs", "0.50", "×"]
    assert lines[2][-2:] == ["1.50", "×"]
    assert lines[3] == ["start", "1.25", "s", "5.00", "s", "4.00", "×"]
    assert lines[4][-1] == lines[5][-1] == "–"


def test_a_saved_run_can_be_read_again(tmp_path, capsys):
    report = Report("api", "this")
    report.memory("idle", 44)
    report.save(str(tmp_path / "run.json"))
    assert compare.read(str(tmp_path / "run.json")).lines == [Line("idle", megabytes=44)]
    (tmp_path / "bad.json").write_bytes(msgspec.json.encode([1]))
    for name in ("bad.json", "absent.json"):
        with pytest.raises(SystemExit, match=name):
            compare.read(str(tmp_path / name))


def test_growth_is_that_of_the_second_half_without_peaks():
    minutes = [float(n) for n in range(61)]
    settling = Curve("memory", minutes, [100 * min(1, n / 10) for n in minutes])
    assert growth(settling) == 0
    peaks = Curve("memory", minutes, [100 + 80 * (n % 13 == 0) for n in minutes])
    assert growth(peaks) == 0
    leaking = Curve("memory", minutes, [100 + n / 10 for n in minutes])
    assert growth(leaking) == pytest.approx(6 / 104.5 * 100, rel=0.01)


def test_curves_are_a_picture_from_zero():
    picture = plot(
        [Curve("a < b", [0.0, 30.0, 60.0], [5.0, 10.0, 5.0]), Curve("empty", [0.0, 60.0], [0, 0])], "minutes"
    )
    root = ElementTree.fromstring(picture)
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 2
    first, middle, _ = [tuple(map(float, point.split(","))) for point in lines[0].get("points", "").split()]
    bottom = float(lines[1].get("points", "").split(",")[1].split()[0]) - 154  # of the second curve, one curve below
    assert bottom - middle[1] == pytest.approx(2 * (bottom - first[1]))
    assert "a &lt; b" in picture
