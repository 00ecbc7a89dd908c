"""The composition root: builds the parts, starts them, supervises them and stops them.

A part that fails is started again by the :mod:`~seamark.runtime.supervisor`, and the others go on.  Only following the
store is essential: if that fails, what the API serves may be wrong, so all stop and the daemon fails with the error.
Each part is given what it needs when it is built, and nothing else.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from seamark import __version__
from seamark.access.informers import Informers
from seamark.api import bootstrap
from seamark.api.aggregation.front_proxy import FrontProxy
from seamark.api.certificates import Authority
from seamark.api.rbac.keeping import make_roles
from seamark.api.renewal import Renewal
from seamark.api.server import ApiServer
from seamark.clock import SYSTEM_CLOCK
from seamark.config import Config
from seamark.daemon.controlling import INFORMERS, Controlling, informing, moved, with_scheduler
from seamark.daemon.kubeconfig import kubeconfig
from seamark.daemon.requirements import (
    StartError,
    flag_for,
    gateways,
    machines_for,
    opened_store,
    own_files,
    server_names,
    serving_tls,
    trusted,
)
from seamark.daemon.serving import api_server
from seamark.kinds.resource import NAMESPACES
from seamark.kinds.values import times
from seamark.kinds.values.hosts import bracketed
from seamark.metrics import Registry, measure_process
from seamark.presence import Presence, hold
from seamark.private_files import write_private
from seamark.rules.volumes import PROVISIONER
from seamark.runtime.supervisor import Part, Started, Supervisor, at_once, note_name
from seamark.store.opening import is_shared
from seamark.store.protocol import Store

if TYPE_CHECKING:
    from seamark.daemon.attaching import PodSockets
    from seamark.daemon.workers import Forks, Workers
    from seamark.dns.server import DnsServer, Pair
    from seamark.nodes.running.hosting import Attach
    from seamark.nodes.running.machine.machine import Machine
    from seamark.proxy.userspace.engine import UserspaceEngine

STOP_SECONDS = 5.0

# What can run beside the API server.
Component = Literal["controllers", "surroundings", "discovery", "dns", "nodes", "proxy"]
EVERYTHING: tuple[Component, ...] = ("controllers", "surroundings", "discovery", "dns", "nodes", "proxy")


class Daemon:
    """One running Seamark."""

    def __init__(self, config: Config, components: Collection[Component], forks: Forks | None = None) -> None:
        """``forks`` starts the workers; without, this process serves alone, whatever the settings say."""
        self.config = config
        self.components = frozenset(components)
        self.metrics = Registry()
        measure_process(self.metrics)
        self.supervisor = Supervisor(metrics=self.metrics)
        self.data_dir = Path(config.data_dir)
        self.api: ApiServer
        self.informers: Informers  # shared by all parts of this process
        self.renewal: Renewal
        self.url = ""
        self.kubeconfig_path = self.data_dir / "kubeconfig"
        self.dns_addresses: list[tuple[str, int]] = []
        self.proxy: UserspaceEngine | None = None
        self.workers: Workers | None = None
        self._forks = forks
        self._dns: DnsServer | None = None
        self._fabric_dns: list[Pair] = []  # sockets at which Pods that run ask for names
        self._spare_machines: list[Machine] = []
        self._tasks: asyncio.TaskGroup
        self._stopping = asyncio.Event()
        self._tell: Callable[[], None] = lambda: None  # tells other processes what runs here, once it is up

    # --- life --------------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Daemon]:
        """Inside the block everything is running; leaving it stops everything in the right order."""
        started = times.text(SYSTEM_CLOCK.time())
        with hold(self.data_dir) as held:
            store = self._share(await opened_store(self.config.store_url))
            try:
                async with asyncio.TaskGroup() as tasks:
                    self._tasks = tasks
                    background = await self._start(store)
                    held.tell(self.presence(started))
                    self._tell = lambda: held.tell_again(self.presence(started))
                    try:
                        yield self
                    finally:
                        await self._stop(background)
            finally:
                for machine in self._spare_machines:
                    await machine.close()
                await store.close()

    def _share(self, store: Store) -> Store:
        """The store as this process is to use it: with workers, it answers their calls, too."""
        if self._forks is None:
            return store
        from seamark.daemon.workers import Workers
        from seamark.store.relayed import AnnouncedStore, StoreCalls

        board = self._forks.board
        calls = None
        if not is_shared(self.config.store_url):
            store = AnnouncedStore(store, board)
            calls = StoreCalls(store)
        self.workers = Workers(
            self.config.api.workers,
            self._forks,
            self.supervisor,
            self.metrics,
            store=calls,
            changed=lambda: self._tell(),
        )
        return store

    async def _start(self, store: Store) -> list[asyncio.Task[None]]:
        self._spare_machines = await machines_for(self.config)
        authority = Authority(self.data_dir / "pki")
        with own_files(self.data_dir):
            authority.prepare(server_names(self.config))
            front_proxy = FrontProxy(self.data_dir / "pki")
            front_proxy.prepare()
            if self.workers is not None:
                front_proxy.certificate()  # now, so that it is not made by several processes at once
        self.api = api_server(
            self.config,
            store,
            authority,
            front_proxy,
            metrics=self.metrics,
            readiness=self.supervisor.problems if self.workers is None else self.workers.problems,
            report=None if self.workers is None else self.workers.report,
            supervisor=self.supervisor,
        )
        await self.api.load()
        if self.config.pods.run:
            await self.api.measure()
        background = [self._spawn("follow the store", self.api.follow())]
        self.informers = Informers(self.api.cluster(INFORMERS), metrics=self.metrics)
        cluster = self.api.cluster("apiserver")
        fresh = not self.api.cache.of(NAMESPACES).entries
        kept: dict[str, Callable[[], Awaitable[None]]] = {
            "the namespaces of the system": partial(bootstrap.make_namespaces, cluster),
            "the service ranges": partial(bootstrap.make_ranges, cluster, self.config.network),
            "the priority levels": partial(bootstrap.make_priority_levels, cluster),
            "the APIServices": partial(bootstrap.make_api_services, cluster, self.api.kinds),
        }
        for make in kept.values():
            await make()
        await bootstrap.warn_of_other_ranges(cluster, self.config.network)
        if self.config.profile == "full":
            await make_roles(cluster)
        await bootstrap.make_priority_classes(cluster)
        publish = partial(
            bootstrap.publish_authorities, cluster, front_proxy=front_proxy.ca.encode(), shared=store.shared
        )
        await publish(authority.ca_pem)
        if "surroundings" in self.components and (storage_class := self.config.surroundings.storage_class):
            await bootstrap.make_storage_class(cluster, storage_class, PROVISIONER)
        if fresh:
            # The first versions of a new cluster are internal: a client that watches from one is told to list again.
            await store.compact(self.api.cache.revision)
            self.api.cache.settle()
        await self.api.definitions.caught_up.wait()  # so that no client finds custom resources missing
        tls = await self._listen(authority)
        if self.workers is not None and self.api.listener is not None:
            background += [self._keep(part) for part in self.workers.parts(self.api.listener)]
        background.append(self._keep(self._follow_certificates(authority, tls, publish)))
        background.append(self._keep(informing(self.supervisor, INFORMERS, self.informers)))
        if "dns" in self.components:
            background.append(self._keep(self._answer_names()))  # first, because its port may be taken
        kept["the authorities"] = lambda: publish(authority.ca_pem, dropped=self.renewal.dropped)
        background += self._serve(cluster, kept)
        if "proxy" in self.components and self.config.userspace.enabled:
            background.append(self._keep(self._forward()))
        background += self._control(authority, shared=is_shared(self.config.store_url))
        for name, part in list(self.supervisor.parts.items()):
            if name in ("dns", "nodes", "own-objects", "proxy") or name.startswith("worker-"):
                await part.settled.wait()
        return background

    def _control(self, authority: Authority, *, shared: bool) -> list[asyncio.Task[None]]:
        """Start the controllers and nodes.  Of several servers on a shared store, only the elected leader runs them."""
        if not self.components & {"controllers", "discovery"}:
            return []
        elsewhere = moved(self.config, self.components) if self.workers is not None else frozenset()
        control = Controlling(
            self.config,
            with_scheduler(self.components) - elsewhere,
            api=self.api,
            authority=authority,
            renewal=self.renewal,
            supervisor=self.supervisor,
            metrics=self.metrics,
            attach=self._attach(),
        )
        if shared and self.config.election.enabled:
            return [self._keep(control.election())]
        return [self._spawn("controllers", self.supervisor.run(*control.parts(self.informers)))]

    @cached_property
    def _pod_sockets(self) -> PodSockets:
        from seamark.daemon.attaching import PodSockets

        return PodSockets(self.config)

    def _attach(self) -> Attach | None:
        """How Pods that run reach this process; None if Pods are simulated."""
        if not self.config.pods.run:
            return None
        from seamark.daemon.attaching import Attaching

        async def answer(pairs: list[Pair]) -> None:
            self._fabric_dns = pairs
            if self._dns is not None and self._dns.listening.is_set():
                await self._dns.answer_at(_copies(pairs))

        listener = self.api.listener
        assert listener is not None
        sockets = self._pod_sockets
        return Attaching(
            self.config,
            self.informers,
            listener=listener,
            answer=answer,
            sockets=sockets,
            spare=self._spare_machines,
        )

    def _answer_names(self) -> Part:
        """The DNS server, which reads this cluster's state.  Its sockets are opened here, for its first start."""
        from seamark.dns.server import DnsServer, ListenError, bind

        config = self.config.dns
        try:
            opened = [bind(config.listen)]
        except ListenError as error:
            raise StartError(f"{error}; choose another with {flag_for(error.__cause__, 'dns')}") from error
        self.dns_addresses = [udp.getsockname()[:2] for udp, _ in opened[0]]

        async def answer(started: Started) -> None:
            pairs = opened.pop() if opened else bind([f"{bracketed(host)}:{port}" for host, port in self.dns_addresses])
            dns = DnsServer(config, self.api.cluster("dns"), informers=self.informers, registry=self.metrics)
            async with dns.running(pairs):
                await dns.synced()
                self._dns = dns
                await dns.answer_at(_copies(self._fabric_dns))
                started()
                await asyncio.Event().wait()

        return self.supervisor.part("dns", answer)

    def _forward(self) -> Part:
        """The userspace proxy, which serves node ports on loopback.

        Nothing answers at the address of a simulated Pod, so connections to one are refused at once.
        """
        from seamark.proxy.engine import Problem
        from seamark.proxy.events import COMPONENT, ProblemEvents
        from seamark.proxy.feed import RouteFeed
        from seamark.proxy.userspace.engine import UserspaceEngine
        from seamark.rules.routing.surroundings import Surroundings, ThisNode

        settings = self.config.userspace
        run = self.config.pods.run
        simulated = "nodes" in self.components and self.config.nodes.count and not run
        silent = self.config.nodes.pod_ranges if simulated else ()
        sockets = self._pod_sockets if run else None

        async def forward(started: Started) -> None:
            events = ProblemEvents(self.api.cluster(COMPONENT), self.informers)

            def report(problem: Problem | None) -> None:
                events.record(problem)
                self._tell()

            self.proxy = UserspaceEngine(
                settings,
                node_ports_at=settings.node_ports_at,
                silent=silent,
                take_addresses=False,
                sockets=sockets,
                report=report,
                metrics=self.metrics,
            )
            around = Surroundings(ThisNode(""))
            feed = RouteFeed(self.informers, self.proxy, around, served=self.proxy.can_have, metrics=self.metrics)
            try:
                await feed.run(started)
            finally:
                self.proxy = None
                await events.stop()

        return self.supervisor.part("proxy", forward)

    def _follow_certificates(
        self, authority: Authority, tls: ssl.SSLContext | None, publish: Callable[..., Coroutine[Any, Any, None]]
    ) -> Part:
        """Renews the serving certificate, and lets files that were replaced take effect (``seamark rotate``)."""
        settings = self.config.api
        given = (settings.tls_certificate, settings.tls_key) if settings.tls_certificate else None

        async def tell() -> None:
            self.api.authenticator.dropped = self.renewal.dropped
            self._write_kubeconfig(authority)
            await publish(authority.ca_pem, dropped=self.renewal.dropped)

        self.renewal = Renewal(authority, tls, server_names(self.config), tell, given=given)
        return self.supervisor.part("certificate", at_once(self.renewal.follow))

    async def _listen(self, authority: Authority) -> ssl.SSLContext | None:
        host, port = self.config.api.host, self.config.api.port
        plain = self.config.api.plain_http
        with own_files(self.data_dir):
            tls = None if plain else serving_tls(authority, self.config.api)
        try:
            listener = await self.api.listen(host, port, tls)
        except OSError as error:
            # The system's message only: the event loop's message would repeat the address.
            reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or error
            where = f"{bracketed(host)}:{port}"
            raise StartError(
                f"cannot listen on {where}: {reason}; choose another with {flag_for(error, 'api')}"
            ) from error
        self.url = listener.url
        with own_files(self.data_dir):
            self._write_kubeconfig(authority)
        return tls

    def _write_kubeconfig(self, authority: Authority) -> None:
        plain = self.config.api.plain_http
        ca = None if plain else trusted(authority, self.config.api)
        certificate = None if plain else authority.admin_certificate()
        text = kubeconfig(server=self.url, ca=ca, token=authority.admin_token, certificate=certificate)
        write_private(self.kubeconfig_path, text.encode())

    def _serve(self, cluster: Any, kept: Mapping[str, Callable[[], Awaitable[None]]]) -> list[asyncio.Task[None]]:
        listener = self.api.listener
        assert listener is not None
        inside = gateways(self.config)
        address = self.config.api.advertise or (*inside, bootstrap.advertised_address(self.config.api.host))[0]
        network = self.config.network
        services = [bootstrap.api_service(network, address, listener.address[1])]
        if self.config.profile == "full" and self.dns_addresses:
            host, port = (inside[0], bootstrap.DNS_PORT) if inside else self.dns_addresses[0]
            services.append(bootstrap.dns_service(network, bootstrap.advertised_address(host), port))
        own = {f"{each.namespace}/{each.name}": partial(bootstrap.make_own_service, cluster, each) for each in services}
        if self.config.profile == "full" and "nodes" in self.components and self.config.nodes.count:
            own["kube-system/seamark"] = partial(bootstrap.make_own_pod, cluster, self.config.nodes.name(1))
        return [
            self._keep(self.supervisor.part("connections", at_once(listener.sweep))),
            self._keep(self.supervisor.part("own-objects", partial(bootstrap.keep, {**kept, **own}))),
        ]

    async def _stop(self, background: list[asyncio.Task[None]]) -> None:
        """Stop in reverse order, so that a part stops before those that it writes to."""
        for task in reversed(background):
            if task is background[0]:
                # The parts have made their last writes, such as releasing the lease; now disconnect the clients.
                await self.api.close()
            task.cancel()
            await asyncio.wait([task], timeout=STOP_SECONDS)

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._tasks.create_task(work, name=name)
        task.add_done_callback(note_name)
        return task

    def _keep(self, part: Part) -> asyncio.Task[None]:
        return self._spawn(part.name, part.run())

    # --- waiting -----------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ask the daemon to end; safe from a signal handler."""
        self._stopping.set()

    async def wait(self) -> None:
        await self._stopping.wait()

    def presence(self, started: str) -> Presence:
        """What the data directory tells other processes about this daemon."""
        return Presence(
            pid=os.getpid(),
            version=__version__,
            started=started,
            ready=True,
            parts=tuple(sorted(self.components)),
            api=self.url,
            kubeconfig=str(self.kubeconfig_path.absolute()),
            dns=tuple(f"{bracketed(host)}:{port}" for host, port in self.dns_addresses),
            cluster_domain=self.config.cluster_domain,
            store=self.config.store_url,
            nodes=self.config.nodes.count if "nodes" in self.components else 0,
            pods=self.config.pods.mode,
            node_ports=self.proxy.node_ports_at if self.proxy is not None else (),
            not_served=tuple(str(each) for each in self.proxy.problems.values()) if self.proxy is not None else (),
            log=self.config.log.file,
            workers=self.workers.pids if self.workers is not None else (),
        )


def _copies(pairs: list[Pair]) -> list[Pair]:
    """The same sockets again: the server that is given them closes its own."""
    return [(udp.dup(), tcp.dup()) for udp, tcp in pairs]
