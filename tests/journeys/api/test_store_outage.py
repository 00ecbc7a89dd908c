"""A server whose store goes away and returns: it stays, says so, loses nothing, and goes on.

The tests wait for what must happen (a refusal, a watch that was cut, a lease that was lost), never for a time.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import resource
import socket
import ssl
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from api_calls import call
from seamark_process import Seamark, Start
from waiting import until

import etcd_server
from etcd_server import EtcdCluster, Member
from free_ports import free_port

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
WRITERS = 8
WATCHERS = 5


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EtcdCluster]:
    """An etcd of one member that may be killed."""
    if etcd_server.binary() is None:
        pytest.skip("no etcd binary runs here")
    cluster = EtcdCluster(tmp_path)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def connect(server: Seamark) -> http.client.HTTPSConnection:
    url = urlsplit(server.url)
    assert url.hostname is not None
    return http.client.HTTPSConnection(
        url.hostname, url.port, context=ssl.create_default_context(cafile=str(server.ca))
    )


class Load:
    """Writers that count up objects of their own, and watchers that note every change; all over real connections.

    A writer creates ``w3-7`` only after it knows what became of ``w3-6``.  ``acknowledged`` are the objects answered
    201; ``refused`` counts the other answers by code.
    """

    def __init__(self, server: Seamark, *, while_away: int) -> None:
        self._server = server
        self._while_away = while_away  # how a read of the current state is answered then
        self._stopping = threading.Event()
        self.acknowledged: set[str] = set()
        self.refused: Counter[int] = Counter()
        self.mistakes: list[str] = []
        self.seen: list[list[tuple[str, str]]] = [[] for _ in range(WATCHERS)]
        version = call(server, "GET", CONFIGMAPS)[1]["metadata"]["resourceVersion"]
        self._watchers = [
            threading.Thread(target=self._guard, args=(self._watch, seen, version), daemon=True) for seen in self.seen
        ]
        self._writers = [
            threading.Thread(target=self._guard, args=(self._write, number), daemon=True) for number in range(WRITERS)
        ]
        for thread in (*self._watchers, *self._writers):
            thread.start()

    def _guard(self, work: Callable[..., None], *arguments: Any) -> None:
        try:
            work(*arguments)
        except Exception as error:
            self.mistakes.append(f"{work.__name__}: {error!r}")
            raise

    def _ask(
        self, connection: http.client.HTTPSConnection, method: str, path: str, body: Any = None
    ) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self._server.token}", "Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = json.loads(answer.read())
        if answer.status >= 500:
            assert answer.status in (503, 504), text
            assert text["kind"] == "Status"
            if answer.status == 503:
                assert answer.headers["Retry-After"]
            else:
                assert "may have been" in text["message"]
        return answer.status, text

    def _write(self, number: int) -> None:
        connection = connect(self._server)
        step = 0
        while not self._stopping.is_set():
            step += 1
            name = f"w{number}-{step:05d}"
            while True:
                self._stopping.wait(0.02)  # an outage takes seconds; without a pause they only keep the machine busy
                status, _ = self._ask(connection, "POST", CONFIGMAPS, {"metadata": {"name": name}})
                if status in (201, 409):
                    break
                self.refused[status] += 1
            self.acknowledged.add(name)
            # What was acknowledged is there, or the server says that it cannot know.
            status, found = self._ask(connection, "GET", f"{CONFIGMAPS}/{name}")
            assert status in (200, self._while_away), found
        connection.close()

    def _watch(self, seen: list[tuple[str, str]], version: str) -> None:
        connection = connect(self._server)
        connection.request(
            "GET",
            f"{CONFIGMAPS}?watch=true&resourceVersion={version}",
            headers={"Authorization": f"Bearer {self._server.token}"},
        )
        with connection.getresponse() as stream:
            for line in stream:
                event = json.loads(line)
                name = event["object"]["metadata"].get("name", "")
                if name != "kube-root-ca.crt":  # a controller's
                    seen.append((event["type"], name))
                if name == "end":
                    break
        connection.close()

    def alive(self) -> None:
        assert not self.mistakes, self.mistakes
        assert self._server.process.poll() is None, self._server.log

    def until(self, ask: Callable[[], bool]) -> None:
        def look() -> bool:
            self.alive()
            return ask()

        until(look)

    def until_more(self, count: int = 50) -> None:
        """Until so many more writes were acknowledged."""
        wanted = len(self.acknowledged) + count
        self.until(lambda: len(self.acknowledged) >= wanted)

    def finish(self) -> None:
        """Stop the writers, and check that each watcher has seen each object once, and the store has them all."""
        self._stopping.set()
        for thread in self._writers:
            thread.join()
        status, made = call(self._server, "POST", CONFIGMAPS, {"metadata": {"name": "end"}})
        assert status == 201, made
        for thread in self._watchers:
            thread.join()
        self.alive()
        items = call(self._server, "GET", CONFIGMAPS)[1]["items"]
        names = {item["metadata"]["name"] for item in items} - {"kube-root-ca.crt"}
        assert self.acknowledged <= names
        for seen in self.seen:
            assert Counter(seen) == Counter(("ADDED", name) for name in names)


class Names:
    """Asks the DNS server for one name again and again; every query must be answered with the address."""

    def __init__(self, port: int, name: str) -> None:
        self._port = port
        labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
        self._query = struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", 1, 1)
        self._stopping = threading.Event()
        self.answered = 0
        self.wrong: list[str] = []
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.connect(("127.0.0.1", self._port))
            while not self._stopping.wait(0.01) and not self.wrong:
                try:
                    asking.send(self._query)
                    reply = asking.recv(4096)
                except OSError as error:
                    self.wrong.append(str(error))
                    return
                if reply[3] & 15 or reply[6:8] != b"\0\1":
                    self.wrong.append(reply.hex())
                self.answered += 1

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        assert not self.wrong


def kill(cluster: EtcdCluster, member: Member) -> Callable[[], None]:
    member.kill()

    def back() -> None:
        member.start()
        cluster.wait_until_healthy(member)

    return back


def freeze(cluster: EtcdCluster, member: Member) -> Callable[[], None]:
    member.freeze()
    return member.thaw


def see_controllers_at_work(server: Seamark) -> None:
    """Until this server leads, and its controllers react to a new namespace."""
    _, made = call(server, "POST", "/api/v1/namespaces", {"metadata": {"generateName": "new-"}})
    path = f"/api/v1/namespaces/{made['metadata']['name']}/configmaps/kube-root-ca.crt"
    until(lambda: call(server, "GET", path)[0] == 200)


def outage(server: Seamark, load: Load, names: Names, take_away: Callable[[], Callable[[], None]]) -> None:
    """Away for longer than every patience (of calls, of the watch, of the leader), and back."""
    see_controllers_at_work(server)
    load.until_more()
    refused = load.refused.total()
    cut, led = server.log.count("the store is not followed"), server.log.count("no longer leads")
    back = take_away()
    load.until(lambda: load.refused.total() >= refused + WRITERS)
    load.until(lambda: server.log.count("the store is not followed") > cut)
    load.until(lambda: server.log.count("no longer leads") > led)
    status, said = call(server, "GET", "/readyz?verbose")
    assert status == 500
    assert "[+]ping ok\n[-]store failed: etcd at " in said
    assert call(server, "GET", "/livez")[0] == 200
    assert call(server, "GET", CONFIGMAPS)[0] == 503
    assert call(server, "GET", f"{CONFIGMAPS}?resourceVersion=0")[0] == 200
    answered = names.answered
    load.until(lambda: names.answered > answered + 10 or bool(names.wrong))
    assert not names.wrong
    back()
    load.until_more()
    load.until(lambda: call(server, "GET", "/readyz")[0] == 200)


@pytest.mark.parametrize("how", [kill, freeze])
def test_etcd_goes_away_and_returns(
    start: Start, cluster: EtcdCluster, how: Callable[[EtcdCluster, Member], Callable[[], None]]
) -> None:
    port = free_port()
    store = f"etcd://{cluster.addresses[0]}/outage"
    server = start("--store", store, "--dns-port", str(port), "--nodes", "1", verb="up")
    names = Names(port, "kubernetes.default.svc.cluster.local")
    load = Load(server, while_away=503)
    for _ in range(2):
        outage(server, load, names, lambda: how(cluster, cluster.members[0]))
    load.finish()
    names.stop()
    see_controllers_at_work(server)
    assert server.stop() == 0


def limit(server: Seamark, _: Path) -> Callable[[], None]:
    """No file of the server may grow, or be written to at all: SQLite calls that an I/O error."""
    _, most = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (0, most))
    return lambda: resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (most, most)) and None


def fill(_: Seamark, disk: Path) -> Callable[[], None]:
    """Fill the disk to its last byte."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    return filler.unlink


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory on a disk of some megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", disk], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.mark.parametrize("how", [limit, fill])
def test_the_disk_is_full_and_has_room_again(
    start: Start, tmp_path: Path, how: Callable[[Seamark, Path], Callable[[], None]], request: pytest.FixtureRequest
) -> None:
    disk: Path = request.getfixturevalue("small_disk") if how is fill else tmp_path
    server = start(name=f"{disk.name}/data" if how is fill else "data")
    load = Load(server, while_away=200)
    for _ in range(2):
        load.until_more()
        refused = load.refused.total()
        back = how(server, disk)
        load.until(partial(lambda before: load.refused.total() >= before + WRITERS, refused))
        load.until(lambda: call(server, "GET", "/readyz")[0] == 500)
        assert f"[-]store failed: {server.directory}/store.db: " in call(server, "GET", "/readyz")[1]
        assert call(server, "GET", "/livez")[0] == 200
        assert call(server, "GET", CONFIGMAPS)[0] == 200
        back()
        load.until_more()
        load.until(lambda: call(server, "GET", "/readyz")[0] == 200)
    load.finish()
    server.kill()
    again = start(name=f"{disk.name}/data" if how is fill else "data")
    items = call(again, "GET", CONFIGMAPS)[1]["items"]
    assert load.acknowledged <= {item["metadata"]["name"] for item in items}
    assert again.stop() == 0


def ending(*arguments: str) -> tuple[int, str]:
    """The exit code and the words of a server that cannot start."""
    done = subprocess.run(
        [sys.executable, "-m", "seamark", "apiserver", *arguments], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


def test_a_start_without_etcd_ends_with_one_line(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    code, said = ending("--data-dir", str(tmp_path), "--store", f"etcd://{address}", "--api-port", "0")
    assert (code, said.count("\n")) == (1, 1)
    assert said.startswith(f"seamark: etcd at {address}: ")


def test_a_start_on_a_full_disk_ends_with_one_line(start: Start, small_disk: Path) -> None:
    server = start(name=f"{small_disk.name}/data")
    made = call(server, "POST", CONFIGMAPS, {"metadata": {"name": "a"}})[1]
    assert server.stop() == 0
    empty = fill(server, small_disk)
    code, said = ending("--data-dir", str(server.directory), "--api-port", "0")
    assert (code, said.count("\n")) == (1, 1)
    assert "No space left on device" in said
    empty()
    assert call(start(name=f"{small_disk.name}/data"), "GET", f"{CONFIGMAPS}/a")[1] == made
