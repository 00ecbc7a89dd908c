"""Clients that want to take more than their share, over real sockets.  What they get is counted, not timed."""

import asyncio
import contextlib
import gc
import gzip
import socket

import pytest
import uvloop
from held_transport import Transport
from served import ADMIN, OTHER, served

from seamark.api.http.watches.alike import Alike
from seamark.api.http.watches.watch import Watch
from seamark.api.http.wire import incoming
from seamark.api.http.wire import listener as listening
from seamark.api.http.wire.listener import NOT_TLS, Listener, most_connections
from seamark.api.http.wire.messages import Response, Streaming
from seamark.api.http.wire.pieces import frame
from seamark.api.http.wire.protocol import Connection, Connections
from seamark.api.http.wire.stream import Stream
from turns import until

LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
PIECE = incoming.MAX_BODY // 2


def head(method, path, *lines, version="1.1", host="Host: x"):
    return "\r\n".join([f"{method} {path} HTTP/{version}", *([host] if host else []), *lines, "", ""]).encode()


async def answer(reader):
    """One answer: its status and its body."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode()
    size = int(lines.partition("Content-Length: ")[2].partition("\r\n")[0])
    return int(lines.split()[1]), await reader.readexactly(size)


async def rest(reader):
    """What comes until the end.  A server that has not read all when it closes the connection resets it."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


@contextlib.asynccontextmanager
async def client(listener, trust=None):
    reader, writer = await asyncio.open_connection(*listener.address, ssl=trust)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@contextlib.asynccontextmanager
async def opened(handler, **more):
    listener = Listener(handler, **{"tls": None, **more})
    await listener.open("127.0.0.1", 0)
    try:
        yield listener
    finally:
        await listener.close()


# --- bodies ----------------------------------------------------------------------------------------


@LOOPS
@pytest.mark.parametrize(
    ("token", "method", "path", "status"),
    [
        ("wrong", "POST", CONFIGMAPS, 401),
        ("wrong", "POST", REVIEWS, 401),
        (None, "POST", CONFIGMAPS, 403),
        (OTHER, "PUT", f"{CONFIGMAPS}/x", 403),
        (None, "DELETE", f"{CONFIGMAPS}/x", 403),
        (None, "GET", "/healthz", 200),
        (ADMIN, "POST", "/nowhere", 404),
        (ADMIN, "PATCH", CONFIGMAPS, 405),
    ],
)
def test_the_body_of_a_request_that_is_decided_by_its_head_is_not_kept(run, token, method, path, status):
    lines = [f"Content-Length: {2 * PIECE}", *([f"Authorization: Bearer {token}"] if token else [])]

    async def main():
        async with served() as api:
            listener = await api.api.listen("127.0.0.1", 0, None)
            async with contextlib.AsyncExitStack() as stack:
                clients = [await stack.enter_async_context(client(listener)) for _ in range(5)]
                for _, writer in clients:
                    writer.write(head(method, path, *lines) + b"x" * PIECE)
                await until(lambda: sum(c.incoming._size for c in listener.connections) == 5 * PIECE)
                assert listener.connections.held == sum(len(c.incoming._body) for c in listener.connections) == 0
                for reader, writer in clients:
                    # The connection can be used again.
                    writer.write(b"x" * PIECE + head("GET", "/livez"))
                    assert (await answer(reader))[0] == status
                    assert await answer(reader) == (200, b"ok")

    run(main())


async def test_a_client_that_waits_with_its_body_is_answered_at_once():
    async with served() as api:
        listener = await api.api.listen("127.0.0.1", 0, None)
        for token, length, status in (("wrong", 5, 401), (OTHER, 5, 403), (ADMIN, incoming.MAX_BODY + 1, 413)):
            async with client(listener) as (reader, writer):
                waits = ("Expect: 100-continue", f"Content-Length: {length}", f"Authorization: Bearer {token}")
                writer.write(head("POST", CONFIGMAPS, *waits))
                assert (await answer(reader))[0] == status
                assert await reader.read() == b""


async def test_all_bodies_together_are_bounded(monkeypatch):
    monkeypatch.setattr(incoming, "MAX_BODIES", 3 * PIECE)
    lines = (f"Content-Length: {2 * PIECE}", f"Authorization: Bearer {ADMIN}")
    async with served() as api:
        listener = await api.api.listen("127.0.0.1", 0, None)
        async with contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(client(listener)) for _ in range(10)]
            for _, writer in clients:
                writer.write(head("POST", CONFIGMAPS, *lines) + b" " * PIECE)
            await until(lambda: sum(c.incoming._size for c in listener.connections) == 10 * PIECE)
            assert listener.connections.held == sum(len(c.incoming._body) for c in listener.connections) <= 3 * PIECE
            statuses = []
            for reader, writer in clients:
                writer.write(b" " * PIECE)
                statuses.append((await answer(reader))[0])
            assert statuses.count(400) >= 1  # it was kept, and is not an object
            assert statuses.count(429) >= 7
        await until(lambda: not listener.connections)
        assert listener.connections.held == 0


async def test_bodies_that_wait_for_their_turn_are_bounded():
    gate = asyncio.Event()

    async def slow():
        await gate.wait()
        return Response(200, b"ok")

    async with opened(lambda request: slow()) as listener, client(listener) as (reader, writer):
        writer.write(head("GET", "/") + (head("POST", "/", f"Content-Length: {PIECE}") + b"x" * PIECE) * 20)
        await until(lambda: listener.connections and next(iter(listener.connections))._held > incoming.MAX_BODY)
        (connection,) = listener.connections
        while connection.transport.is_reading():
            await asyncio.sleep(0)
        assert connection._held <= 2 * incoming.MAX_BODY
        gate.set()
        for _ in range(21):
            assert await answer(reader) == (200, b"ok")
        assert connection._held == listener.connections.held == 0


@contextlib.asynccontextmanager
async def no_connection_left_as_garbage():
    """Connections that are made and lost meanwhile go without a collection of garbage."""

    def connections():
        return sum(isinstance(found, Connection) for found in gc.get_objects())

    gc.collect()
    before = connections()
    gc.disable()
    try:
        yield
        await asyncio.sleep(0)
        assert connections() == before
    finally:
        gc.enable()


@LOOPS
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
def test_what_a_connection_held_goes_with_it(run, secure, authority, trust):
    async def main():
        tls, trusted = (authority.tls(), trust) if secure else (None, None)
        async with opened(lambda request: Response(200), tls=tls) as listener, no_connection_left_as_garbage():
            for _ in range(5):
                async with client(listener, trusted) as (_, writer):
                    writer.write(head("GET", "/") + head("POST", "/", f"Content-Length: {2 * PIECE}") + b"x" * PIECE)
                    await until(lambda: listener.connections.held == PIECE)
                    writer.transport.abort()
                await until(lambda: not listener.connections)
                assert listener.connections.held == 0

    run(main())


@LOOPS
@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01", b"\x16\x03\x01\x00\x05abcde"])
def test_nothing_is_left_of_a_client_that_goes_before_tls(run, sent, authority):
    async def main():
        answers = opened(lambda request: Response(200), tls=authority.tls())
        async with answers as listener, no_connection_left_as_garbage():
            for _ in range(5):
                async with client(listener) as (_, writer):
                    writer.write(sent)
                    await until(lambda: listener.count)
                await until(lambda: not listener.count)

    run(main())


@LOOPS
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("size", [0, 1_000_000])  # of each of 16 objects: sockets take less than all of them together
def test_a_watch_goes_with_its_client(run, secure, size, authority, trust):
    """Clients come and go for hours: what they leave must not wait for a collection of garbage, which comes seldom."""

    def left():
        return sum(isinstance(found, Connection | Watch | Stream | Alike) for found in gc.get_objects())

    async def main():
        tls, trusted = (authority.tls(), trust) if secure else (None, None)
        async with served() as api:
            listener = await api.api.listen("127.0.0.1", 0, tls)
            for number in range(16):
                made = {"metadata": {"name": f"c{number}"}, "data": {"k": "x" * size}}
                await api.post(CONFIGMAPS, made)
            gc.collect()
            before = left()
            gc.disable()
            for since in ("", "&resourceVersion=0", "&allowWatchBookmarks=true&timeoutSeconds=600"):
                for _ in range(3):
                    async with client(listener, trusted) as (reader, writer):
                        writer.write(head("GET", f"{CONFIGMAPS}?watch=1{since}", f"Authorization: Bearer {ADMIN}"))
                        await reader.readuntil(b"\r\n\r\n")
                        await until(lambda: api.api.watches.open)
                        if size:
                            await until(lambda: any(each.stalled_since for each in listener.connections))
                        writer.transport.abort()
                    await until(lambda: not listener.connections)
                for _ in range(10):  # turns of the event loop, in which what was under way ends
                    await asyncio.sleep(0)
                assert left() == before, since

    try:
        run(main())
    finally:
        gc.enable()


def test_trailers_cannot_change_what_the_head_said():
    seen = []
    connection = Connection(lambda request: seen.append(request) or Response(200), Connections())
    connection.connection_made(Transport())
    connection.data_received(
        head("POST", "/", "Transfer-Encoding: chunked", "Authorization: Bearer a")
        + b"1\r\nx\r\n0\r\nAuthorization: Bearer b\r\nImpersonate-User: c\r\n\r\n"
    )
    assert seen[0].headers["authorization"] == "Bearer a"
    assert "impersonate-user" not in seen[0].headers


# --- decoding --------------------------------------------------------------------------------------

TYPES = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"]
PATCHES = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
]
NO_FORMAT = b"{\xff[&a *b"


@pytest.mark.parametrize(
    ("method", "path", "type"),
    [
        *(("POST", CONFIGMAPS, type) for type in TYPES),
        *(("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", type) for type in TYPES),
        *(("POST", "/apis/authentication.k8s.io/v1/tokenreviews", type) for type in TYPES),
        *(("POST", "/api/v1/namespaces/default/pods/p/binding", type) for type in TYPES),
        *(("PUT", f"{CONFIGMAPS}/x", type) for type in TYPES),
        *(("PATCH", f"{CONFIGMAPS}/x", type) for type in PATCHES),
        *(("DELETE", f"{CONFIGMAPS}/x", type) for type in TYPES),
        *(("DELETE", CONFIGMAPS, type) for type in TYPES),
    ],
)
async def test_rights_come_before_decoding(api, method, path, type):
    for token, status in ((ADMIN, 400), (OTHER, 403), ("wrong", 401)):
        answered = await api.ask(method, path, NO_FORMAT, query="fieldManager=m", type=type, token=token)
        assert answered.status == status


MERGES = b"a0: &a0 {k: v}\n" + b"".join(
    b"a%d: &a%d\n <<: [%b]\n" % (i, i, b",".join([b"*a%d" % (i - 1)] * 7)) for i in range(1, 8)
)


async def test_a_bomb_of_merge_keys_is_refused():
    async with served() as api:
        listener = await api.api.listen("127.0.0.1", 0, None)
        lines = (f"Content-Length: {len(MERGES)}", f"Authorization: Bearer {OTHER}", "Content-Type: application/yaml")
        async with client(listener) as (reader, writer):
            writer.write(head("POST", REVIEWS, *lines) + MERGES)
            status, text = await answer(reader)
            assert status == 400
            assert b"excessive aliasing" in text


async def test_a_compressed_body_is_not_expanded():
    """100 MB of spaces in 100 kB: taken as the bytes it is, which are no JSON."""
    async with served() as api:
        listener = await api.api.listen("127.0.0.1", 0, None)
        bomb = gzip.compress(b" " * 100_000_000, compresslevel=1)
        lines = (f"Content-Length: {len(bomb)}", f"Authorization: Bearer {ADMIN}", "Content-Encoding: gzip")
        async with client(listener) as (reader, writer):
            writer.write(head("POST", CONFIGMAPS, *lines, "Content-Type: application/json") + bomb)
            assert (await answer(reader))[0] == 400


async def test_a_review_is_small(api):
    for type, sent in (("application/json", b" " * 200_000), ("application/yaml", b"#" * 200_000)):
        answered = await api.ask("POST", REVIEWS, sent, type=type, token=OTHER)
        assert (answered.status, answered.json["message"]) == (413, "Request entity too large: limit is 131072")


# --- heads -----------------------------------------------------------------------------------------


@LOOPS
def test_header_lines_are_counted_as_they_come(run):
    async def main():
        async with opened(lambda request: Response(200)) as listener, client(listener) as (reader, writer):
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a:\r\n" * 20_000)
            await until(lambda: listener.connections)
            (connection,) = listener.connections
            assert (await reader.read()).startswith(b"HTTP/1.1 431 ")
            assert (
                connection.incoming.head_size <= incoming.MAX_HEAD + incoming.LINE_COST + 1
            )  # so many lines were looked at

    run(main())


async def test_a_head_has_a_size_however_it_comes():
    async with opened(lambda request: Response(200)) as listener:
        for lines in ([f"a: {'x' * incoming.MAX_HEAD}"], [f"a{n}: {'x' * 1000}" for n in range(200)]):
            async with client(listener) as (reader, writer):
                writer.write(head("GET", "/", *lines))
                assert (await reader.readline()).startswith(b"HTTP/1.1 431 ")


@LOOPS
def test_what_drips_is_cut_and_a_watch_is_not(run):
    async def main():
        streams = []

        def handler(request):
            return Streaming(streams.append) if request.path == "/watch" else Response(200, b"ok")

        async with opened(handler) as listener, contextlib.AsyncExitStack() as stack:
            new, dripping, slow, good, watching = [await stack.enter_async_context(client(listener)) for _ in range(5)]
            begun = max(connection.last_active for connection in listener.connections)
            dripping[1].write(b"GET / HT")
            slow[1].write(head("POST", "/", "Content-Length: 1000000") + b"x")
            good[1].write(head("POST", "/", "Content-Length: 1000000") + b"x" * 500_000)
            watching[1].write(head("GET", "/watch") + b"GET / HT")
            await until(lambda: streams and sum(c.incoming._size for c in listener.connections) == 500_001)
            await until(lambda: sum(bool(c.incoming._url) for c in listener.connections) == 4)
            for byte in b"TP/1.1":  # every byte makes the connection active again, but the request not younger
                dripping[1].write(bytes([byte]))
                await asyncio.sleep(0)
            await until(lambda: sum(c.incoming._unread_size for c in listener.connections) == 14)
            latest = max(connection.last_active for connection in listener.connections)
            listener.sweep_once(begun + incoming.HEAD_SECONDS - 1)
            assert len(listener.connections) == 5
            listener.sweep_once(latest + incoming.HEAD_SECONDS + 1)
            await until(lambda: len(listener.connections) == 2)
            assert await new[0].read() == b""
            for reader, _ in (dripping, slow):
                assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
            good[1].write(b"x" * 500_000)
            assert await answer(good[0]) == (200, b"ok")
            listener.sweep_once(latest + 10 * listening.IDLE_SECONDS)
            await until(lambda: len(listener.connections) == 1)
            assert streams[0].write(frame(b"event"))
            assert (await watching[0].readuntil(b"event")).endswith(b"event")

    run(main())


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (head("GET", "/", host=None), b"missing required Host header"),
        (head("GET", "http://x/", host=None), b"missing required Host header"),
        (head("GET", "/", "Host: x"), b"too many Host headers"),
        (head("GET", "/", "host: y"), b"too many Host headers"),
    ],
)
async def test_one_host_is_needed(asked, said):
    async with opened(lambda request: Response(200)) as listener, client(listener) as (reader, writer):
        writer.write(asked)
        sent = await reader.read()
        assert sent.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert said in sent


# --- HTTP/1.0 --------------------------------------------------------------------------------------


async def test_http_1_0_knows_no_chunks():
    streams = []

    def handler(request):
        return Streaming(streams.append) if request.path == "/watch" else Response(200, b"ok")

    async with opened(handler) as listener, client(listener) as (reader, writer):
        writer.write(head("GET", "/", "Connection: keep-alive", version="1.0", host=None))
        assert b"Connection: keep-alive\r\n" in await reader.readuntil(b"\r\n\r\nok")
        writer.write(head("GET", "/watch", "Connection: keep-alive", version="1.0"))
        await until(lambda: streams)
        streams[0].write(frame(b"one\n") + frame(b"two\n" * 100))
        for byte in frame(b"three\n"):  # a large event is written in pieces
            streams[0].write(memoryview(bytes([byte])))
        streams[0].finish()
        lines, _, sent = (await reader.read()).partition(b"\r\n\r\n")
        assert b"chunked" not in lines
        assert b"Connection: close" in lines
        assert sent == b"one\n" + b"two\n" * 100 + b"three\n"


# --- connections -----------------------------------------------------------------------------------


@LOOPS
def test_the_idlest_connection_makes_room_and_a_watch_does_not(run):
    async def main():
        streams = []

        def handler(request):
            return Streaming(streams.append) if request.path == "/watch" else Response(200, b"ok")

        async with opened(handler, max_connections=4) as listener, contextlib.AsyncExitStack() as stack:
            idle, *others = [await stack.enter_async_context(client(listener)) for _ in range(4)]
            for reader, writer in (idle, *others):
                writer.write(head("GET", "/"))
                assert await answer(reader) == (200, b"ok")
            another = await stack.enter_async_context(client(listener))
            assert await idle[0].read() == b""
            for number, (_, writer) in enumerate([*others, another], 1):
                writer.write(head("GET", "/watch"))
                await until(lambda expected=number: len(streams) == expected)
            refused = await stack.enter_async_context(client(listener))
            with contextlib.suppress(ConnectionResetError):
                assert await refused[0].read() == b""
            assert listener.count == 4
            assert all(stream.write(frame(b"x")) for stream in streams)

    run(main())


@LOOPS
def test_clients_that_never_begin_tls_cost_a_socket_and_make_room(run, authority, trust):
    async def main():
        async with (
            opened(lambda request: Response(200, b"ok"), tls=authority.tls(), max_connections=4) as listener,
            contextlib.AsyncExitStack() as stack,
        ):
            silent = [await stack.enter_async_context(client(listener)) for _ in range(4)]
            await until(lambda: len(listener._silent) == 4)
            reader, writer = await stack.enter_async_context(client(listener, trust))
            assert listener.count == 4
            assert await silent[0][0].read() == b""
            writer.write(head("GET", "/"))
            assert await answer(reader) == (200, b"ok")
            silent[1][1].write(b"\x16\x03\x01nonsense" * 10)
            assert len(await silent[1][0].read()) == 7  # an alert
            silent[1][1].close()
            await until(lambda: len(listener._silent) == 2 and not listener.connections.entering)
            assert listener.count == 3
            silent[2][1].write(b"\x16")  # a handshake that does not go on
            await until(lambda: listener.connections.entering)
            listener.sweep_once(max(c.last_active for c in listener._silent) + incoming.HEAD_SECONDS + 1)
            assert await silent[3][0].read() == b""

    run(main())


@LOOPS
def test_handshakes_that_do_not_go_on_make_room(run, authority, trust):
    async def main():
        async with (
            opened(lambda request: Response(200, b"ok"), tls=authority.tls(), max_connections=4) as listener,
            contextlib.AsyncExitStack() as stack,
        ):
            stuck = [await stack.enter_async_context(client(listener)) for _ in range(4)]
            for _, writer in stuck:
                writer.write(b"\x16\x03")
            await until(lambda: len(listener.connections.entering) == 4)
            reader, writer = await stack.enter_async_context(client(listener, trust))
            assert await rest(stuck[0][0]) == b""
            writer.write(head("GET", "/"))
            assert await answer(reader) == (200, b"ok")
            (connection,) = listener.connections
            assert connection.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert listener.count == 4
            await listener.close()
            for each, _ in stuck[1:]:
                assert await rest(each) == b""

    run(main())


@LOOPS
def test_plain_http_on_a_tls_port_is_told_so(run, authority):
    async def main():
        async with opened(lambda request: Response(200), tls=authority.tls()) as listener:
            for asked in (head("GET", "/"), b"P"):
                async with client(listener) as (reader, writer):
                    writer.write(asked)
                    assert await reader.read() == NOT_TLS
            assert listener.count == 0

    run(main())


def test_never_more_connections_than_open_files():
    assert Listener(lambda request: Response(200), tls=None, max_connections=10**9)._max_connections < 2**20
    assert [most_connections(files) for files in (20, 64, 256, 1024)] == [1, 16, 192, 768]


# --- certificates ----------------------------------------------------------------------------------


async def test_a_certificate_without_a_name_names_nobody(authority, trust, tmp_path, monkeypatch):
    """As in Kubernetes: its sender is anonymous, whatever groups it has, unless a token says more."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    nameless = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters")])
    monkeypatch.setattr("seamark.api.signing._name", lambda *_: nameless)
    certificate, key = authority.client("ann")
    (tmp_path / "client.pem").write_bytes(certificate + key)
    trust.load_cert_chain(tmp_path / "client.pem")
    async with served() as api:
        listener = await api.api.listen("127.0.0.1", 0, authority.tls())
        async with client(listener, trust) as (reader, writer):
            writer.write(head("GET", CONFIGMAPS))
            status, text = await answer(reader)
            assert (status, b'User \\"system:anonymous\\" cannot list' in text) == (403, True)
            writer.write(head("GET", CONFIGMAPS, f"Authorization: Bearer {ADMIN}"))
            assert (await answer(reader))[0] == 200
