"""Questions without an event loop: the answers, their order, and what goes wrong on the way."""

import asyncio

import pytest
from http_server import HttpServer

from seamark import errors
from seamark.access.blocking import BlockingTransport, run, together
from seamark.access.credentials import Fixed, Identity
from seamark.access.kubeconfig import Connection
from seamark.access.sending import Request


class Clock:
    """Notes how long to wait, and does not."""

    def __init__(self):
        self.slept = []

    async def sleep(self, seconds):
        self.slept.append(seconds)


async def asked(server, paths, *, credentials=None, clock=None, prefix="", warn=None, body=None):
    """What these requests are answered with, or the error."""
    connection = Connection(server.url + prefix, credentials or Fixed(Identity("Bearer t")))
    transport = BlockingTransport(connection, clock=clock or Clock(), warn=warn)

    async def one(path):
        method, query = ("GET", (("limit", "5"), ("labelSelector", "a=b,c"))) if body is None else ("POST", ())
        try:
            return await transport.send(Request(method, path, query, body))
        except errors.ApiError as error:
            return error

    async def all_of_them():
        try:
            return await together(*(one(path) for path in paths))
        finally:
            await transport.close()

    return await asyncio.to_thread(lambda: run(all_of_them()))


async def echo(exchange):
    await exchange.answer(200, exchange.request.path.encode())


async def test_many_answers_on_one_connection_in_order():
    async with HttpServer(echo) as server:
        paths = [f"/p{number}" for number in range(40)]
        assert await asked(server, paths, prefix="/k8s/clusters/c") == [f"/k8s/clusters/c{p}".encode() for p in paths]
        assert server.connections == 1
        request = server.requests[0]
        assert request.query == {"limit": "5", "labelSelector": "a=b,c"}
        assert request.headers["authorization"] == ["Bearer t"]
        assert request.headers["host"] == [server.url.removeprefix("http://")]


def once(raw):
    """Answers with these bytes, and closes the connection."""

    async def handler(exchange):
        exchange.writer.write(raw)
        await exchange.writer.drain()
        exchange.cut = True

    return handler


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: z\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabcde",
    ],
)
async def test_bodies(raw):
    async def handler(exchange):
        exchange.writer.write(raw)

    async with HttpServer(handler) as server:
        assert await asked(server, ["/a", "/b"]) == [b"abcde", b"abcde"]
        assert server.connections == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\n\r\nabc",
        b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
    ],
)
async def test_a_server_that_closes_after_each_answer_is_asked_again(raw):
    async with HttpServer(once(raw)) as server:
        assert await asked(server, ["/a", "/b", "/c"]) == [b"abc"] * 3
        assert server.connections == 3


async def test_a_lost_answer_is_asked_for_again_but_a_write_is_not():
    async def handler(exchange):
        if len(server.requests) == 1:
            exchange.drop()
        else:
            await echo(exchange)

    clock = Clock()
    async with HttpServer(handler) as server:
        assert await asked(server, ["/a"], clock=clock) == [b"/a"]
        assert len(clock.slept) == 1
    async with HttpServer(handler) as server:
        (error,) = await asked(server, ["/a"], body=b"{}")
        assert isinstance(error, errors.ServiceUnavailable)
        assert "lost the connection" in error.message
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n",
    ],
)
async def test_nonsense_and_half_answers_are_one_line(raw):
    async with HttpServer(once(raw)) as server:
        (error,) = await asked(server, ["/a"])
        assert isinstance(error, errors.ServiceUnavailable)
        assert error.message.startswith(f"lost the connection to {server.url}: ")
        assert "\n" not in error.message


async def test_refusals_carry_the_servers_words_and_its_wish_to_wait():
    async def handler(exchange):
        if exchange.request.path == "/no":
            await exchange.fail(403, "Forbidden", "you may not")
        elif len(server.requests) < 3:
            await exchange.fail(429, "TooManyRequests", headers=[("Retry-After", "2")])
        else:
            await exchange.answer(200, b"x", headers=[("Warning", '299 - "old"'), ("Warning", '299 - "older"')])

    clock, warnings = Clock(), []
    async with HttpServer(handler) as server:
        refused, later = await asked(server, ["/no", "/later"], clock=clock, warn=warnings.append)
    assert isinstance(refused, errors.Forbidden)
    assert refused.message == "you may not"
    assert later == b"x"
    assert clock.slept == [2.0]
    assert warnings == ["old", "older"]


class Renewing:
    def __init__(self):
        self.token = "old"

    async def current(self):
        return Identity(f"Bearer {self.token}")

    def refused(self, identity):
        self.token = "new"
        return True


async def test_refused_credentials_are_renewed_once():
    async def handler(exchange):
        if exchange.request.headers["authorization"] == ["Bearer new"]:
            await echo(exchange)
        else:
            await exchange.fail(401, "Unauthorized")

    async with HttpServer(handler) as server:
        assert await asked(server, ["/a"], credentials=Renewing()) == [b"/a"]


async def test_a_server_that_is_not_there():
    async with HttpServer(echo) as server:
        pass
    (error,) = await asked(server, ["/a"])
    assert error.message == f"cannot reach {server.url}: Connection refused"


async def test_coroutines_run_together_in_an_event_loop_too():
    async def one(value):
        await asyncio.sleep(0)
        return value

    assert list(await together(one(1), one(2))) == [1, 2]


def test_the_first_error_of_several_is_raised_when_all_have_ended():
    ended = []

    async def one(value):
        ended.append(value)
        if value:
            raise ValueError(value)

    async def all_of_them():
        await together(one(0), one(1), together(one(2)))

    with pytest.raises(ValueError, match="1"):
        run(all_of_them())
    assert ended == [0, 1, 2]
