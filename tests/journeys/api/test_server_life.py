"""How an API server starts, refuses to start, survives and ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import signal
import socket
import ssl
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api_calls import call, watched
from seamark_process import Seamark, Start


def refused(tmp_path: Path, *arguments: str) -> tuple[int, str]:
    """The exit code and the last words of a server that must not start."""
    command = [sys.executable, "-m", "seamark", "apiserver", "--data-dir", str(tmp_path / "data"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_secrets_are_their_owners_only(start: Start) -> None:
    server = start()
    for path in [server.kubeconfig, *(server.directory / "pki").iterdir()]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(server.directory.stat().st_mode) == 0o700


def test_certificates_and_token_are_kept_over_a_restart(start: Start) -> None:
    first = start()
    kept = (first.token, first.ca.read_bytes())
    assert first.stop() == 0
    second = start()
    assert (second.token, second.ca.read_bytes()) == kept
    assert call(second, "GET", "/api/v1/namespaces/default")[0] == 200


def test_anonymous_sees_health_and_nothing_else(start: Start) -> None:
    server = start()
    assert call(server, "GET", "/version", token=None)[0] == 200
    for path in ("/api", "/metrics", "/api/v1/namespaces/default/secrets", "/openapi/v2"):
        assert call(server, "GET", path, token=None)[0] == 403
    assert call(server, "GET", "/healthz", token="not-a-token")[0] == 401


def test_a_client_certificate_says_who_you_are(start: Start, tmp_path: Path) -> None:
    from seamark.api.certificates import Authority

    server = start()
    for name, groups, expected in (("ann", ["system:masters"], 200), ("bob", ["readers"], 403)):
        certificate, key = Authority(server.directory / "pki").client(name, groups)
        (tmp_path / "c.pem").write_bytes(certificate + key)
        tls = ssl.create_default_context(cafile=str(server.ca))
        tls.load_cert_chain(tmp_path / "c.pem")
        status, text = 200, f'User \\"{name}\\"'
        try:
            urllib.request.urlopen(f"{server.url}/api/v1/pods", context=tls).close()
        except urllib.error.HTTPError as error:
            with error:
                status, text = error.code, error.read().decode()
        assert status == expected
        assert f'User \\"{name}\\"' in text


def test_more_users_come_from_a_token_file(start: Start, tmp_path: Path) -> None:
    users = tmp_path / "tokens.csv"
    users.write_text('secret-1,ann,u1,"system:masters"\nsecret-2,bob,u2\n')
    server = start("--token-file", str(users))
    assert call(server, "GET", "/api/v1/pods", token="secret-1")[0] == 200
    assert call(server, "GET", "/api/v1/pods", token="secret-2")[0] == 403
    assert call(server, "GET", "/api", token="secret-2")[0] == 200


def test_plain_http_is_for_loopback_only(start: Start, tmp_path: Path) -> None:
    server = start("--plain-http")
    assert server.url.startswith("http://127.0.0.1:")
    assert call(server, "GET", "/api/v1/nodes")[0] == 200
    code, said = refused(tmp_path, "--plain-http", "--api-host", "0.0.0.0")
    assert code == 2
    assert "loopback" in said


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--service-range", "10.96.0.0/12,10.0.0.0/16"), 2, "already a range of IPv4"),
        (("--service-range", "nonsense"), 2, "nonsense"),
        (("--node-port-range", "9-1"), 2, "node ports"),
        (("--config", "/does/not/exist"), 2, "/does/not/exist"),
        (("--store", "postgres://x"), 2, "of no known kind"),
        (("--store", "sqlite:////proc/nope/store.db"), 1, "/proc/nope"),
        (("--api-host", "192.0.2.77"), 1, "cannot listen on 192.0.2.77"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(tmp_path: Path, arguments: tuple[str, ...], code: int, words: str) -> None:
    ended, said = refused(tmp_path, *arguments)
    assert ended == code, said
    assert words in said
    assert len(said.strip().splitlines()) == 1


def test_a_port_in_use_is_named(start: Start, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, said = refused(tmp_path, "--api-port", port)
    assert code == 1
    assert port in said
    assert "--api-port" in said


def test_a_second_server_on_the_same_directory_is_refused(start: Start, tmp_path: Path) -> None:
    server = start()
    code, said = refused(tmp_path, "--api-port", "0")
    assert code == 1
    assert f"pid {server.process.pid}" in said
    assert call(server, "GET", "/api/v1/nodes")[0] == 200


def test_a_broken_store_file_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    foreign = tmp_path / "data" / "store.db"
    foreign.write_bytes(b"this is no database" * 100)
    code, said = refused(tmp_path, "--api-port", "0")
    assert code == 1
    assert str(foreign) in said
    assert foreign.read_bytes() == b"this is no database" * 100


# urllib leaves the sockets of requests that the kill cut off to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_everything_acknowledged_survives_kill_9_and_watches_go_on(start: Start) -> None:
    """Under load: kill, start again; same uids, same addresses, the watch resumes from where it was."""
    server = start()
    made: dict[str, tuple[str, str]] = {}

    def create(number: int) -> None:
        body = {"metadata": {"name": f"s{number}"}, "spec": {"ports": [{"port": 80}]}}
        with contextlib.suppress(OSError, ValueError):
            status, obj = call(server, "POST", "/api/v1/namespaces/default/services", body)
            if status == 201:
                made[obj["metadata"]["name"]] = (obj["metadata"]["uid"], obj["spec"]["clusterIP"])

    version = call(server, "GET", "/api/v1/services")[1]["metadata"]["resourceVersion"]
    loop = asyncio.get_running_loop()
    writing = [loop.run_in_executor(None, create, number) for number in range(200)]
    while len(made) < 40:
        await asyncio.sleep(0.01)
    server.kill()
    await asyncio.gather(*writing)
    again = start()
    found = {
        item["metadata"]["name"]: (item["metadata"]["uid"], item["spec"]["clusterIP"])
        for item in call(again, "GET", "/api/v1/namespaces/default/services")[1]["items"]
    }
    assert made.items() <= found.items()
    addresses = [address for name, (_, address) in found.items()]
    assert len(set(addresses)) == len(addresses)
    reserved = {
        item["metadata"]["name"] for item in call(again, "GET", "/apis/networking.k8s.io/v1/ipaddresses")[1]["items"]
    }
    assert reserved == set(addresses)

    def complete(events: list[Any]) -> bool:
        return made.keys() <= {event["object"]["metadata"]["name"] for event in events if event["type"] == "ADDED"}

    await asyncio.to_thread(watched, again, f"/api/v1/services?resourceVersion={version}", until=complete)


def test_sigterm_ends_watches_cleanly(start: Start) -> None:
    server = start("--profile", "plain")
    tls = ssl.create_default_context(cafile=str(server.ca))
    asked = urllib.request.Request(f"{server.url}/api/v1/namespaces/default/configmaps?watch=true")
    asked.add_header("Authorization", f"Bearer {server.token}")
    with urllib.request.urlopen(asked, context=tls) as stream:
        assert call(server, "POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})[0] == 201
        assert json.loads(stream.readline())["object"]["metadata"]["name"] == "a"
        assert server.stop() == 0
        # The terminating chunk came: reading on ends, it does not fail.
        assert stream.read() == b""


HOSTILE = [
    b"",
    b"null",
    b"[" * 100_000,
    b'{"metadata":' * 5_000,
    b'{"metadata":{"name":"\xff\xfe"}}',
    b'{"metadata":{"name":"a\\u0000b"}}',
    b'{"metadata":{"name":"a","generation":1e400}}',
    b'{"metadata":{"name":"a","generation":99999999999999999999999999}}',
    b'{"metadata":{"name":{}}}',
    b'{"metadata":[]}',
    b'{"data":{"a":"\\ud800"},"metadata":{"name":"a"}}',
    b"\x00" * 1000,
    b'{"kind":' + b"9" * 10_000 + b"}",
]


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("media", ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"])
def test_hostile_bodies_get_a_clear_status(shared_server: Seamark, body: bytes, media: str) -> None:
    status, answer = call(shared_server, "POST", "/api/v1/namespaces/default/configmaps", raw=body, media=media)
    assert status in (400, 413, 415, 422), answer
    assert answer["kind"] == "Status"
    assert answer["message"]


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    server = Seamark(tmp_path_factory.mktemp("hostile") / "data")
    yield server
    assert server.stop() == 0


@pytest.mark.parametrize(
    "sent",
    [
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: " + b"y" * 2_000_000 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(64),
    ],
    ids=range(7),
)
def test_what_is_no_http_hurts_nobody(shared_server: Seamark, sent: bytes) -> None:
    host, port = shared_server.url.removeprefix("https://").split(":")
    tls = ssl.create_default_context(cafile=str(shared_server.ca))
    with (
        contextlib.suppress(OSError),
        socket.create_connection((host, int(port))) as plain,
        tls.wrap_socket(plain, server_hostname=host) as sock,
    ):
        sock.sendall(sent)
        sock.recv(65536)
    assert call(shared_server, "GET", "/api/v1/nodes")[0] == 200


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux limits another process")
def test_clients_are_served_though_silent_ones_take_all_descriptors(start: Start) -> None:
    server = start()
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (64, 64))
    host, _, port = server.url.removeprefix("https://").partition(":")
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(socket.create_connection((host, int(port))))
        for _ in range(3):
            assert call(server, "GET", "/api/v1/namespaces/default")[0] == 200
    assert call(server, "GET", "/api/v1/namespaces/default")[0] == 200
    assert server.stop() == 0
    assert server.log.count("cannot accept connections for a moment: Too many open files; see `ulimit -n`") == 1


@contextlib.contextmanager
def started_with(hangup: signal.Handlers) -> Iterator[None]:
    """What is started meanwhile begins with this answer to SIGHUP; the tests themselves may run under `nohup`."""
    before = signal.signal(signal.SIGHUP, hangup)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def test_it_ends_in_order_when_its_terminal_is_closed(start: Start) -> None:
    with started_with(signal.SIG_DFL):
        server = start()
    server.process.send_signal(signal.SIGHUP)
    assert server.process.wait() == 0


def test_it_stays_when_its_terminal_is_closed_if_it_was_told_to(start: Start) -> None:
    """As `nohup` starts it."""
    with started_with(signal.SIG_IGN):
        server = start()
    server.process.send_signal(signal.SIGHUP)
    assert call(server, "GET", "/api/v1/namespaces/default")[0] == 200
    assert server.stop() == 0
