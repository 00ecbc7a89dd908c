"""Commands over SPDY, as Go's clients ask for them before WebSockets: over real sockets, with Pods that are made up."""

from __future__ import annotations

import asyncio
import json

import pytest
from fake_pods import listening, pod, put
from served import OTHER, served
from spdy_client import V4, spdy

from seamark.access.pod_streams import STDERR, STDIN, STDOUT, Command
from seamark.api.streaming import channels

PODS = "/api/v1/namespaces/default/pods"
EXEC = f"{PODS}/web/exec?command=sh&command=3&stdin=true&stdout=true&stderr=true"
ALL = frozenset({STDIN, STDOUT, STDERR})


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_command_ends_with_its_exit_code(api, pods, method):
    async with listening(api) as client, spdy(client, EXEC, "x, v5.channel.k8s.io", V4, method=method) as session:
        assert session.status == 101
        assert session.headers == [
            ("Upgrade", "SPDY/3.1"),
            ("Connection", "Upgrade"),
            ("X-Stream-Protocol-Version", V4),
        ]
        error, stdin, stdout, stderr = [await session.open(each) for each in ("error", "stdin", "stdout", "stderr")]
        assert session.accepted == {error, stdin, stdout, stderr}
        session.send(stdin, b"hel")
        session.send(stdin, b"lo", fin=True)
        await session.closed()
    assert session.ended == {error, stdin, stdout, stderr}
    assert session.got[stdout] == b"hello"
    status = json.loads(session.got[error])
    assert (status["status"], status["reason"]) == ("Failure", "NonZeroExitCode")
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
    assert pods.asked == [("main", Command(("sh", "3"), ALL))]
    await pods.sessions[0].closed.wait()


@pytest.mark.parametrize("protocol", channels.IN_STREAMS)
@pytest.mark.parametrize("code", ["0", "3"])
async def test_how_a_command_ended_in_each_protocol(api, pods, protocol, code):
    path = f"{PODS}/web/exec?command={code}&stdin=true&stdout=true"
    async with listening(api) as client, spdy(client, path, protocol) as session:
        error = await session.open("error")
        await session.open("stdin", fin=True)
        await session.open("stdout")
        await session.closed()
    told = session.got[error]
    if protocol == V4:
        assert json.loads(told)["status"] == ("Failure" if code == "3" else "Success")
    else:
        assert told == (b"command terminated with non-zero exit code: exit status 3" if code == "3" else b"")


@pytest.mark.parametrize("protocol", channels.IN_STREAMS)
async def test_a_terminal_has_a_size_since_v3(api, pods, protocol):
    path = f"{PODS}/two/attach?container=b&stdin=true&stdout=true&stderr=true&tty=true"
    async with listening(api) as client, spdy(client, path, protocol) as session:
        kinds = ["error", "stdin", "stdout"] + (["resize"] if protocol in (V4, "v3.channel.k8s.io") else [])
        streams = {kind: await session.open(kind) for kind in kinds}
        session.send(streams["stdin"], b"x")
        await session.until(lambda: session.got.get(streams["stdout"]) == b"x")
        if "resize" in streams:
            for piece in (b'{"Width":80,"Height":24}\n{"Wid', b'th":100,"Height":30}', b"nonsense}", b'{"Width":7}'):
                session.send(streams["resize"], piece)
            told = [await pods.sessions[0].outputs[STDERR].get() for _ in range(3)]
            assert told == [b"80x24", b"100x30", b"7x0"]
    assert pods.asked == [("b", Command((), frozenset({STDIN, STDOUT}), True))]
    await pods.sessions[0].closed.wait()


async def test_input_before_all_streams_are_there(api, pods):
    async with listening(api) as client, spdy(client, EXEC, V4) as session:
        stdin = session.begin("stdin")
        session.send(stdin, b"early", fin=True)
        stdout, *_ = [session.begin(each) for each in ("stdout", "stderr", "error")]
        await session.closed()
    assert session.got[stdout] == b"early"


async def test_one_frame_with_much_in_it(api, pods):
    async with listening(api) as client, spdy(client, EXEC, V4) as session:
        stdin, stdout, *_ = [session.begin(each) for each in ("stdin", "stdout", "stderr", "error")]
        session.send(stdin, b"x" * 3_000_000, fin=True)
        await session.closed()
    assert session.got[stdout] == b"x" * 3_000_000


@pytest.mark.parametrize("protocol", [V4, "channel.k8s.io"])
async def test_a_command_that_does_not_start(api, pods, protocol):
    path = f"{PODS}/web/exec?command=missing&stdout=true"
    async with listening(api) as client, spdy(client, path, protocol) as session:
        error, stdout = session.begin("error"), session.begin("stdout")
        await session.closed()
    assert session.ended == {error, stdout}
    told = session.got[error].decode()
    assert 'exec: "missing": executable file not found in $PATH' in (
        json.loads(told)["message"] if "{" in told else told
    )


async def test_a_command_is_ended_when_its_client_goes(api, pods):
    async with listening(api) as client:
        for leave in ("close", "reset"):
            async with spdy(client, EXEC, V4) as session:
                for each in ("stdin", "stdout", "stderr", "error"):
                    await session.open(each)
                if leave == "close":
                    session.writer.close()
                else:
                    session.writer.transport.abort()
                await pods.sessions[-1].closed.wait()


async def test_a_stream_that_the_client_resets_is_sent_no_more(api, pods):
    async with listening(api) as client, spdy(client, EXEC, V4) as session:
        stdin, stdout, _, error = [await session.open(each) for each in ("stdin", "stdout", "stderr", "error")]
        session.reset(stdout)
        session.send(stdin, b"hello")
        session.reset(stdin)
        await session.closed()
    assert json.loads(session.got[error])["reason"] == "NonZeroExitCode"
    assert stdout not in session.got


# --- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "known"), [(EXEC, channels.IN_STREAMS), (f"{PODS}/web/portforward", ["portforward.k8s.io"])]
)
async def test_no_common_protocol(api, pods, path, known):
    async with listening(api) as client, spdy(client, path, "v9.channel.k8s.io") as session:
        assert session.status == 403
        assert session.header("X-Accepted-Stream-Protocol-Versions") == list(known)
        words = f"client supports [v9.channel.k8s.io], server accepts [{' '.join(known)}]\n"
        assert (await session.reader.readline()).decode() == f"unable to upgrade: unable to negotiate protocol: {words}"


async def test_no_protocol(api, pods):
    async with listening(api) as client, spdy(client, EXEC) as session:
        assert session.status == 400
        status = json.loads(await session.reader.readexactly(int(session.header("Content-Length")[0])))
        assert status["message"] == "unable to upgrade: X-Stream-Protocol-Version is required"


async def test_the_right_to_create_is_needed():
    async with served(rbac=True) as api:
        rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
        await put(api, pod("web", "main"))
        for verb, expected in (("get", 403), ("create", 501)):
            rules = [{"apiGroups": [""], "resources": ["pods/exec"], "verbs": [verb]}]
            await api.post(f"{rbac}/roles", {"metadata": {"name": verb}, "rules": rules})
            subject = {"kind": "User", "name": "other", "apiGroup": "rbac.authorization.k8s.io"}
            role = {"kind": "Role", "name": verb, "apiGroup": "rbac.authorization.k8s.io"}
            await api.post(f"{rbac}/rolebindings", {"metadata": {"name": verb}, "subjects": [subject], "roleRef": role})
            async with listening(api, OTHER) as client, spdy(client, EXEC, V4) as session:
                assert session.status == expected


async def test_a_client_that_does_not_open_its_streams_is_cut_off(api, pods, monkeypatch):
    monkeypatch.setattr(channels, "PATIENCE", 0.1)
    async with listening(api) as client, spdy(client, EXEC, V4) as session:
        await session.open("error")
        await session.closed()
    assert pods.sessions == []


async def test_streams_that_are_no_channel_or_open_twice_are_refused(api, pods):
    async with listening(api) as client, spdy(client, EXEC, V4) as session:
        await session.open("error")
        again, other, none = [await session.open(each) for each in ("error", "other", None)]
        assert session.refused == {again, other, none}


# --- at the pace of the slower side ----------------------------------------------------------------


async def test_a_command_that_reads_nothing_stops_its_client(api, pods, monkeypatch):
    stuck = asyncio.Event()

    async def write(self, data):
        await stuck.wait()

    monkeypatch.setattr("fake_pods.Echo.write", write)
    async with listening(api) as client, spdy(client, EXEC, V4) as session:
        stdin, *_ = [await session.open(each) for each in ("stdin", "stdout", "stderr", "error")]
        (served,) = [each for each in client.listener.connections if each.stream is not None]
        while served.transport.is_reading():
            session.send(stdin, bytes(1 << 16))
            await asyncio.sleep(0)
        assert served.stream._unread < 1 << 21
        session.writer.transport.abort()


async def test_a_client_that_reads_nothing_stops_its_command(api, pods, monkeypatch):
    read = 0

    async def write_on(self, stream):
        nonlocal read
        read += 1
        return bytes(1 << 16)

    monkeypatch.setattr("fake_pods.Echo.read", write_on)
    async with listening(api) as client, spdy(client, EXEC, V4) as session:
        for each in ("stdin", "stdout", "stderr", "error"):
            session.begin(each)
        (served,) = [each for each in client.listener.connections if each.stream is not None]
        while served.stalled_since is None:  # nothing tells that a transport is full
            await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)
        before = read
        for _ in range(100):
            await asyncio.sleep(0)
        assert read == before
        assert served.transport.get_write_buffer_size() < 1 << 20
        session.writer.transport.abort()
