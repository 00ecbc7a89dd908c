"""Logs, commands and ports of Pods that run, by the interface that the API server uses."""

from __future__ import annotations

import pytest
from pods_that_run import SERVER, pod, ready, until

from seamark import errors
from seamark.access.pod_streams import STDERR, STDIN, STDOUT, Command, LogOptions
from seamark.kinds.resource import PODS

ALL = frozenset({STDIN, STDOUT, STDERR})


async def running(daemon, name, script, **more):
    made = pod(name, script)
    made["spec"]["containers"][0].update(more)
    cluster = daemon.api.cluster("apiserver")
    await cluster.create(PODS, made, namespace="default")
    return (await until(daemon, name, ready)).metadata.uid


async def everything(session, stream=STDOUT):
    got = b""
    while piece := await session.read(stream):
        got += piece
    return got


async def test_commands_in_a_container(daemon):
    pods = daemon.api.connecting.pods
    uid = await running(daemon, "web", SERVER)
    session = await pods.open(uid, "main", Command(("sh", "-c", "cat; echo $HOSTNAME >&2; exit 3"), ALL))
    await session.write(b"hello")
    session.end_input()
    assert await everything(session) == b"hello"
    assert await everything(session, STDERR) == b"web\n"
    assert await session.ended() == 3
    await session.close()

    session = await pods.open(uid, "main", Command(("sh", "-c", "read x; stty size"), ALL - {STDERR}, terminal=True))
    session.resize(100, 30)
    await session.write(b"go\n")
    assert b"30 100" in await everything(session)
    assert await everything(session, STDERR) == b""
    session.end_input()
    assert await session.ended() == 0
    await session.close()

    session = await pods.open(uid, "main", Command(("sleep", "1000"), ALL))
    await session.close()
    assert await session.ended() == 137
    await session.write(b"too late")
    with pytest.raises(FileNotFoundError):
        await pods.open(uid, "main", Command(("no-such-program",), ALL))
    with pytest.raises(errors.InternalError, match="container not found"):
        pods.check_open(uid, "other")
    with pytest.raises(errors.NotFound):
        await pods.open("other", "main", Command(("sh",), ALL))


async def test_attached_to_a_container_with_input(daemon):
    pods = daemon.api.connecting.pods
    script = "print('got', input(), flush=True); input()"
    uid = await running(daemon, "talks", script, stdin=True, stdinOnce=True)
    session = await pods.open(uid, "main", Command((), ALL))
    session.resize(1, 1)
    await session.write(b"hello\n")
    assert await session.read(STDOUT) == b"got hello\n"
    lines = pods.logs(uid, "main", LogOptions(follow=True))
    assert await anext(lines) == b"got hello\n"
    await session.close()  # its input ends, and with it the container
    assert await session.ended() == 0
    assert b"EOFError" in b"".join([piece async for piece in lines])


async def test_connections_to_a_pod(daemon):
    pods = daemon.api.connecting.pods
    uid = await running(daemon, "web", SERVER)
    life = daemon.api.connecting.pods._hosting.lives[uid]

    async def connected(opening):
        reader, writer = await opening
        said = await reader.read(-1)
        writer.close()
        return said

    async def until_it_listens():
        async for piece in pods.logs(uid, "main", LogOptions(follow=True)):
            if b"serving" in piece:
                return

    await until_it_listens()
    assert await connected(pods.dial(uid, 8080)) == b"web\n"
    assert await connected(pods.reach(life.sandbox.pod_ips[0], 8080)) == b"web\n"
    assert await pods.reach("192.0.2.1", 80) is None
    with pytest.raises(ConnectionRefusedError):
        await pods.dial(uid, 8081)


async def test_a_container_that_is_added_to_look_into_a_pod(daemon):
    pods = daemon.api.connecting.pods
    uid = await running(daemon, "web", SERVER)
    cluster = daemon.api.cluster("apiserver")
    extra = {"name": "debugger", "image": "runs-here", "command": ["sh", "-c", "hostname; sleep 1000"]}
    await cluster.patch(
        PODS,
        "web",
        {"spec": {"ephemeralContainers": [extra]}},
        namespace="default",
        subresource="ephemeralcontainers",
        type="strategic",
    )
    await until(daemon, "web", lambda found: any(s.state.running for s in found.status.ephemeral_container_statuses))
    lines = pods.logs(uid, "debugger", LogOptions(follow=True))
    assert await anext(lines) == b"web\n"
    await lines.aclose()
