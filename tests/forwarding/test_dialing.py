"""Connecting to backends: what is said when it does not work, and connections that are not Pods'."""

from __future__ import annotations

import asyncio

import pytest
from forwarded_cluster import ask

from seamark import errors
from seamark.forwarding.backends import Backend, InTurn
from seamark.forwarding.dialing import Dialer, Unreachable
from seamark.forwarding.listener import Listener

POD = Backend("10.1.0.1", 8080, ("default", "web-1", "u"))


class Refusing:
    """Tunnels that cannot be opened."""

    def __init__(self, error):
        self.error = error

    async def connect(self, pod, port):
        raise self.error

    prepare = connect


def lost():
    error = errors.ServiceUnavailable("cannot reach https://example: Connection refused")
    error.__cause__ = OSError()
    return error


@pytest.mark.parametrize(
    ("error", "sentence", "never"),
    [
        (errors.NotFound('pods "web-1" not found'), "^Pod web-1 is gone$", False),
        (errors.NotFound("the server could not find the requested resource"), "does not forward ports of Pods", True),
        (errors.MethodNotAllowed("no"), "does not forward ports of Pods: no; only endpoints that are no Pods", True),
        (errors.Forbidden("pods is forbidden"), "it takes `create` and `get` on pods/portforward", True),
        (errors.InternalError("container not running"), "Pod web-1 cannot be reached: container not running", False),
        (lost(), "^cannot reach https://example: Connection refused$", False),
        (ConnectionResetError("the tunnel broke"), "Pod web-1 cannot be reached: the tunnel broke", False),
    ],
)
async def test_what_the_api_refuses_is_said_and_whether_that_will_change(error, sentence, never):
    with pytest.raises(Unreachable, match=sentence) as refused:
        await Dialer(Refusing(error)).connect(POD)
    assert refused.value.never is never


async def test_the_next_backend_is_tried_unless_none_can_ever_be_reached():
    for error, tries in ((errors.NotFound('pods "x" not found'), 2), (errors.Forbidden("no"), 1)):
        told = []
        listener = Listener(
            "Service web", lambda: [POD, POD], Dialer(Refusing(error)), policy=InTurn(), tell=told.append
        )
        host, port = await listener.listen("127.0.0.1", 0)
        assert await ask(host, port) == b""
        await listener.close()
        assert len(told) == tries


async def test_a_direct_connection_carries_a_half_close_in_either_direction():
    async def greeting(reader, writer):
        """Ends its own direction first, then reads on."""
        writer.write(b"hello")
        writer.write_eof()
        got.set_result(await reader.read(-1))
        writer.close()

    got = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(greeting, "127.0.0.1", 0)
    backend = Backend(*server.sockets[0].getsockname()[:2])
    listener = Listener("Service web", lambda: [backend], Dialer(Refusing(None)), policy=InTurn(), tell=print)
    reader, writer = await asyncio.open_connection(*await listener.listen("127.0.0.1", 0))
    assert await reader.read(-1) == b"hello"
    writer.write(b"still here")
    writer.write_eof()
    assert await got == b"still here"
    writer.close()
    await listener.close()
    server.close()


async def test_closing_a_listener_ends_its_connections():
    ended = asyncio.Event()

    async def waiting(reader, writer):
        writer.write(await reader.read(1))
        await reader.read(-1)
        ended.set()
        writer.close()

    server = await asyncio.start_server(waiting, "127.0.0.1", 0)
    backend = Backend(*server.sockets[0].getsockname()[:2])
    listener = Listener("Service web", lambda: [backend], Dialer(Refusing(None)), policy=InTurn(), tell=print)
    reader, writer = await asyncio.open_connection(*await listener.listen("127.0.0.1", 0))
    writer.write(b"x")
    assert await reader.read(1) == b"x"
    await listener.close()
    assert await reader.read(-1) == b""
    await ended.wait()
    writer.close()
    server.close()
