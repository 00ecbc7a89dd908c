"""Whatever is sent is answered: no failure of ours, no traceback, no cache that differs from its store, flat memory.

A short row of requests for each of a few seeds, and a million by `make soak`.  A failure names its seed and prints the
shortest row of requests that still fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import json
import logging
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from custom_resources import DEFINITIONS, established
from random_requests import DEFINITION, Request, Traffic
from served import Answer, Lines, Served, served

from seamark.api.http.wire.messages import Response, Streaming
from seamark.kinds.language import protobuf, shapes
from seamark.store.protocol import Write

SEEDS = range(8)
REQUESTS = 250  # of a seed, on a server as it was at its start
MANY = 1_000_000
# Failures of others, which Kubernetes answers in the same way: of a webhook, a Pod, another server, or what is not
# there to be asked; and the odd codes that it gives to mistakes of the client.
MEANT = (
    "Internal error occurred: failed calling webhook",
    "Internal error occurred: resource quota evaluation",
    "error trying to reach service",
    "no endpoints available for service",
    "no service port ",
    "service unavailable",
)


class Listening(logging.Handler):
    """Keeps the tracebacks that the application logs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(logging.Formatter().format(record))


@contextlib.contextmanager
def listening() -> Iterator[Listening]:
    handler = Listening()
    logger = logging.getLogger("seamark")
    logger.addHandler(handler)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)


def said_in(shown: Answer) -> Any:
    """The Status in an answer, in whichever format the request asked for."""
    match shown.type:
        case "application/yaml":
            return yaml.safe_load(shown.body)
        case "application/vnd.kubernetes.protobuf":
            _, kind, message = protobuf.unwrap(shown.body)
            return {"kind": kind, **protobuf.read(message, shapes.of(shapes.load().kinds["v1", "Status"]))}
        case _:
            return shown.json


def fault_in(shown: Answer) -> str:
    """What is wrong with an answer, "" if nothing is."""
    if shown.status < 400 or not shown.type.startswith("application/"):
        meant = shown.status < 500 or shown.body.decode().startswith(MEANT)
        return "" if meant else "a failure without a Status"
    status = said_in(shown)
    if (status["kind"], status["code"], status["status"]) != ("Status", shown.status, "Failure") or not status[
        "message"
    ]:
        return "no Status that says what the code says"
    if status["message"].startswith(MEANT) or shown.status in (501, 504):
        return ""
    # Some of Kubernetes' own are a bare 500, without a reason; ours would have one.
    return "a failure" if shown.status > 500 or (shown.status == 500 and "reason" in status) else ""


async def send(api: Served, request: Request, heard: Listening) -> tuple[Answer | None, str]:
    """The answer (None for a stream), and what is wrong with it."""
    answer = api.begin(request["method"], request["path"].replace("?", ""), request["body"],
                       query=request["query"], type=request["type"], headers=request["headers"])  # fmt: skip
    if not isinstance(answer, Response | Streaming):
        answer = await answer
    shown = None
    fault = ""
    if isinstance(answer, Streaming):
        lines = Lines()
        answer.start(lines)  # type: ignore[arg-type]  # it has all a Stream has
        await asyncio.sleep(0)
        lines.abort()
    else:
        shown = Answer(answer)
        fault = fault_in(shown)
    if heard.said:
        fault, heard.said = "\n".join(heard.said), []
    return shown, fault and f"{fault}\n{request}\n{shown}"


@contextlib.asynccontextmanager
async def prepared() -> AsyncIterator[tuple[Served, Listening]]:
    """A server with a custom kind, and what it logs."""
    with listening() as heard:
        async with served() as api:
            await api.post(DEFINITIONS, DEFINITION)
            await established(api, DEFINITION["metadata"]["name"])
            yield api, heard


async def first_fault(requests: Sequence[Request]) -> str:
    """What the requests bring about on a new server, "" if nothing."""
    async with prepared() as (api, heard):
        for request in requests:
            _, fault = await send(api, request, heard)
            if fault:
                return fault
    return ""


async def shortest(requests: Sequence[Request]) -> Sequence[Request]:
    """Fewer requests that fail as well: without each half, quarter and so on that is not needed."""
    size = len(requests) // 2
    while size:
        at = 0
        while at < len(requests):
            fewer = [*requests[:at], *requests[at + size :]]
            if await first_fault(fewer):
                requests = fewer
            else:
                at += size
        size //= 2
    return requests


async def row(api: Served, heard: Listening, seed: object) -> None:
    """``REQUESTS`` of a seed, each checked."""
    traffic, sent = Traffic(seed), []
    for _ in range(REQUESTS):
        request = traffic.next()
        sent.append(request)
        answer, fault = await send(api, request, heard)
        if fault:
            few = await shortest(sent)
            told = "\n".join(map(str, few)) if await first_fault(few) else "it does not fail again on a new server"
            pytest.fail(f"seed {seed}, request {len(sent)}: {fault}\nshortest row:\n{told}")
        if answer is not None and answer.status in (200, 201) and answer.type == "application/json":
            packed = answer.body.startswith(b"\x1f\x8b")  # longer ones are packed while they are sent
            traffic.learn(request["path"], json.loads(gzip.decompress(answer.body) if packed else answer.body))


@pytest.mark.parametrize("seed", SEEDS)
async def test_no_request_breaks_anything(seed: int) -> None:
    async with prepared() as (api, heard):
        await row(api, heard, seed)
        await api.cache_equals_store()


class Beginning:
    """The state of a server, to go back to."""

    def __init__(self, api: Served) -> None:
        self._api = api
        self._rows: dict[str, bytes] = {}

    async def keep(self) -> None:
        self._rows = {row.key: row.value for row in (await self._api.store.read("/", "0")).rows}

    async def restore(self) -> None:
        """Write what differs, and forget the history, so that only leaks can grow."""
        store = self._api.store
        now = {row.key: row.value for row in (await store.read("/", "0")).rows}
        writes = [Write(key, None) for key in now.keys() - self._rows.keys()]
        writes += [Write(key, value) for key, value in self._rows.items() if now.get(key) != value]
        if writes:
            await store.commit(writes)
        revision = await store.revision()
        await self._api.api.cache.reach(revision)
        await store.compact(revision)
        for collection in self._api.api.cache.collections:
            collection.forget_before(revision + 1)


def resident_megabytes() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.soak
async def test_no_request_of_a_million_breaks_anything_and_memory_is_flat() -> None:
    async with prepared() as (api, heard):
        beginning = Beginning(api)
        await beginning.keep()
        sizes = []
        for number in range(MANY // REQUESTS):
            await row(api, heard, f"many {number}")
            await beginning.restore()
            if number % 100 == 99:
                await api.cache_equals_store()
                sizes.append(resident_megabytes())
                print(f"{(number + 1) * REQUESTS} requests: {sizes[-1]:.0f} MB", flush=True)
        # Caches fill up in the first half.
        third, last = sizes[len(sizes) // 2 : 3 * len(sizes) // 4], sizes[3 * len(sizes) // 4 :]
        assert max(last) < 1.05 * max(third), sizes
