"""A main process and a worker as one API server.  Here both run in this process; ``tests/journeys`` forks for real."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from worker_site import Site, ask, served

from seamark import presence
from seamark.access.credentials import Certificate, Fixed, Identity
from seamark.access.kubeconfig import load
from seamark.access.transport import Request, Transport
from seamark.api.certificates import Authority
from seamark.config import Config, ConfigError, settled
from seamark.daemon.serving import share
from seamark.daemon.workers import pool
from seamark.runtime.supervisor import Part

MAPS = "/api/v1/namespaces/default/configmaps"
FOREVER = 1e6  # seconds
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
async def site(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    """By a parameter, the setting ``store``; it is in memory without."""
    store = {"store": request.param(request)} if hasattr(request, "param") else {"ephemeral": True}
    async with served(config_with(tmp_path, store)) as made:
        yield made


def config_with(folder: Path, store: dict[str, Any]) -> Config:
    api = {"port": 0, "workers": 2, "audit_log": str(folder / "audit.log")}
    return settled({"data_dir": str(folder), "profile": "plain", "api": api, **store})


def in_memory(request: pytest.FixtureRequest) -> str:
    return "memory:"


def in_a_file(request: pytest.FixtureRequest) -> str:
    return f"sqlite://{request.getfixturevalue('tmp_path')}/store.db"


def in_etcd(request: pytest.FixtureRequest) -> str:
    return f"etcd://{request.getfixturevalue('etcd').addresses[0]}/{uuid.uuid4()}"


wherever = pytest.mark.parametrize("site", [in_memory, in_a_file, in_etcd], indirect=True)


async def test_connections_are_spread(site: Site) -> None:
    clients = [await site.client() for _ in range(4)]
    for client in clients:
        await ask(client, "GET", MAPS)
    _, text = await site.page(clients[0], "/metrics")
    lists = r'seamark_api_requests_total{verb="list",resource="configmaps",code="200",worker="(\d)"} (\d)'
    assert sorted(re.findall(lists, text)) == [("0", "2"), ("1", "2")]
    assert text.count("# TYPE seamark_api_requests_total counter") == 1


async def test_a_closed_connection_makes_room_for_another(site: Site) -> None:
    first, second = await site.client(), await site.client()
    await first.close()
    while site.forks.board.numbers[1] + (2 - site.daemon.api.listener.count) < 2:
        await asyncio.sleep(0)
    third = await site.client()
    for client in (second, third):
        await ask(client, "GET", MAPS)
    _, text = await site.page(second, "/metrics")
    assert len(re.findall(r'verb="list",resource="configmaps",code="200",worker="\d"} 1', text)) == 2


@wherever
async def test_what_one_process_acknowledged_the_other_shows_at_once(site: Site) -> None:
    clients = [await site.client(), await site.client()]
    for number in range(20):
        writer, reader = clients[number % 2], clients[1 - number % 2]
        made = await ask(writer, "POST", MAPS, {"metadata": {"name": f"m{number}"}})
        assert await ask(reader, "GET", f"{MAPS}/m{number}") == made
        listed = await ask(reader, "GET", MAPS)
        assert f"m{number}" in [item["metadata"]["name"] for item in listed["items"]]


@wherever
async def test_both_processes_update_one_object_and_lose_nothing(site: Site) -> None:
    clients = [await site.client(), await site.client()]
    await ask(clients[0], "POST", MAPS, {"metadata": {"name": "one"}})

    async def patch(number: int) -> None:
        body = msgspec.json.encode({"data": {f"k{number}": "x"}})
        request = Request("PATCH", f"{MAPS}/one", body=body, content_type="application/merge-patch+json")
        code, answer = await clients[number % 2].ask(request)
        assert code == 200, answer

    await asyncio.gather(*(patch(number) for number in range(10)))
    assert len((await ask(clients[1], "GET", f"{MAPS}/one"))["data"]) == 10


async def established(client: Transport, name: str) -> bool:
    conditions = (await ask(client, "GET", f"{DEFINITIONS}/{name}"))["status"]["conditions"] or ()
    return {"type": "Established", "status": "True"} in [{k: c[k] for k in ("type", "status")} for c in conditions]


async def test_a_new_kind_is_served_by_every_process(site: Site) -> None:
    clients = [await site.client(), await site.client()]
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    for number in range(4):
        group = f"g{number}.example.com"
        spec = {"group": group, "names": {"plural": "things", "kind": "Thing"}, "scope": "Cluster"}
        definition = {"metadata": {"name": f"things.{group}"}, "spec": {**spec, "versions": [version]}}
        await ask(clients[number % 2], "POST", DEFINITIONS, definition)
        while not await established(clients[number % 2], f"things.{group}"):
            await asyncio.sleep(0)
        other = clients[1 - number % 2]
        assert await ask(other, "GET", f"/apis/{group}/v1/things")
        assert await ask(other, "GET", f"/apis/{group}/v1")


async def test_authorities_are_rotated_in_every_process(site: Site, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "pki")
    known = load(site.daemon.kubeconfig_path, environ={})

    async def looked() -> None:
        for renewal in (site.daemon.renewal, site.forks.workers[0].renewal):
            await renewal.look()

    def clients(name: str) -> list[Transport]:
        """Two with the same certificate, of which each process gets one."""
        identity = Fixed(Identity(certificate=Certificate(*authority.client(name, ["system:masters"]))))
        made = [Transport(replace(known, credentials=identity, authority=authority.ca_pem)) for _ in range(2)]
        site.clients += made
        return made

    async def codes(clients: list[Transport]) -> list[int]:
        return [(await client.ask(Request("GET", MAPS)))[0] for client in clients]

    before = clients("before")
    assert await codes(before) == [200, 200]
    authority.new_ca()
    await looked()
    after = clients("after")
    assert await codes(before + after) == [200] * 4
    authority.drop_earlier_cas()
    await looked()
    assert await codes(before + after + clients("later")) == [401, 401, 200, 200, 200, 200]
    _, text = await site.page(after[0], "/metrics")
    ended = r'seamark_api_requests_total{.*code="401",worker="(\d)"} 1'
    assert sorted(re.findall(ended, text)) == ["0", "1"]


async def test_tokens_are_rotated_in_every_process(site: Site, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "pki")
    known = load(site.daemon.kubeconfig_path, environ={})
    servers = [site.daemon.api, site.forks.workers[0].api]

    def clients(token: str) -> list[Transport]:
        """Two with the same token, of which each process gets one."""
        made = [
            Transport(replace(known, credentials=Fixed(Identity(authorization=f"Bearer {token}")))) for _ in range(2)
        ]
        site.clients += made
        return made

    async def codes(clients: list[Transport]) -> list[int]:
        return [(await client.ask(Request("GET", MAPS)))[0] for client in clients]

    async def account(client: Transport) -> list[Transport]:
        asked = await ask(client, "POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {}})
        return clients(asked["status"]["token"])

    before = clients(authority.admin_token)
    await ask(before[0], "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    authority.new_admin_token()
    after = clients(authority.admin_token)
    assert await codes(after) == [200, 200], "a new token is good at once"
    assert await codes(before) == [401, 401], "an unknown token made every process look"
    earlier = await account(after[0])
    assert 401 not in await codes(earlier)
    authority.new_signing_key(revoke=True)
    later = await account(after[1])
    assert 401 not in await codes(later), "signed by one process with the new key, believed by the other"
    for server in servers:
        server.authenticator.accounts.keys.look()
    assert await codes(earlier) == [401, 401]


async def test_one_audit_log_has_the_requests_to_every_process(site: Site, tmp_path: Path) -> None:
    for number in range(4):
        await ask(await site.client(), "POST", MAPS, {"metadata": {"name": f"m{number}"}})
    events = map(msgspec.json.decode, (tmp_path / "audit.log").read_bytes().splitlines())
    assert [event["requestURI"] for event in events if event["verb"] == "create"] == [MAPS] * 4


async def test_a_watch_has_the_order_of_commits_whichever_process_tells(site: Site) -> None:
    clients = [await site.client() for _ in range(4)]
    start = (await ask(clients[0], "GET", MAPS))["metadata"]["resourceVersion"]

    async def watched(client: Transport) -> list[str]:
        asked, seen = Request("GET", MAPS, (("watch", "true"), ("resourceVersion", start))), []
        async for lines in client.stream(asked, lifetime=FOREVER):
            seen += [msgspec.json.decode(line)["object"]["metadata"]["resourceVersion"] for line in lines]
            if len(seen) == 20:
                break
        return seen

    watching = [asyncio.create_task(watched(client)) for client in clients[2:]]

    async def write(number: int) -> None:
        await ask(clients[number % 2], "POST", MAPS, {"metadata": {"name": f"m{number}"}})

    await asyncio.gather(*map(write, range(20)))
    first, second = await asyncio.gather(*watching)
    assert first == second == sorted(first, key=int)


async def end_worker(site: Site) -> tuple[asyncio.Task[None], Part]:
    """End the one worker.  Returns what ran, and its part of the daemon, which knows by now that it has ended."""
    (ended,) = site.forks.running
    ended.cancel()
    await asyncio.wait([ended])
    part = site.daemon.supervisor.parts["worker-1"]
    while part.problem is None:
        await asyncio.sleep(0)
    return ended, part


async def test_a_worker_that_ends_is_told_of_and_replaced(site: Site) -> None:
    clients = [await site.client(), await site.client()]
    assert "[+]worker-1 ok" in (await site.page(clients[0], "/readyz?verbose"))[1]
    ended, part = await end_worker(site)
    client = await site.client()  # the main process serves alone
    code, text = await site.page(client, "/readyz")
    assert (code, "[-]worker-1 failed: the process ended" in text) == (500, True)
    site.gate.open.set()
    while part.problem is not None:
        await asyncio.sleep(0)
    assert (await site.page(await site.client(), "/readyz"))[0] == 200
    site.forks.running.remove(ended)


async def test_a_worker_is_replaced_where_nothing_can_be_written_down(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """On a full disk, for example; here a directory is in the way."""
    (tmp_path / presence.NEXT).mkdir()
    ended, part = await end_worker(site)
    site.gate.open.set()
    while part.problem is not None:
        assert "cannot use" not in part.problem
        await asyncio.sleep(0)
    assert "what runs here could not be written down anew" in caplog.text
    site.forks.running.remove(ended)


async def test_a_worker_that_is_stuck_is_killed_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pool, "LOOK", 0.0)
    monkeypatch.setattr(pool, "STUCK", 0.1)
    async with served(config_with(tmp_path, {"ephemeral": True})) as site:
        (worker,), (running,) = site.forks.workers, site.forks.running
        monkeypatch.setattr(worker, "answer", never)
        await asyncio.wait([running])
        monkeypatch.setattr(pool, "LOOK", FOREVER)
        site.gate.open.set()
        while len(site.forks.workers) == 1 or not site.daemon.workers.pids:
            await asyncio.sleep(0)
        assert (await site.page(await site.client(), "/readyz"))[0] == 200
        assert "has not answered for 0.1 seconds: it is killed and replaced" in caplog.text
        site.forks.running.remove(running)


def test_a_worker_that_leaves_connections_gets_no_more_until_it_has_taken_them() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        worker = pool.Running(1, 0, None, ours)  # type: ignore[arg-type]  # nothing is asked of it
        assert worker.takes(10.0)
        socket.send_fds(ours, [b"c"], [0])
        assert worker.takes(11.0)
        assert worker.takes(11.0 + pool.LEFT / 2)
        assert not worker.takes(11.0 + pool.LEFT)
        _, (taken,), _, _ = socket.recv_fds(theirs, 1, 1)
        os.close(taken)
        assert worker.takes(20.0)
        socket.send_fds(ours, [b"c"], [0])
        assert worker.takes(20.5), "a moment later it has yet to take the next"


async def never(body: bytes) -> bytes:
    return await asyncio.Future()


def test_processes_share_the_limits_of_one() -> None:
    whole = settled({"data_dir": "/d", "api": {"workers": 3, "max_in_flight": 128, "max_connections": 10}}).api
    assert (share(whole).max_in_flight, share(whole).max_connections) == (43, 4)
    assert share(whole).watch_bytes == whole.watch_bytes // 3


@pytest.mark.parametrize(
    "said", [{"api": {"workers": 0}}, {"api": {"workers": 65}}, {"api": {"workers": 2}, "pods": {"mode": "processes"}}]
)
def test_numbers_of_workers_that_make_no_sense_are_refused(said: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="workers"):
        settled({"data_dir": "/d", **said})
