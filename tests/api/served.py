"""An API server in this process, called without sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from seamark.api import bootstrap
from seamark.api.admission import PLUGINS
from seamark.api.authorization import User
from seamark.api.http.wire.messages import Request, Response, Streaming
from seamark.api.server import ApiServer
from seamark.api.settings import ServiceNetwork
from seamark.api.state.cache import PORTS_PREFIX
from seamark.api.state.entries import entry_of
from seamark.metrics import Registry
from seamark.store.opening import open_store
from seamark.store.protocol import Store

ADMIN = "admin-token"
OTHER = "other-token"
TOKENS = {
    ADMIN: User("admin", ("system:masters", "system:authenticated"), "admin-uid"),
    OTHER: User("other", ("system:authenticated",)),
}
NETWORK = ServiceNetwork(ranges=("10.96.0.0/16", "fd00:96::/112"))


class Answer:
    """One answer, its body complete."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.type = response.content_type
        self.headers = list(response.headers)
        self.body = b"".join(response.body) if isinstance(response.body, list) else response.body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    @property
    def warnings(self) -> list[str]:
        return [value for key, value in self.headers if key == "Warning"]

    def __repr__(self) -> str:
        return f"<{self.status} {self.body[:2000].decode(errors='replace')}>"


class Lines:
    """A stream that keeps what is written to it; takes the place of :class:`seamark.api.http.wire.stream.Stream`."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.on_close: Any = None
        self.on_stall: Any = None
        self.on_writable: Any = None
        self.outlet = self
        self.stalled = False
        self.unsent = 64 * 1024  # if it has stalled
        self.write_stalls = False  # whether every write fills the client's buffers
        self.finished = self.aborted = False
        self._news = asyncio.Event()
        self._read = asyncio.Event()

    def write(self, frames: bytes) -> bool:
        self.frames.append(bytes(frames))
        self.stalled = self.stalled or self.write_stalls
        if self.stalled:
            self.on_stall()
        self._news.set()
        return not self.aborted

    async def drain(self) -> bool:
        while self.stalled:
            self._read.clear()
            await self._read.wait()
        await asyncio.sleep(0)
        return not self.aborted

    def read_again(self) -> None:
        """The client takes all that was written so far."""
        self.stalled = False
        self._read.set()
        self.on_writable()

    def abort(self) -> None:
        self.aborted = True
        if self.on_close is not None:
            self.on_close()

    def finish(self) -> None:
        self.finished = True
        self._news.set()

    @property
    def events(self) -> list[Any]:
        found, rest = [], b"".join(self.frames)
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            if len(rest) < int(size, 16) + 2:
                break  # the rest of it is yet to come
            found.append(json.loads(rest[: int(size, 16)]))
            rest = rest[int(size, 16) + 2 :]
        return found

    async def wait_for(self, count: int) -> list[Any]:
        """All events, once there are at least so many."""
        while len(self.events) < count:
            self._news.clear()
            await self._news.wait()
        return self.events

    async def ended(self) -> list[Any]:
        while not self.finished:
            self._news.clear()
            await self._news.wait()
        return self.events


class Served:
    """The server, and helpers for requests."""

    def __init__(self, api: ApiServer, store: Store, metrics: Registry) -> None:
        self.api, self.store, self.metrics = api, store, metrics

    def begin(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: str = "",
        type: str = "application/json",
        headers: dict[str, str] | None = None,
        token: str | None = ADMIN,
        too_large: bool = False,
    ) -> Any:
        """The application's own answer: complete, or an awaitable."""
        if "?" in path:
            path, _, query = path.partition("?")
        sent = {"content-type": type} if body is not None else {}
        if token is not None:
            sent["authorization"] = f"Bearer {token}"
        sent.update(headers or {})
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.api.application(Request(method, path, query, sent, raw, too_large))

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        answer = self.begin(method, path, body, **more)
        if not isinstance(answer, Response | Streaming):
            answer = await answer
        assert isinstance(answer, Response), "a stream where an answer was expected"
        return Answer(answer)

    async def done(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """The object in a successful answer; fails if the request does."""
        answer = await self.ask(method, path, body, **more)
        assert answer.status in (200, 201), answer
        return answer.json

    def get(self, path: str, **more: Any) -> Any:
        return self.done("GET", path, **more)

    def post(self, path: str, body: Any, **more: Any) -> Any:
        return self.done("POST", path, body, **more)

    def put(self, path: str, body: Any, **more: Any) -> Any:
        return self.done("PUT", path, body, **more)

    def merge(self, path: str, body: Any, **more: Any) -> Any:
        return self.done("PATCH", path, body, type="application/merge-patch+json", **more)

    def delete(self, path: str, body: Any = None, **more: Any) -> Any:
        return self.done("DELETE", path, body, **more)

    async def watch(self, path: str, **more: Any) -> Lines:
        answer = self.begin("GET", path, **more)
        if not isinstance(answer, Response | Streaming):
            answer = await answer
        assert isinstance(answer, Streaming), Answer(answer)
        lines = Lines()
        answer.start(lines)  # type: ignore[arg-type]  # it has all a Stream has
        return lines

    async def cache_equals_store(self) -> None:
        """Fail unless the cache holds exactly what the store holds."""
        cache, page = self.api.cache, await self.store.read("/", "0")
        await cache.reach(page.revision)
        while cache.revision != page.revision:  # what the server does by itself went on, such as removing a definition
            page = await self.store.read("/", "0")
            await cache.reach(page.revision)
        expected = {row.key: row for row in page.rows}
        held = {}
        for collection in cache.collections:
            for path, entry in collection.entries.items():
                key = collection.prefix + path
                held[key] = entry
                row = expected[key]
                again = entry_of(path, row.value, row.revision)
                assert (entry.tail, entry.revision, entry.labels) == (again.tail, again.revision, again.labels)
        ports = {f"{PORTS_PREFIX}{port}" for port in cache.ports}
        assert sorted(expected.keys() - held.keys() - ports) == []
        assert sorted((held.keys() | ports) - expected.keys()) == []


@contextlib.asynccontextmanager
async def served(
    *, url: str = "memory:", store: Store | None = None, tokens: dict[str, User] = TOKENS, **more: Any
) -> AsyncIterator[Served]:
    """A server over a new store, with the initial namespaces."""
    store = store or open_store(url)
    await store.open()
    metrics = Registry()
    api = ApiServer(store, network=NETWORK, tokens=tokens, metrics=metrics, **more)
    await api.load()
    following = asyncio.create_task(api.follow())
    try:
        cluster = api.cluster("apiserver")
        await bootstrap.make_namespaces(cluster)
        await bootstrap.make_ranges(cluster, NETWORK)
        yield Served(api, store, metrics)
    finally:
        await api.close()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await store.close()


@contextlib.asynccontextmanager
async def served_with_admission(**more: Any) -> AsyncIterator[Served]:
    """A server that asks every plug-in of admission, and has the ServiceAccount that Pods are given."""
    async with served(plugins=PLUGINS, **more) as server:
        await server.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        yield server
