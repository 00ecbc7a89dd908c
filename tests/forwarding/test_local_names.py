"""The names of Services on this machine, asked over a real socket."""

from __future__ import annotations

import contextlib

import dns.asyncquery
import dns.message
import dns.rcode
import msgspec

from seamark.dns.server import bind
from seamark.forwarding.names import LocalNames, local_dns
from seamark.forwarding.services import LocalPort, LocalService
from seamark.rules.objects.service import Service

WEB = LocalService("shop", "web", "127.64.0.1", ports=(LocalPort(80, 8080, "127.64.0.1", "http"),))
DB = [
    LocalService("shop", "db", f"127.64.0.{number}", f"db-{number}", (LocalPort(5432, 5432, "127.64.0.2", "sql"),))
    for number in (2, 3)
]


def service(name, **spec):
    return msgspec.convert({"metadata": {"name": name, "namespace": "shop"}, "spec": spec}, Service)


SERVICES = [
    service("web", clusterIP="10.96.0.1", clusterIPs=["10.96.0.1"], ports=[{"name": "http", "port": 80}]),
    service("db", clusterIP="None", clusterIPs=["None"], ports=[{"name": "sql", "port": 5432}]),
    service("alias", type="ExternalName", externalName="web.shop.svc.cluster.local"),
]


@contextlib.asynccontextmanager
async def names(*, plain=True):
    """A server, and a function that asks it: the data of the answer, or the code."""
    server = local_dns("cluster.local")
    async with server.running(bind(["127.0.0.1:0"])):
        await server.synced()
        host, port = server.addresses[0]

        async def ask(name, kind="A"):
            answer = await dns.asyncquery.udp(dns.message.make_query(name, kind), host, port=port)
            if answer.rcode() != dns.rcode.NOERROR:
                return dns.rcode.to_text(answer.rcode())
            return sorted(item.to_text() for rrset in answer.answer for item in rrset)

        yield LocalNames(server, plain=plain), ask


async def test_a_service_has_its_full_name_and_all_shorter_ones():
    async with names() as (local, ask):
        local.update(SERVICES, [WEB, *DB])
        for name in ("web.shop.svc.cluster.local", "web.shop.svc", "web.shop", "web"):
            assert await ask(name) == ["127.64.0.1"]
            assert await ask(name, "AAAA") == []
        for name in ("db.shop.svc.cluster.local", "db.shop.svc", "db"):
            assert await ask(name) == ["127.64.0.2", "127.64.0.3"]
        for name in ("db-3.db.shop.svc.cluster.local", "db-3.db.shop.svc", "db-3.db"):
            assert await ask(name) == ["127.64.0.3"]
        assert await ask("alias.shop.svc.cluster.local") == ["127.64.0.1", "web.shop.svc.cluster.local."]
        assert await ask("nosuch.shop.svc.cluster.local") == "NXDOMAIN"
        assert await ask("1.0.64.127.in-addr.arpa", "PTR") == ["web.shop.svc.cluster.local."]


async def test_srv_records_have_the_local_ports():
    async with names() as (local, ask):
        local.update(SERVICES, [WEB, *DB])
        assert await ask("_http._tcp.web.shop.svc.cluster.local", "SRV") == ["0 100 8080 web.shop.svc.cluster.local."]
        assert len(await ask("_sql._tcp.db.shop.svc.cluster.local", "SRV")) == 2


async def test_names_follow_the_services_also_those_whose_answers_are_kept_ready():
    async with names() as (local, ask):
        local.update(SERVICES, [WEB])
        for _ in range(3):
            assert await ask("web.shop.svc.cluster.local") == await ask("web.shop") == ["127.64.0.1"]
        local.update(SERVICES, [msgspec.structs.replace(WEB, address="127.64.0.9")])
        assert await ask("web.shop.svc.cluster.local") == await ask("web.shop") == ["127.64.0.9"]
        local.update([], [])
        assert await ask("web.shop.svc.cluster.local") == "NXDOMAIN"


async def test_bare_names_are_for_one_namespace_only():
    async with names(plain=False) as (local, ask):
        local.update(SERVICES, [WEB])
        assert await ask("web.shop") == ["127.64.0.1"]
        assert "web" not in local._names
