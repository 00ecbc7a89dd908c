"""A conversion webhook on loopback that moves a field between two versions, and a definition that names it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from called_servers import Trusted
from custom_resources import definition, version
from served import Served

V1 = "/apis/example.com/v1/namespaces/default/widgets"
V2 = "/apis/example.com/v2/namespaces/default/widgets"
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SIZE = {"type": "object", "properties": {"size": {"type": "integer"}}}
COUNT = {"type": "object", "properties": {"count": {"type": "integer"}, "extra": {"type": "string", "default": "no"}}}


def moved(obj: dict[str, Any], wanted: str) -> dict[str, Any]:
    """The object in the wanted version: ``spec.size`` of v1 is ``spec.count`` of v2."""
    names = {"v1": "size", "v2": "count"}
    spec = dict(obj.get("spec") or {})
    before, after = names[obj["apiVersion"].rpartition("/")[2]], names[wanted.rpartition("/")[2]]
    if before in spec:
        spec[after] = spec.pop(before)
    return {**obj, "apiVersion": wanted, "spec": spec}


class Converter:
    """Answers reviews by ``change``; keeps which objects it was asked for.  While ``held``, it answers nothing."""

    def __init__(self, trusted: Trusted, host: str = "127.0.0.1") -> None:
        self._trusted = trusted
        self.asked: list[tuple[str, list[str]]] = []
        self.change: Callable[[dict[str, Any], str], Any] = moved
        self.response: dict[str, Any] = {}
        self.held: asyncio.Event | None = None
        self.news = asyncio.Event()
        self._server = trusted.server(self._answer, host)

    async def __aenter__(self) -> Converter:
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._server.__aexit__(*exc)

    async def _answer(self, exchange: Any) -> None:
        review = exchange.request.json
        asked = review["request"]
        names = [f"{obj['metadata']['name']}/{obj['apiVersion'].rpartition('/')[2]}" for obj in asked["objects"]]
        self.asked.append((asked["desiredAPIVersion"], names))
        self.news.set()
        if self.held is not None:
            await self.held.wait()
        objects = [self.change(obj, asked["desiredAPIVersion"]) for obj in asked["objects"]]
        said = {"uid": asked["uid"], "convertedObjects": objects, "result": {"status": "Success"}, **self.response}
        await exchange.answer(200, {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": said})

    def questions(self) -> list[tuple[str, list[str]]]:
        """What was asked since this was called last."""
        asked, self.asked = self.asked, []
        return asked

    async def wait(self) -> None:
        """Until the next question comes."""
        self.news.clear()
        await self.news.wait()

    @property
    def port(self) -> int:
        return int(self._server.port)

    @property
    def strategy(self) -> dict[str, Any]:
        client = {"url": f"https://127.0.0.1:{self.port}/convert", "caBundle": self._trusted.bundle}
        return {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}

    def definition(self, *, storage: str = "v1", **more: Any) -> dict[str, Any]:
        """Widgets with two versions, each with a status."""
        versions = [
            version("v1", SIZE, storage=storage == "v1", subresources={"status": {}}, **more),
            version("v2", COUNT, storage=storage == "v2", subresources={"status": {}}, **more),
        ]
        made: dict[str, Any] = definition(*versions)
        made["spec"]["conversion"] = self.strategy
        return made


async def changed(api: Served, edit: Callable[[dict[str, Any]], None]) -> None:
    """Change the definition, and wait until the server serves all of its versions anew."""
    path = f"{DEFINITION}/widgets.example.com"
    found = await api.get(path)
    edit(found)
    async with served_anew(api, len(found["spec"]["versions"])):
        await api.merge(path, {"spec": found["spec"]})  # whatever the server writes into its status meanwhile


async def changed_storage(api: Served, to: str) -> None:
    def edit(found: dict[str, Any]) -> None:
        for each in found["spec"]["versions"]:
            each["storage"] = each["name"] == to

    await changed(api, edit)


async def serving(api: Served, made: dict[str, Any]) -> None:
    """Create the definition and wait until its versions are served."""
    async with served_anew(api, len(made["spec"]["versions"])):
        await api.post(DEFINITION, made)


@contextlib.asynccontextmanager
async def served_anew(api: Served, count: int) -> AsyncIterator[None]:
    """Wait at the end until so many kinds have come or were replaced."""
    come: asyncio.Queue[object] = asyncio.Queue()
    stop = api.api.kinds.on_change(lambda old, new: come.put_nowait(new))
    try:
        yield
        for _ in range(count):
            await come.get()
    finally:
        stop()


def widget(name: str, version: str = "v1", meta: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    head = {"apiVersion": f"example.com/{version}", "kind": "Widget"}
    return {**head, "metadata": {"name": name, **(meta or {})}, "spec": spec}
