"""Logs, commands and ports of Pods over real sockets, with Pods that are made up."""

from __future__ import annotations

import asyncio
import base64
import json

import aiohttp
import pytest
from fake_pods import Echo, FakePods, listening, pod, put
from served import OTHER, served

from seamark.access.credentials import Fixed, Identity
from seamark.access.kubeconfig import Connection
from seamark.access.pod_streams import STDERR, STDIN, STDOUT, Command, LogOptions
from seamark.access.portforward.tunnels import Tunnels
from seamark.access.transport import Transport
from seamark.api.http.websocket import AT_ONCE
from seamark.api.streaming import channels, commands, sockets
from seamark.api.streaming.channels import channels_of

PODS = "/api/v1/namespaces/default/pods"
V5 = "v5.channel.k8s.io"


async def status_of(response):
    return response.status, (await response.json())["message"]


# --- logs ------------------------------------------------------------------------------------------


async def test_logs(api, pods):
    async with listening(api) as client, client.get(f"{PODS}/web/log?tailLines=3") as answer:
        assert (answer.status, answer.content_type, await answer.text()) == (200, "text/plain", "first\n")
    assert pods.asked == [("main", LogOptions(tail=3))]


@pytest.mark.parametrize("protocol", ["binary.k8s.io", "base64.binary.k8s.io", ""])
async def test_logs_over_a_websocket(api, pods, protocol):
    async with listening(api) as client:
        offered = [protocol] if protocol else []
        async with client.ws_connect(f"{PODS}/web/log", protocols=offered) as socket:
            assert (socket.protocol or "") == protocol
            messages = [each.data async for each in socket]
    assert messages == [b"", base64.b64encode(b"first\n").decode() if "base64" in protocol else b"first\n"]


async def test_logs_are_followed_until_the_client_goes(api, pods):
    async with listening(api) as client:
        answer = await client.get(f"{PODS}/web/log?follow=true")
        assert await answer.content.readline() == b"first\n"
        answer.close()
        await pods.followed.wait()


async def test_logs_that_are_refused(api, pods):
    async with listening(api) as client:
        for path, expected in (
            ("two/log", (400, "a container name must be specified for pod two, choose one of: [a b]")),
            ("none/log", (404, 'pods "none" not found')),
            ("web/log?previous=true", (400, 'previous terminated container "main" in pod "web" not found')),
            # Options are judged before the Pod is looked for.
            (
                "none/log?tailLines=-1",
                (
                    422,
                    'PodLogOptions "none" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0',
                ),
            ),
            ("none/log?limitBytes=x", (400, 'strconv.ParseInt: parsing "x": invalid syntax')),
        ):
            async with client.get(f"{PODS}/{path}") as answer:
                assert await status_of(answer) == expected


async def test_a_pod_without_a_node_has_nothing_to_tell_yet(api):
    waiting = pod("web", "main")
    waiting["spec"].pop("nodeName")
    await put(api, waiting)
    answer = await api.ask("GET", f"{PODS}/web/log")
    assert (answer.status, answer.body) == (204, b"")
    assert (await api.ask("GET", f"{PODS}/web/log?previous=true")).status == 204
    answer = await api.ask("GET", f"{PODS}/web/log?container=other")
    assert (answer.status, answer.json["message"]) == (400, "container other is not valid for pod web")


async def test_a_container_is_looked_for_before_the_pods_node(api):
    waiting = pod("web", "main")
    waiting["spec"].pop("nodeName")
    await put(api, waiting)
    for subresource in ("exec?command=ls&", "attach?"):
        answer = await api.ask("GET", f"{PODS}/web/{subresource}stdout=true&container=other")
        assert (answer.status, answer.json["message"]) == (400, "container other is not valid for pod web")
        answer = await api.ask("GET", f"{PODS}/web/{subresource}stdout=true")
        assert (answer.status, answer.json["message"]) == (400, "pod web does not have a host assigned")


async def test_a_simulated_pod_has_no_log(api):
    await put(api, pod("web", "main"))
    answer = await api.ask("GET", f"{PODS}/web/log")
    assert (answer.status, answer.json["reason"]) == (501, "NotImplemented")
    assert "--pods processes" in answer.json["message"]


# --- commands --------------------------------------------------------------------------------------


async def test_a_command_ends_with_its_exit_code(api, pods):
    path = f"{PODS}/web/exec?command=sh&command=3&stdin=true&stdout=true&stderr=true"
    async with listening(api) as client, client.ws_connect(path, protocols=["x", V5]) as socket:
        assert socket.protocol == V5
        assert await socket.receive_bytes() == b"\x01"
        await socket.send_bytes(b"\x00hello")
        assert await socket.receive_bytes() == b"\x01hello"
        await socket.send_bytes(b"\x04" + json.dumps({"Width": 80, "Height": 24}).encode())
        assert await socket.receive_bytes() == b"\x0280x24"
        await socket.send_bytes(b"\xff\x00")
        told = await socket.receive_bytes()
        assert told[:1] == b"\x03"
        status = json.loads(told[1:])
        assert (status["status"], status["reason"]) == ("Failure", "NonZeroExitCode")
        assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
    assert pods.asked == [("main", Command(("sh", "3"), frozenset({STDIN, STDOUT, STDERR})))]
    await pods.sessions[0].closed.wait()


async def test_a_long_message_in_pieces(api, pods):
    path = f"{PODS}/web/exec?command=0&stdin=true&stdout=true"
    async with listening(api) as client, client.ws_connect(path, protocols=[V5]) as socket:
        much = b"x" * 3_000_000
        sending = asyncio.create_task(socket.send_bytes(b"\x00" + much))
        got = b""
        while len(got) < len(much):
            piece = await socket.receive_bytes()
            assert piece[:1] == b"\x01"
            got += piece[1:]
        await sending
        assert got == much
        await socket.send_bytes(b"\xff\x00")
        assert json.loads((await socket.receive_bytes())[1:]) == {"metadata": {}, "status": "Success"}


@pytest.mark.parametrize("protocol", ["channel.k8s.io", "", "base64.channel.k8s.io", "v4.base64.channel.k8s.io"])
@pytest.mark.parametrize("code", ["0", "3"])
async def test_older_protocols(api, pods, protocol, code):
    """Without a version, only a failure is told, as a text; with base64, messages are text and channels digits."""
    text = "base64" in protocol
    path = f"{PODS}/web/exec?command={code}&stdin=true&stdout=true"
    offered = [protocol] if protocol else []
    async with listening(api) as client, client.ws_connect(path, protocols=offered) as socket:
        for piece in (b"hel", b"lo"):
            await (
                socket.send_str(f"0{base64.b64encode(piece).decode()}") if text else socket.send_bytes(b"\0" + piece)
            )
        got = {}
        while len(got.get(STDOUT, b"")) < 5:
            channel, data = unpacked(await socket.receive(), text=text)
            got[channel] = got.get(channel, b"") + data
        pods.sessions[0].end_input()
        rest = [unpacked(each, text=text) async for each in socket]
    assert got == {STDOUT: b"hello"}
    if protocol.startswith("v4"):
        ((channel, data),) = rest
        assert (channel, json.loads(data)["status"]) == (3, "Failure" if code == "3" else "Success")
    else:
        words = b"command terminated with non-zero exit code: exit status 3"
        assert rest == ([(3, words)] if code == "3" else [])


def unpacked(message, *, text):
    if text:
        return int(message.data[0]), base64.b64decode(message.data[1:])
    return message.data[0], message.data[1:]


async def test_a_command_is_ended_when_its_client_goes(api, pods):
    async with listening(api) as client:
        for leave in ("close", "drop"):
            socket = await client.ws_connect(f"{PODS}/web/exec?command=0&stdin=1&stdout=1", protocols=[V5])
            await socket.receive_bytes()
            if leave == "close":
                await socket.close()
            else:
                socket._response.connection.transport.abort()
            await pods.sessions[-1].closed.wait()


async def test_messages_without_content_are_not_kept_without_bound(api, pods, monkeypatch):
    monkeypatch.setattr(sockets, "MOST_UNREAD", 10 * sockets.PIECE_COST)
    monkeypatch.setattr(Echo, "write", lambda session, data: asyncio.Event().wait())
    made = []
    monkeypatch.setattr(
        channels, "channels_of", lambda socket, protocol: made.append(socket) or channels_of(socket, protocol)
    )
    async with listening(api) as client:
        socket = await client.ws_connect(f"{PODS}/web/exec?command=0&stdin=1", protocols=[V5])
        await socket.receive_bytes()
        for _ in range(10 * AT_ONCE):
            await socket.send_bytes(b"")
        while not made[0].full:
            await asyncio.sleep(0)
        for _ in range(100):  # turns of the event loop, in which nothing more is taken
            await asyncio.sleep(0)
        assert len(made[0]._arrived) <= 10 + AT_ONCE
        socket._response.connection.transport.abort()


async def test_what_follows_a_goodbye_is_ignored(api, pods):
    async with listening(api) as client:
        socket = await client.ws_connect(f"{PODS}/web/exec?command=0&stdin=1", protocols=[V5])
        await socket.receive_bytes()
        transport = socket._response.connection.transport
        goodbye, ping = b"\x88\x80" + bytes(4), b"\x89\x80" + bytes(4)
        transport.write(ping + goodbye + ping + goodbye)
        transport.write(ping)
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        await pods.sessions[0].closed.wait()


@pytest.mark.parametrize("protocol", [V5, "v4.channel.k8s.io"])
async def test_a_client_that_closes_its_websocket_has_ended_the_input(api, pods, protocol):
    """Before v5 there is no other way.  The command gets all that was sent before, and ends by itself."""
    path = f"{PODS}/web/exec?command=0&stdin=1"
    async with listening(api) as client:
        socket = await client.ws_connect(path, protocols=[protocol])
        await socket.receive_bytes()
        for _ in range(20):
            await socket.send_bytes(b"\x00" + bytes(100_000))
        await socket.close()
        (session,) = pods.sessions
        await session.closed.wait()
    assert session.code.done()
    assert session.outputs[STDOUT].qsize() >= 20
    assert sum(len(session.outputs[STDOUT].get_nowait()) for _ in range(session.outputs[STDOUT].qsize())) == 2_000_000


async def test_a_command_that_goes_on_after_its_client_has_closed_is_ended(api, pods, monkeypatch):
    monkeypatch.setattr(commands, "AFTER_CLOSE", 0.0)
    monkeypatch.setattr(Echo, "end_input", lambda _: None)
    async with listening(api) as client:
        socket = await client.ws_connect(f"{PODS}/web/exec?command=0&stdin=1", protocols=[V5])
        await socket.receive_bytes()
        await socket.close()
        await pods.sessions[0].closed.wait()
    assert not pods.sessions[0].code.done()


async def test_attached_to_a_container(api, pods):
    path = f"{PODS}/two/attach?container=b&stdout=true&tty=true"
    async with listening(api) as client, client.ws_connect(path, protocols=["v4.channel.k8s.io"]) as socket:
        await pods_session(pods, socket)
        pods.sessions[0].end_input()
        assert json.loads((await socket.receive_bytes())[1:])["status"] == "Success"
    assert pods.asked == [("b", Command((), frozenset({STDOUT}), True))]


async def pods_session(pods, socket):
    assert await socket.receive_bytes() == b"\x01"
    await socket.send_bytes(b"\x00x")
    assert await socket.receive_bytes() == b"\x01x"
    return pods.sessions[0]


@pytest.mark.parametrize(
    ("command", "reason", "words"),
    [
        ("missing", "InternalError", 'exec: "missing": executable file not found in $PATH'),
        ("refused", "NotFound", "pod does not exist"),
    ],
)
async def test_a_command_that_does_not_start(api, pods, command, reason, words):
    path = f"{PODS}/web/exec?command={command}&stdout=true"
    async with listening(api) as client, client.ws_connect(path, protocols=[V5]) as socket:
        assert await socket.receive_bytes() == b"\x01"
        status = json.loads((await socket.receive_bytes())[1:])
    assert status["reason"] == reason
    assert words in status["message"]
    if reason == "InternalError":
        assert status["message"] == f"Internal error occurred: {status['details']['causes'][0]['message']}"


async def test_commands_that_are_refused(api, pods):
    await put(api, pod("early", "waits"))
    async with listening(api) as client:
        for path, expected in (
            ("web/exec?command=sh&stdout=1", (400, "Upgrade request required")),
            ("web/exec?stdout=1", (400, "you must specify at least one command")),
            ("web/attach", (400, "you must specify at least 1 of stdin, stdout, stderr")),
            ("web/attach?container=x", (400, "container x is not valid for pod web")),
            ("early/attach?stdout=1", (500, 'unable to upgrade connection: container not found ("waits")')),
            (
                "done/exec?command=sh&stdout=1",
                (400, "cannot exec into a container in a completed pod; current phase is Succeeded"),
            ),
        ):
            async with client.post(f"{PODS}/{path}") as answer:
                assert await status_of(answer) == expected
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await client.ws_connect(f"{PODS}/web/exec?command=sh&stdout=1", protocols=["v1.example.com"])


async def test_a_websocket_needs_the_right_to_create():
    """It begins with GET, which a reader may do; a command is more than reading."""
    async with served(rbac=True) as api:
        rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
        rules = [{"apiGroups": [""], "resources": ["pods/exec", "pods/log"], "verbs": ["get"]}]
        await api.post(f"{rbac}/roles", {"metadata": {"name": "r"}, "rules": rules})
        subject = {"kind": "User", "name": "other", "apiGroup": "rbac.authorization.k8s.io"}
        role = {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
        await api.post(f"{rbac}/rolebindings", {"metadata": {"name": "b"}, "subjects": [subject], "roleRef": role})
        await put(api, pod("web", "main"))
        api.api.connecting.pods = FakePods()
        assert (await api.ask("GET", f"{PODS}/web/exec?command=sh&stdout=1", token=OTHER)).status == 403
        assert (await api.ask("GET", f"{PODS}/none/log", token=OTHER)).status == 404


# --- ports -----------------------------------------------------------------------------------------


async def test_connections_in_a_tunnel(api, pods, echoing):
    async with listening(api) as client:
        authorization = client.headers["Authorization"]
        transport = Transport(Connection(client.server, Fixed(Identity(authorization=authorization))))
        tunnels = Tunnels(transport)
        for _ in range(2):
            connection = await tunnels.connect(("default", "web", "uid"), 80)
            await connection.send(b"x" * 1_000_000)
            await connection.end()
            got = b""
            while piece := await connection.receive():
                got += piece
            assert got == b"X" * 1_000_000
            await connection.over()
            await connection.close()
        connection = await tunnels.connect(("default", "web", "uid"), 1)
        assert await connection.receive() == b""
        await connection.over()
        assert connection.problem == "error forwarding port 1 to pod: connection refused"
        await connection.close()
        await tunnels.close()
        await transport.close()


async def test_ports_as_channels(api, pods):
    async def handle(reader, writer):
        writer.write((await reader.read(5)).upper())
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    pods.server = server.sockets[0].getsockname()
    path = f"{PODS}/web/portforward?ports=80&ports=1"
    async with listening(api) as client, client.ws_connect(path, protocols=["v4.channel.k8s.io"]) as socket:
        begun = [await socket.receive_bytes() for _ in range(4)]
        assert begun == [b"\x00\x50\x00", b"\x01\x50\x00", b"\x02\x01\x00", b"\x03\x01\x00"]
        await socket.send_bytes(b"\x00hello")
        told = sorted([await socket.receive_bytes() for _ in range(2)])
        assert told == [b"\x00HELLO", b"\x03error forwarding port 1 to pod: connection refused"]
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
    server.close()


async def test_ports_that_are_refused(api, pods):
    async with listening(api) as client:
        for query in ("", "?ports=x", "?ports=0", "?ports=%D9%A1"):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await client.ws_connect(f"{PODS}/web/portforward{query}", protocols=["v4.channel.k8s.io"])
            assert refused.value.status == 400
