"""The load generator of the benchmarks reads every answer that HTTP/1.1 allows, and two runs can be compared."""

import asyncio
import contextlib
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from bench import compare
from bench.__main__ import names
from bench.api import of_kubeconfig
from bench.rig.load import Server, drive
from bench.rig.plot import Curve, growth, plot
from bench.rig.report import Line, Report, Results
from seamark_process import Seamark

from seamark.access.kubeconfig import load
from seamark.access.remote import RemoteCluster
from seamark.kinds.resource import NAMESPACES

ROOT = Path(__file__).parent.parent
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


KUBECONFIG = """
current-context: second
contexts:
- {name: first, context: {cluster: one, user: one}}
- {name: second, context: {cluster: two, user: two}}
clusters:
- {name: one, cluster: {server: "https://192.0.2.1:1"}}
- {name: two, cluster: {server: "http://127.0.0.1:7080"}}
users:
- {name: one, user: {token: wrong}}
- {name: two, user: {tokenFile: token}}
"""


async def test_the_server_to_measure_is_that_of_the_current_context(tmp_path):
    (tmp_path / "config").write_text(KUBECONFIG)
    (tmp_path / "token").write_text("right\n")
    assert await of_kubeconfig(str(tmp_path / "config"), (1, 2)) == Server("127.0.0.1", 7080, None, "right", (1, 2))


async def test_a_cluster_that_was_measured_is_as_it_was_before(tmp_path):
    small = ("--pods", "5", "--requests", "5", "--clients", "2", "--watchers", "2", "--events", "2")
    seamark = Seamark(tmp_path / "data", "--dns-port", "0", "--no-node-ports", verb="up")
    command = [sys.executable, "-m", "bench", "api", "--kubeconfig", str(seamark.kubeconfig), *small]
    try:
        ended = await asyncio.to_thread(subprocess.run, command, cwd=ROOT, capture_output=True, text=True)
        assert (ended.returncode, ended.stderr) == (0, "")
        async with RemoteCluster(load(seamark.kubeconfig)) as cluster:
            while "bench" in [each["metadata"]["name"] for each in (await cluster.list(NAMESPACES)).items]:
                await asyncio.sleep(0.05)
    finally:
        seamark.kill()


def test_the_table_of_figures_is_measured():
    small = ("--pods", "5", "--requests", "5", "--clients", "2", "--watchers", "2", "--events", "2")
    command = [sys.executable, "-m", "bench", "table", *small, "--ready", "5", "--questions", "640"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "DNS, queries" in ended.stdout


@pytest.mark.parametrize("verb", ["api", "controllers"])
def test_a_kubeconfig_that_is_not_there_is_one_line(verb, tmp_path):
    command = [sys.executable, "-m", "bench", verb, "--kubeconfig", str(tmp_path / "none")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (1, f"bench {verb}: there is no kubeconfig at {tmp_path / 'none'}\n")


def test_the_manual_says_what_each_of_them_measures():
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    told = re.findall(r"^\| `([a-z]+)` \|", page.partition("\n## ")[0], re.M)
    assert sorted([*told, "compare"]) == names()


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
