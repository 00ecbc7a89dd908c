"""HTTP/1.1: requests cut out of bytes, answers made into bytes, and clients that misbehave."""

import asyncio
import gzip
import time
from email.utils import parsedate_to_datetime

import pytest
from held_transport import Transport

from seamark.api.http.wire import incoming
from seamark.api.http.wire.messages import REASONS, Response, Streaming
from seamark.api.http.wire.pieces import PIECE, frame
from seamark.api.http.wire.protocol import Connection, Connections
from seamark.api.http.wire.stream import MAX_STREAM_BACKLOG, Stream
from seamark.api.http.wire.unread import Unread
from turns import turns


class Handler:
    """Remembers what it was asked, and answers with what the test says."""

    def __init__(self, answer=None):
        self.requests = []
        self.answer = answer or (lambda request: Response(200, request.path.encode(), "text/plain"))

    def __call__(self, request):
        self.requests.append(request)
        return self.answer(request)


def connect(answer=None):
    handler, transport, peers = Handler(answer), Transport(), Connections()
    connection = Connection(handler, peers)
    connection.connection_made(transport)
    assert peers == {connection}
    return connection, transport, handler


def get(path="/", *headers, method="GET", version="1.1"):
    return "\r\n".join([f"{method} {path} HTTP/{version}", "Host: x", *headers, "", ""]).encode("latin-1")


def bodies(data):
    """The bodies of complete answers."""
    found = []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        size = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
        found.append(data[:size])
        data = data[size:]
    return found


def test_a_request_is_told_whole():
    connection, transport, handler = connect()
    connection.data_received(
        b"POST /a%20b/%C3%A4?x=%31&y HTTP/1.1\r\nHost: x\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 3\r\n\r\nabc"
    )
    (request,) = handler.requests
    assert (request.method, request.path, request.query) == ("POST", "/a b/ä", "x=%31&y")
    assert request.headers["x-a"] == "1, 2"
    assert (request.body, request.too_large, request.peer) == (b"abc", False, "192.0.2.7")
    assert transport.take().startswith(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Type: text/plain\r\n")
    assert not transport.closed


def test_bytes_may_come_one_by_one():
    connection, transport, handler = connect()
    for byte in get("/one") + get("/two"):
        connection.data_received(bytes([byte]))
    assert bodies(transport.take()) == [b"/one", b"/two"]
    assert len(handler.requests) == 2


def test_chunked_bodies_are_put_together():
    connection, _, handler = connect()
    connection.data_received(
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"3\r\nabc\r\n2;note=x\r\nde\r\n0\r\nLate: 1\r\n\r\n"
    )
    assert [request.body for request in handler.requests] == [b"abcde"]


def test_many_small_pieces_cost_their_size():
    connection, _, handler = connect()
    connection.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(1000):
        connection.data_received(b"1\r\nx\r\n" * 10)
    assert len(connection.incoming._body) == 10_000
    connection.data_received(b"0\r\n\r\n")
    assert handler.requests[0].body == b"x" * 10_000


@pytest.mark.parametrize(
    ("request_", "kept"),
    [
        (get(), True),
        (get("/", "Connection: close"), False),
        (get(version="1.0"), False),
        (get("/", "Connection: keep-alive", version="1.0"), True),
    ],
)
def test_the_connection_is_kept_as_asked(request_, kept):
    connection, transport, _ = connect()
    connection.data_received(request_)
    assert transport.closed is not kept
    assert (b"Connection: close" in transport.take()) is not kept


def test_after_a_last_request_nothing_else_is_done():
    connection, transport, handler = connect()
    connection.data_received(get("/last", "Connection: close") + get("/more"))
    assert [request.path for request in handler.requests] == ["/last"]
    assert transport.closed


def test_head_is_answered_by_the_head():
    connection, transport, _ = connect()
    connection.data_received(get("/four", method="HEAD") + get("/x"))
    head, _, rest = transport.take().partition(b"\r\n\r\n")
    assert b"Content-Length: 5" in head
    assert rest.startswith(b"HTTP/1.1 200")
    connection, transport, _ = connect(lambda request: Response(200, [b"a", b"bc"]))
    connection.data_received(get(method="HEAD"))
    assert transport.take().endswith(b"\r\n\r\n")


def test_who_expects_to_continue_is_told_to():
    connection, transport, handler = connect()
    head = b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n"
    connection.data_received(head)
    assert transport.take() == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.data_received(b"ok")
    assert handler.requests[0].body == b"ok"


async def test_told_to_continue_only_in_turn():
    slow = asyncio.get_running_loop().create_future()

    async def later():
        await slow
        return Response(200, b"slow")

    connection, transport, handler = connect(lambda request: later() if request.path == "/slow" else Response(200))
    connection.data_received(
        get("/slow") + b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    )
    assert transport.take() == b""
    slow.set_result(None)
    await turns()
    assert bodies(transport.take()) == [b"slow"]
    connection.data_received(b"ok")
    assert len(handler.requests) == 2


async def test_pipelined_answers_keep_their_order():
    gates = {}

    async def later(path):
        gates[path] = asyncio.get_running_loop().create_future()
        await gates[path]
        return Response(200, path.encode())

    connection, transport, handler = connect(
        lambda request: later(request.path) if "slow" in request.path else Response(200, request.path.encode())
    )
    connection.data_received(b"".join(map(get, ("/a", "/slow1", "/b", "/slow2", "/c"))))
    await asyncio.sleep(0)
    assert bodies(transport.take()) == [b"/a"]
    gates["/slow1"].set_result(None)
    await turns()
    assert bodies(transport.take()) == [b"/slow1", b"/b"]
    assert [request.path for request in handler.requests] == ["/a", "/slow1", "/b", "/slow2"]
    gates["/slow2"].set_result(None)
    await turns()
    assert bodies(transport.take()) == [b"/slow2", b"/c"]
    assert not connection.busy


async def test_thousands_behind_one_slow_request():
    gate = asyncio.get_running_loop().create_future()

    async def later():
        await gate
        return Response(200, b"first")

    connection, transport, handler = connect(
        lambda request: later() if request.path == "/slow" else Response(200, b"x")
    )
    connection.data_received(get("/slow") + get("/x") * 3000)
    assert not transport.reading
    gate.set_result(None)
    await turns()
    assert len(handler.requests) == 3001
    assert len(bodies(transport.take())) == 3001
    assert transport.reading


def test_nothing_is_begun_for_a_reader_that_does_not_read():
    loop = asyncio.new_event_loop()

    async def main():
        connection, transport, handler = connect(lambda request: Response(200, [b"x" * 1000]))
        connection.data_received(get("/1"))
        connection.pause_writing()
        assert not transport.reading
        connection.data_received(get("/2") + get("/3"))
        assert [request.path for request in handler.requests] == ["/1"]
        assert connection.stalled_since is not None
        connection.resume_writing()
        assert [request.path for request in handler.requests] == ["/1", "/2", "/3"]
        assert transport.reading
        assert connection.stalled_since is None

    loop.run_until_complete(main())
    loop.close()


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64,  # TLS on a plain port
        b"hello\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET  HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nBad Header: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: a\r\n b\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused_and_cut_off(nonsense):
    connection, transport, handler = connect()
    connection.data_received(nonsense)
    assert transport.closed
    assert transport.take().startswith(b"HTTP/1.1 400 Bad Request\r\n")
    connection.data_received(get("/after"))
    assert handler.requests == []


@pytest.mark.parametrize("method", [b"FOO", b"get", b"X-1"])
def test_a_method_that_nobody_knows_is_not_allowed(method):
    connection, transport, handler = connect()
    connection.data_received(method + b" /api/v1/pods?a=b HTTP/1.1\r\nHost: x\r\n\r\n")
    assert transport.closed
    assert transport.take().startswith(b"HTTP/1.1 405 Method Not Allowed\r\n")
    assert handler.requests == []


def test_a_head_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(incoming, "MAX_HEAD", 10_000)
    for start, more in (
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: ", b"y" * 1000),  # one header
        (b"GET / HTTP/1.1\r\nHost: x\r\n", b"X: %b\r\n" % (b"y" * 995)),  # many
        (b"GET /", b"y" * 1000),  # the path
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: %b\r\n" % (b"y" * 995)),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x" * 1000),  # with a chunk
    ):
        connection, transport, handler = connect()
        connection.data_received(start)
        for _ in range(8):
            connection.data_received(more)
        assert not transport.closed
        for _ in range(5):
            connection.data_received(more)
        assert transport.closed
        assert transport.take().startswith(b"HTTP/1.1 431 ")
        connection.data_received(b"\r\n\r\n")
        assert handler.requests == []


def test_large_heads_and_bodies_within_bounds_are_fine():
    connection, _, handler = connect()
    long = "y" * 60_000
    for _ in range(40):  # more than the limit in all, but each is small
        connection.data_received(get("/", f"X: {long}"))
    assert len(handler.requests) == 40
    connection.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % incoming.MAX_BODY)
    for _ in range(48):
        connection.data_received(b"x" * (incoming.MAX_BODY // 48))
    assert len(handler.requests[-1].body) == incoming.MAX_BODY
    assert not handler.requests[-1].too_large


def test_a_body_too_large_is_read_and_forgotten_then_cut_off():
    connection, transport, handler = connect(lambda request: Response(413 if request.too_large else 200))
    connection.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (incoming.MAX_BODY + 1))
    connection.data_received(b"x" * incoming.MAX_BODY)
    connection.data_received(b"x")
    assert handler.requests[0].too_large
    assert handler.requests[0].body == b""
    assert transport.take().startswith(b"HTTP/1.1 413 ")
    assert not transport.closed
    connection.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    piece = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    for _ in range(incoming.MAX_DRAINED // 0x100000 + 1):
        connection.data_received(piece)
    assert transport.closed
    assert len(handler.requests) == 1
    assert transport.take().startswith(b"HTTP/1.1 413 ")


def test_thousands_of_requests_to_upgrade_in_one_go_are_read_like_others():
    connection, transport, handler = connect()
    connection.data_received(5000 * get("/x", "Connection: Upgrade", "Upgrade: x"))
    assert len(handler.requests) == 5000
    assert not transport.is_closing()


@pytest.mark.parametrize("upgrade", ["h2c", "websocket", "SPDY/3.1"])
def test_who_asks_to_upgrade_is_answered_in_http(upgrade):
    connection, transport, handler = connect()
    asked = get("/x", "Connection: Upgrade", f"Upgrade: {upgrade}")
    connection.data_received(asked + get("/y"))
    connection.data_received(get("/z"))
    assert [request.path for request in handler.requests] == ["/x", "/y", "/z"]
    assert bodies(transport.take()) == [b"/x", b"/y", b"/z"]


@pytest.mark.parametrize(
    ("asked", "path"), [("http://api:6443/version?x", "/version"), ("*", "/"), ("http://api", "/")]
)
def test_a_target_in_another_form(asked, path):
    connection, _, handler = connect()
    connection.data_received(get(asked, method="OPTIONS"))
    assert handler.requests[0].path == path


def test_answers_may_say_what_ascii_cannot():
    connection, transport, _ = connect(lambda request: Response(200, headers=[("Warning", '299 - "grüße \U0001f600"')]))
    connection.data_received(get())
    assert '299 - "grüße \U0001f600"'.encode() in transport.take()


@pytest.mark.parametrize("said", ["public, immutable", ""])
def test_an_answer_says_once_whether_it_may_be_kept(said):
    headers = [("Cache-Control", said)] if said else []
    connection, transport, _ = connect(lambda request: Response(200, headers=headers))
    connection.data_received(get())
    lines = [line for line in transport.take().split(b"\r\n") if line.startswith(b"Cache-Control: ")]
    assert lines == [f"Cache-Control: {said or 'no-cache, private'}".encode()]


async def test_a_client_that_leaves_while_its_request_is_worked_on():
    gate = asyncio.get_running_loop().create_future()

    async def later():
        await gate
        return Response(200, b"too late")

    connection, transport, _ = connect(lambda request: later())
    connection.data_received(get())
    connection.connection_lost(None)
    gate.set_result(None)
    await turns()
    assert transport.take() == b""


# --- streams ---------------------------------------------------------------------------------------


def streaming():
    streams = []
    connection, transport, handler = connect(lambda request: Streaming(streams.append, headers=[("X", "y")]))
    connection.data_received(get("/watch"))
    return connection, transport, handler, streams[0]


def test_a_stream_goes_out_in_chunks_and_the_connection_goes_on():
    connection, transport, handler, stream = streaming()
    assert b"Transfer-Encoding: chunked\r\n" in transport.take()
    assert stream.write(frame(b"hello\n"))
    assert transport.take() == b"6\r\nhello\n\r\n"
    connection.data_received(get("/next"))
    assert len(handler.requests) == 1  # it waits for the stream to end
    stream.finish()
    assert transport.take().startswith(b"0\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert [request.path for request in handler.requests] == ["/watch", "/next"]


def test_the_end_of_a_client_is_told_to_the_stream():
    connection, transport, _, stream = streaming()
    told = []
    stream.on_close = lambda: told.append(True)
    transport.close()
    connection.connection_lost(None)
    assert told == [True]
    assert not stream.write(b"x")
    stream.finish()  # nothing happens


async def test_a_slow_reader_of_a_stream_is_cut_off():
    connection, transport, _, stream = streaming()
    connection.pause_writing()  # as a transport asks long before
    transport.unread = MAX_STREAM_BACKLOG
    assert stream.write(b"x")
    transport.unread += 1
    assert not stream.write(b"x")
    assert transport.aborted


@pytest.mark.parametrize("upgraded", [False, True])
async def test_a_stream_whose_head_is_not_taken_begins_stalled(upgraded):
    streams = []
    upgrade = (
        (lambda connection: (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", Stream(connection))) if upgraded else None
    )
    connection, transport, _ = connect(lambda request: Streaming(streams.append, upgrade=upgrade))
    transport.write = lambda data: connection.pause_writing()
    connection.data_received(get("/watch"))
    (stream,) = streams
    assert stream.stalled


async def test_a_stream_can_wait_for_its_reader():
    connection, transport, _, stream = streaming()
    assert await stream.drain()
    connection.pause_writing()
    waiting = asyncio.ensure_future(stream.drain())
    await asyncio.sleep(0)
    assert not waiting.done()
    connection.resume_writing()
    assert await waiting
    connection.pause_writing()
    waiting = asyncio.ensure_future(stream.drain())
    await asyncio.sleep(0)
    transport.close()
    connection.connection_lost(None)
    assert not await waiting


def test_finishing_soon():
    connection, transport, _ = connect()
    connection.finish_soon()
    assert transport.closed
    connection, transport, _, stream = streaming()
    connection.finish_soon()
    assert not transport.closed
    stream.finish()
    assert transport.closed


async def test_a_write_under_way_is_finished_before_the_end():
    gate = asyncio.get_running_loop().create_future()

    async def later():
        await gate
        return Response(201, b"done")

    connection, transport, _ = connect(lambda request: later())
    connection.data_received(get("/write", method="POST") + get("/another"))
    connection.finish_soon()
    assert not transport.closed
    gate.set_result(None)
    await turns()
    sent = transport.take()
    assert b"Connection: close" in sent
    assert bodies(sent) == [b"done"]
    assert transport.closed


def test_answers_are_dated():
    connection, transport, _ = connect()
    began = int(time.time())
    connection.data_received(get("/"))
    date = transport.take().partition(b"Date: ")[2].partition(b"\r\n")[0].decode()
    assert began <= parsedate_to_datetime(date).timestamp() <= time.time()


def test_a_request_is_due_some_time_after_its_first_byte():
    connection, transport, _ = connect()
    late = connection.last_active + incoming.HEAD_SECONDS + 1
    assert connection.overdue(late)  # a new connection owes a request
    for part in (b"GET /x", b"yz HTTP/1.1\r\nHost:", b" x\r\n"):
        connection.data_received(part)
    assert connection.overdue(late)
    assert not connection.overdue(late - 2)
    connection.data_received(b"\r\n")
    assert not connection.overdue(late)  # an answered one does not
    connection.data_received(b"G")
    assert connection.overdue(connection.last_active + incoming.HEAD_SECONDS + 1)
    transport.take()
    connection.time_out()
    assert transport.take().startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert transport.closed


def test_every_status_used_has_its_line():
    from seamark import errors

    for error in errors._classes(errors.ApiError):
        assert error.code in REASONS
    assert 501 in REASONS


# --- long answers ----------------------------------------------------------------------------------

LONG = [b"a" * 1000] * 1000


class Taken:
    """A part of the room for long answers."""

    released = 0

    def release(self):
        self.released += 1


def sends(body, **more):
    return connect(lambda request: Response(200, body, **more) if request.path == "/long" else Response(200, b"short"))


@pytest.mark.parametrize("body", [LONG, b"".join(LONG), [b"x" * PIECE, b"y", b"z" * (2 * PIECE)]])
async def test_a_long_answer_is_written_in_pieces_between_which_others_have_their_turn(body):
    connection, transport, handler = sends(body)
    connection.data_received(get("/long") + get("/next"))
    turns = 0
    while not transport.sent.endswith(b"short"):
        written = len(transport.sent)
        assert len(handler.requests) == 1, "the next request waits for the answer to be written"
        await asyncio.sleep(0)
        assert len(transport.sent) - written < PIECE + 2048
        turns += 1
    assert turns > 2
    assert bodies(transport.take()) == [b"".join(body) if isinstance(body, list) else body, b"short"]


async def test_a_long_answer_waits_for_its_reader():
    load = Taken()
    connection, transport, _ = sends(LONG, load=load)
    connection.data_received(get("/long"))
    connection.pause_writing()
    written = len(transport.sent)
    for _ in range(5):
        await asyncio.sleep(0)
    assert (len(transport.sent), load.released) == (written, 0)
    connection.resume_writing()
    while connection.busy:
        await asyncio.sleep(0)
    assert bodies(transport.take()) == [b"".join(LONG)]
    assert load.released == 1


async def test_a_long_answer_is_compressed_piece_by_piece():
    connection, transport, _ = sends(LONG, pack=True, headers=[("Content-Encoding", "gzip")])
    connection.data_received(get("/long"))
    while connection.busy:
        await asyncio.sleep(0)
    head, _, data = transport.take().partition(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head
    whole = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        whole, data = whole + data[: int(size, 16)], data[int(size, 16) + 2 :]
    assert gzip.decompress(whole) == b"".join(LONG)


async def test_what_a_client_does_not_read_keeps_nobody_waiting_and_is_bounded(monkeypatch):
    monkeypatch.setattr("seamark.api.http.wire.pieces.UNREAD_SECONDS", 0.0)
    cuts = []
    unread = Unread(1_800_000, cut=lambda: cuts.append(1))
    peers, loads, transports = Connections(unread), [Taken(), Taken()], [Transport(), Transport()]
    for load, transport in zip(loads, transports, strict=True):
        connection = Connection(lambda request, load=load: Response(200, LONG, load=load), peers)
        connection.connection_made(transport)
        connection.data_received(get())
        connection.pause_writing()
        while not load.released:
            await asyncio.sleep(0)
    assert ([transport.aborted for transport in transports], cuts) == ([True, False], [1])
    assert unread.size < 1_200_000
    connection.connection_lost(None)
    assert unread.size == 0


async def test_the_turn_of_a_client_that_is_gone_is_given_up():
    turn = asyncio.get_running_loop().create_future()

    def waits(request):
        request.waits = turn
        return asyncio.shield(turn)

    connection, _, _ = connect(waits)
    connection.data_received(get())
    await asyncio.sleep(0)
    connection.connection_lost(None)
    assert turn.cancelled()


async def test_an_answer_for_a_client_that_is_gone_leaves_the_room():
    load, turn = Taken(), asyncio.get_running_loop().create_future()
    connection, _, _ = connect(lambda request: turn)
    connection.data_received(get())
    connection.connection_lost(None)
    turn.set_result(Response(200, LONG, load=load))
    while not load.released:
        await asyncio.sleep(0)


async def test_a_request_that_gets_no_answer_ends_its_connection():
    async def failing(request):
        raise RuntimeError(request.path)

    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    connection, transport, _ = connect(failing)
    connection.data_received(get())
    await asyncio.wait([connection._task])
    assert transport.aborted
