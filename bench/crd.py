"""Custom resources beside built-in ones: the CPU of each verb, and what 500 definitions cost.

A custom kind with the schema of PodTemplates, written out in full, is compared with PodTemplates themselves, object for
object: no controller looks at either.  Then the server gets definitions of the size that operators bring, all in one
group, as the worst case.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from bench.rig import schemas
from bench.rig.load import Result, Server, cpu_seconds, drive, environment, request, resident_megabytes, seamark_server
from bench.start import until_ready

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Compared(msgspec.Struct):
    """One of the two kinds, and where its objects are."""

    path: str
    head: dict[str, str]

    def body(self, name: str, image: str = "example/app:1") -> bytes:
        made = schemas.deployment(name)
        template = made["spec"]["template"]
        template["spec"]["containers"][0]["image"] = image
        return msgspec.json.encode({**self.head, "metadata": made["metadata"], "template": template})


BUILT_IN = Compared("/api/v1/namespaces/default/podtemplates", {"apiVersion": "v1", "kind": "PodTemplate"})
CUSTOM = Compared(
    f"/apis/{schemas.GROUP}/v1/namespaces/default/works", {"apiVersion": f"{schemas.GROUP}/v1", "kind": "Work"}
)


class Answer(msgspec.Struct):
    """One answer: its status, its text and how long it took."""

    status: int
    body: bytes
    seconds: float

    def show(self, what: str) -> None:
        print(f"  {what:<52} {self.seconds * 1e3:8.1f} ms {len(self.body) / 1e3:9.1f} kB", flush=True)


def ask(server: Server, method: str, path: str, value: Any = None, accept: str = "application/json") -> Answer:
    connection = http.client.HTTPSConnection(server.host, server.port, context=server.tls)
    headers = {"Authorization": f"Bearer {server.token}", "Accept": accept}
    body = None if value is None else msgspec.json.encode(value)
    if body is not None:
        headers["Content-Type"] = "application/json"
    connection.connect()
    began = time.perf_counter()
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    answer = Answer(response.status, response.read(), time.perf_counter() - began)
    connection.close()
    return answer


def until_served(server: Server, path: str) -> float:
    """Seconds until a path answers."""
    began = time.perf_counter()
    while ask(server, "GET", path).status != 200:
        time.sleep(0.002)
    return time.perf_counter() - began


def make(server: Server, definition: Any) -> Answer:
    answer = ask(server, "POST", DEFINITIONS, definition)
    assert answer.status == 201, answer.body[:400]
    return answer


# --- one kind beside another ----------------------------------------------------------------------------


async def watched(server: Server, kind: Compared, changes: list[bytes], watchers: int) -> Result:
    """Open watches, make the changes, and wait until every watcher has seen all of them."""
    loop = asyncio.get_running_loop()
    waiting: list[asyncio.Future[None]] = []
    opened: list[asyncio.Future[None]] = []

    class Watcher(asyncio.Protocol):
        def __init__(self) -> None:
            self.left = len(changes)
            self.done: asyncio.Future[None] = loop.create_future()
            self.open: asyncio.Future[None] = loop.create_future()
            waiting.append(self.done)
            opened.append(self.open)

        def connection_made(self, transport: Any) -> None:
            self.transport = transport
            transport.write(request(server, "GET", f"{kind.path}?watch=true"))

        def data_received(self, data: bytes) -> None:
            if not self.open.done():
                self.open.set_result(None)
            self.left -= data.count(b'{"type":"MODIFIED"')
            if self.left <= 0 and not self.done.done():
                self.done.set_result(None)
                self.transport.close()

    for _ in range(watchers):
        await loop.create_connection(
            Watcher, server.host, server.port, ssl=server.tls, server_hostname=server.host if server.tls else None
        )
    await asyncio.gather(*opened)
    await asyncio.sleep(0.5)  # the objects there are must be sent before the clock starts
    before, began = cpu_seconds(server.pids) or 0.0, time.perf_counter()
    await drive(server, changes, 1)
    await asyncio.gather(*waiting)
    delivered, seconds = watchers * len(changes), time.perf_counter() - began
    return Result(delivered / seconds, ((cpu_seconds(server.pids) or 0.0) - before) / delivered * 1e6, seconds)


async def verbs(server: Server, kind: Compared, options: argparse.Namespace, start: int) -> dict[str, Result]:
    """The cost of each verb for objects numbered from ``start``."""
    names = [f"x{number}" for number in range(start, start + options.objects)]
    creates = [request(server, "POST", kind.path, kind.body(name)) for name in names]
    found = {"create": await drive(server, creates, options.clients)}
    updates = [
        request(
            server,
            "PATCH",
            f"{kind.path}/{name}",
            b'{"template":{"metadata":{"annotations":{"n":"0"}}}}',
            "application/merge-patch+json",
        )
        for name in names
    ]
    found["patch"] = await drive(server, updates, options.clients)
    applies = [
        request(
            server,
            "PATCH",
            f"{kind.path}/{name}?fieldManager=me&force=true",
            kind.body(name, "example/app:2"),
            "application/apply-patch+yaml",
        )
        for name in names
    ]
    found["apply"] = await drive(server, applies, options.clients)
    reads = [request(server, "GET", f"{kind.path}/{name}") for name in names]
    found["get"] = await drive(server, reads, options.clients)
    found["list"] = await drive(server, [request(server, "GET", kind.path)] * 10, 1)
    flips = [
        request(
            server,
            "PATCH",
            f"{kind.path}/{names[0]}",
            msgspec.json.encode({"template": {"metadata": {"annotations": {"n": str(number + 1)}}}}),
            "application/merge-patch+json",
        )
        for number in range(20)
    ]
    found["event to a watcher"] = await watched(server, kind, flips, options.watchers)
    return found


async def beside(server: Server, options: argparse.Namespace) -> None:
    make(server, schemas.definition("works", "Work", schemas.like(schemas.POD_TEMPLATE)))
    until_served(server, CUSTOM.path)
    sums: dict[str, list[float]] = {}
    for turn in range(options.rounds):
        first, second = (BUILT_IN, CUSTOM) if turn % 2 == 0 else (CUSTOM, BUILT_IN)
        for kind in (first, second):
            for verb, result in (await verbs(server, kind, options, turn * options.objects)).items():
                sums.setdefault(verb, [0.0, 0.0])[kind is CUSTOM] += (result.cpu or 0.0) / options.rounds
    print(f"  {'':<24} {'PodTemplate':>12} {'custom':>12}")
    for verb, (built_in, custom) in sums.items():
        print(f"  {verb:<24} {built_in:>9.0f} µs {custom:>9.0f} µs   {custom / built_in:5.2f} ×", flush=True)


# --- many definitions -------------------------------------------------------------------------------------


def of_an_operator(number: int, group: str = "many.example.com") -> Any:
    """A definition of the usual size, about 20 kB: the strategy, selector and containers of a workload."""
    whole = schemas.like(schemas.DEPLOYMENT)["properties"]
    spec = whole["spec"]["properties"]
    container = spec["template"]["properties"]["spec"]["properties"]["containers"]["items"]["properties"]
    kept = {name: container[name] for name in ("name", "image", "ports", "resources", "securityContext")}
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {**kept, "selector": spec["selector"]}},
            "status": whole["status"],
        },
    }
    return schemas.definition(f"things{number}", f"Thing{number}", schema, group, subresources={"status": {}})


def documents(server: Server) -> None:
    for what, path, accept in (
        ("discovery, aggregated", "/apis", AGGREGATED),
        ("discovery of the group", "/apis/many.example.com/v1", "application/json"),
        ("OpenAPI v3, index", "/openapi/v3", "application/json"),
        ("OpenAPI v3, of the group", "/openapi/v3/apis/many.example.com/v1", "application/json"),
        ("OpenAPI v3, of apps", "/openapi/v3/apis/apps/v1", "application/json"),
        ("OpenAPI v2", "/openapi/v2", "application/json"),
    ):
        ask(server, "GET", path, accept=accept).show(what)


def many(folder: Path, options: argparse.Namespace) -> None:
    env = environment(f"{folder}/compiled")
    data = folder / "many"
    until_ready(["apiserver", "--api-port", "0", "--data-dir", str(data)], env)
    before = until_ready(["apiserver", "--api-port", "0", "--data-dir", str(data)], env)
    with seamark_server(data, "apiserver", env=env) as server:
        idle = resident_megabytes(*server.pids)
        first = make(server, of_an_operator(0))
        print(f"  a definition has {len(first.body) / 1e3:.1f} kB")
        wait = until_served(server, "/apis/many.example.com/v1/things0")
        print(f"  {'the first: created, then served':<52} {first.seconds * 1e3:8.1f} ms {wait * 1e3:8.1f} ms")
        cpu, began = cpu_seconds(server.pids) or 0.0, time.perf_counter()
        for number in range(1, options.definitions):
            make(server, of_an_operator(number))
        until_served(server, f"/apis/many.example.com/v1/things{options.definitions - 1}")
        seconds, cpu = time.perf_counter() - began, (cpu_seconds(server.pids) or 0.0) - cpu
        each = cpu / options.definitions * 1e3
        print(f"  {f'{options.definitions} definitions':<52} {seconds * 1e3:8.0f} ms, {each:.1f} ms of CPU each")
        print(f"  {'memory for them':<52} {resident_megabytes(*server.pids) - idle:8.0f} MB")
        documents(server)
        print("  after one more definition:")
        answer = make(server, of_an_operator(options.definitions))
        wait = until_served(server, f"/apis/many.example.com/v1/things{options.definitions}")
        print(f"  {'created, then served':<52} {answer.seconds * 1e3:8.1f} ms {wait * 1e3:8.1f} ms")
        documents(server)
    after = until_ready(["apiserver", "--api-port", "0", "--data-dir", str(data)], env)
    for what, (ready, memory, _) in (("without definitions", before), (f"with {options.definitions}", after)):
        print(f"  {f'start of the API server {what}':<52} {ready * 1e3:8.0f} ms {memory:9.0f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--watchers", type=int, default=100)
    parser.add_argument("--definitions", type=int, default=500)
    parser.add_argument("--only", choices=("beside", "many"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.only != "many":
            print("custom resources beside PodTemplates, CPU of the server each")
            with seamark_server(Path(folder) / "beside", "apiserver") as server:
                uvloop.run(beside(server, options))
        if options.only != "beside":
            print("many definitions in one group")
            many(Path(folder), options)


if __name__ == "__main__":
    main()
