"""Every Service on an address of its own: what follows from objects, and real sockets where a port is refused."""

from __future__ import annotations

import asyncio
import contextlib
import errno

import pytest
from forwarded_cluster import ask, forwarded_cluster

from free_ports import free_port
from seamark.access.informers import Informers
from seamark.access.portforward.tunnels import Tunnels
from seamark.forwarding.dialing import Dialer
from seamark.forwarding.listener import Listener
from seamark.forwarding.services import ForwardedServices
from seamark.kinds.resource import SERVICES
from turns import until

PORT = free_port()

TO_8080 = [{"name": "http", "port": 8080, "protocol": "TCP"}]


@contextlib.asynccontextmanager
async def forwarded(world, *, namespace="default", labels=""):
    """The local Services by name, kept up to date, and what was told."""
    here, told = {}, []

    def changed(_services, local):
        here.clear()
        here.update({each.key[1:]: each for each in local})

    tunnels, informers = Tunnels(world.cluster.transport), Informers(world.cluster)
    forwarding = ForwardedServices(
        informers, Dialer(tunnels), namespace=namespace, labels=labels, tell=told.append, changed=changed
    )
    tasks = [asyncio.ensure_future(informers.run()), asyncio.ensure_future(forwarding.run())]
    try:
        yield here, told
    finally:
        for task in reversed(tasks):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await tunnels.close()


async def test_services_come_and_go_with_their_own_addresses_and_ports():
    async with forwarded_cluster() as world, forwarded(world) as (here, told):
        await world.pod("web-1")
        await world.pod("web-2")
        await world.service("web", [{"name": "http", "port": PORT}, {"name": "dns", "port": 53, "protocol": "UDP"}])
        await world.endpoints("web", {"10.1.0.1": "web-1", "10.1.0.2": "web-2"}, TO_8080)
        await until(lambda: ("web", "") in here)
        web = here["web", ""]
        assert web.address.startswith("127.")
        assert [(port.port, port.local) for port in web.ports] == [(PORT, PORT)]
        assert web.left_out == ("53/UDP",)
        answers = {await ask(web.address, PORT) for _ in range(4)}
        assert answers == {b"web-1:hello", b"web-2:hello"}, "connections go to all endpoints in turn"
        await world.service("other", [{"port": PORT}])
        await until(lambda: ("other", "") in here)
        assert here["other", ""].address != web.address
        assert here["web", ""] == web
        assert await ask(here["other", ""].address, PORT) == b""
        assert "Service default/other has no ready endpoints: a connection was closed" in told
        await world.cluster.delete(SERVICES, "web", namespace="default")
        await until(lambda: ("web", "") not in here)
        with pytest.raises(ConnectionRefusedError):
            await ask(web.address, PORT)


async def test_each_endpoint_of_a_headless_service_has_an_address_of_its_own():
    async with forwarded_cluster() as world, forwarded(world) as (here, _):
        await world.pod("web-1", ports=(PORT,))
        await world.pod("web-2", ports=(PORT,))
        await world.service("peers", [{"port": PORT}], clusterIP="None")
        ports = [{"port": PORT, "protocol": "TCP"}]
        await world.endpoints("peers", {"10.1.0.1": "web-1", "10.1.0.2": "web-2"}, ports)
        await until(lambda: len(here) == 3)
        assert set(here) == {("kubernetes", ""), ("peers", "10-1-0-1"), ("peers", "10-1-0-2")}
        assert await ask(here["peers", "10-1-0-1"].address, PORT) == b"web-1:hello"
        assert await ask(here["peers", "10-1-0-2"].address, PORT) == b"web-2:hello"
        await world.endpoints("peers", {"10.1.0.2": "web-2"}, ports)
        await until(lambda: len(here) == 2)


async def test_only_services_with_such_labels_and_no_aliases():
    async with forwarded_cluster() as world:
        await world.service("alias", [], type="ExternalName", externalName="example.com")
        await world.service("web", [{"port": PORT}])
        async with forwarded(world, namespace="", labels="component!=apiserver") as (here, _):
            await until(lambda: here)
            assert set(here) == {("web", "")}


@pytest.mark.parametrize(
    ("refused", "place", "sentence"),
    [
        (lambda host, port: errno.EACCES if 0 < port < 1024 else 0, ("127.", 8443), "port 443 needs a right"),
        (lambda host, port: errno.EADDRINUSE if port else 0, ("127.", None), "in use by another program"),
        (lambda host, port: errno.EADDRNOTAVAIL if host != "127.0.0.1" else 0, ("127.0.0.1", None), "ifconfig lo0"),
    ],
)
async def test_where_the_own_port_is_refused_another_is_used_and_told(monkeypatch, refused, place, sentence):
    real = Listener.listen

    async def listen(self, host, port):
        if code := refused(host, port):
            raise OSError(code, "refused")
        _, free = await real(self, host, 0)  # whatever the number: another program may have that port
        return host, port or free

    monkeypatch.setattr(Listener, "listen", listen)
    async with forwarded_cluster() as world, forwarded(world) as (here, told):
        await until(lambda: ("kubernetes", "") in here)
        (port,) = here["kubernetes", ""].ports
        assert here["kubernetes", ""].address.startswith(place[0])
        assert port.port == 443
        assert place[1] in (None, port.local)
        assert sentence in told[0]
        assert len(told) == 1


async def test_a_port_that_cannot_be_had_at_all_is_left_out_with_the_reason(monkeypatch):
    async def listen(self, host, port):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Listener, "listen", listen)
    async with forwarded_cluster() as world, forwarded(world) as (here, _):
        await until(lambda: ("kubernetes", "") in here)
        assert here["kubernetes", ""].ports == ()
        assert here["kubernetes", ""].left_out == ("443 (Too many open files)",)
