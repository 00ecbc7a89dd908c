"""The composition root: builds the parts, starts them, supervises them and stops them.

A part that fails is started again by the :mod:`~seamark.runtime.supervisor`, and the others go on.  Only following the
store is essential: if that fails, what the API serves may be wrong, so all stop and the daemon fails with the error.
Each part is given what it needs when it is built, and nothing else.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import os
import secrets
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from seamark import __version__
from seamark.access.events import EventRecorder
from seamark.access.informers import Informers
from seamark.access.leader import LeaderElection
from seamark.api import bootstrap
from seamark.api.admission import PLAIN, PLUGINS
from seamark.api.audit import policy
from seamark.api.audit.log import AuditLog
from seamark.api.authentication import FixedTokens, read_token_file
from seamark.api.authorization import AUTHENTICATED, MASTERS, User
from seamark.api.certificates import Authority, kubeconfig, write_private
from seamark.api.identity.keys import KeyFileError, KeyRing
from seamark.api.rbac.keeping import make_roles
from seamark.api.server import ApiServer
from seamark.api.settings import ApiSettings
from seamark.clock import SYSTEM_CLOCK
from seamark.config import Config, ConfigError
from seamark.controllers.housekeeping.standalone import add_cleaning, add_housekeeping
from seamark.controllers.identity.controllers import add_identity
from seamark.controllers.storage.matching import PROVISIONER
from seamark.errors import ApiError
from seamark.kinds.resource import NAMESPACES, NODES
from seamark.kinds.service.allocation import address_in
from seamark.kinds.values import times
from seamark.metrics import Registry
from seamark.presence import DirectoryError, Presence, hold
from seamark.runtime.manager import Manager
from seamark.runtime.supervisor import Part, Started, Supervisor, at_once, first_cause, note_name
from seamark.store.opening import open_store
from seamark.store.protocol import Store, StoreError

if TYPE_CHECKING:
    from seamark.proxy.userspace.engine import UserspaceEngine

log = logging.getLogger("seamark")

STOP_SECONDS = 5.0

# The user name with which the shared informers read.
INFORMERS = "informers"

# What can run beside the API server.
Component = Literal["controllers", "surroundings", "discovery", "dns", "nodes", "proxy"]
EVERYTHING: tuple[Component, ...] = ("controllers", "surroundings", "discovery", "dns", "nodes", "proxy")


class StartError(Exception):
    """Seamark cannot start; the message is one line with the reason and the remedy."""


class PartFailed(Exception):
    """An essential part failed, so everything stopped; the message is one line with the part and the error."""


class Daemon:
    """One running Seamark."""

    def __init__(self, config: Config, components: Collection[Component]) -> None:
        self.config = config
        self.components = frozenset(components)
        self.metrics = Registry()
        self.supervisor = Supervisor(metrics=self.metrics)
        self.data_dir = Path(config.data_dir)
        self.api: ApiServer
        self.informers: Informers  # shared by all parts of this process
        self.url = ""
        self.kubeconfig_path = self.data_dir / "kubeconfig"
        self.dns_addresses: list[tuple[str, int]] = []
        self.proxy: UserspaceEngine | None = None
        self._tasks: asyncio.TaskGroup
        self._stopping = asyncio.Event()
        self._tell: Callable[[], None] = lambda: None  # tells other processes what runs here, once it is up

    # --- life --------------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Daemon]:
        """Inside the block everything is running; leaving it stops everything in the right order."""
        started = times.text(SYSTEM_CLOCK.time())
        with hold(self.data_dir) as held:
            store = await _opened(self.config.store_url)
            try:
                async with asyncio.TaskGroup() as tasks:
                    self._tasks = tasks
                    background = await self._start(store)
                    self._tell = lambda: held.tell(self.presence(started))
                    self._tell()
                    try:
                        yield self
                    finally:
                        await self._stop(background)
            finally:
                await store.close()

    async def _start(self, store: Store) -> list[asyncio.Task[None]]:
        authority = Authority(self.data_dir / "pki")
        with _own_files(self.data_dir):
            authority.prepare(self._server_names())
        tokens = _fixed_tokens(authority, self.config.api.token_file)
        self.api = ApiServer(
            store,
            rbac=self.config.profile == "full",
            keys=self._token_keys(authority),
            token_settings=self.config.tokens,
            plugins=PLUGINS if self.config.profile == "full" else PLAIN,
            network=self.config.network,
            tokens=tokens,
            metrics=self.metrics,
            max_in_flight=self.config.api.max_in_flight,
            watch_bytes=self.config.api.watch_bytes,
            readiness=self.supervisor.problems,
            max_connections=self.config.api.max_connections,
            audit=_audit_log(self.config.api, self.metrics),
        )
        await self.api.load()
        background = [self._spawn("follow the store", self.api.follow())]
        self.informers = Informers(self.api.cluster(INFORMERS), metrics=self.metrics)
        cluster = self.api.cluster("apiserver")
        fresh = not self.api.cache.of(NAMESPACES).entries
        await bootstrap.make_namespaces(cluster)
        if self.config.profile == "full":
            await make_roles(cluster)
        await bootstrap.make_ranges(cluster, self.config.network)
        await bootstrap.make_priority_classes(cluster)
        await bootstrap.make_api_services(cluster, self.api.kinds)
        if "surroundings" in self.components and (storage_class := self.config.surroundings.storage_class):
            await bootstrap.make_storage_class(cluster, storage_class, PROVISIONER)
        if fresh:
            # The first versions of a new cluster are internal: a client that watches from one is told to list again.
            await store.compact(self.api.cache.revision)
            self.api.cache.settle()
        background += await self._listen(authority)
        background.append(self._keep(self._informing(INFORMERS, self.informers)))
        if "dns" in self.components:
            background.append(self._keep(self._answer_names()))  # first, because its port may be taken
        background += self._serve(cluster)
        if "proxy" in self.components and self.config.userspace.enabled:
            background.append(self._keep(self._forward()))
        background += self._control(authority, shared=store.shared)
        for name in ("dns", "nodes", "proxy"):
            if (part := self.supervisor.parts.get(name)) is not None:
                await part.settled.wait()
        return background

    def _token_keys(self, authority: Authority) -> KeyRing:
        """The keys of ServiceAccounts' tokens: those of the data directory, or those of given files."""
        settings = self.config.tokens
        if not settings.signing_key:
            return KeyRing([authority.signing_key_path, authority.verifying_keys_path])
        ring = KeyRing([Path(settings.signing_key), *map(Path, settings.keys)])
        try:
            ring.look()
        except OSError as error:
            raise ConfigError(f"cannot read the key file {error.filename}: {error.strerror}") from error
        except KeyFileError as error:
            raise ConfigError(f"bad key file {error}") from error
        return ring

    def _informing(self, name: str, informers: Informers) -> Part:
        """A part that runs informers.  An informer retries by itself, so its last error is shown as the part's."""
        return self.supervisor.part(name, at_once(informers.run), lambda: informers.problem)

    def _control(self, authority: Authority, *, shared: bool) -> list[asyncio.Task[None]]:
        """Start the controllers.  Of several servers on a shared store, only the elected leader runs them."""
        if not self.components & {"controllers", "discovery"}:
            return []
        settings = self.config.election
        if not shared or not settings.enabled:
            return [self._spawn("controllers", self.supervisor.run(*self._controllers(self.informers, authority)))]
        identity = settings.identity or f"{_host_name()}_{os.getpid()}_{secrets.token_hex(4)}"

        async def lead() -> None:
            # A new leader lists everything again, to be certain that it sees all that the last leader wrote.
            informers = Informers(self.api.cluster(INFORMERS), metrics=self.metrics)
            async with asyncio.TaskGroup() as tasks:
                informing = tasks.create_task(self._informing("leader-informers", informers).run())
                try:
                    await self.supervisor.run(*self._controllers(informers, authority))
                finally:
                    informing.cancel()  # after the controllers, which may still handle a key

        async def stand() -> None:
            election = LeaderElection(
                self.api.cluster("leader-election"),
                namespace=settings.namespace,
                name=settings.name,
                identity=identity,
                timing=settings.timing,
            )
            await election.run(lead)

        return [self._keep(self.supervisor.part("election", at_once(stand)))]

    def _controllers(self, informers: Informers, authority: Authority) -> list[Part]:
        """The discovery, workload and housekeeping controllers, in parts that fail and start again on their own."""
        parts: list[Part] = []
        certificate = authority.ca_pem.decode()
        if "controllers" in self.components:
            around = self.config.surroundings
            if "surroundings" not in self.components:
                around = around.bare()
            add = partial(add_housekeeping, cluster_for=self.api.cluster, settings=around, authority=certificate)
            parts.append(self._managed("controllers", informers, add))
            if self.config.profile == "full":
                identity = partial(
                    add_identity,
                    cluster_for=self.api.cluster,
                    issue=self.api.accounts.issue_legacy,
                    sign=authority.sign,
                    authority=certificate,
                )
                parts.append(self._managed("identity", informers, identity))
            parts.append(self.supervisor.part("node-ports", at_once(self._repair_ports)))
        if "discovery" in self.components:
            from seamark.controllers.discovery.discovery import add_discovery

            settings = self.config.discovery
            cluster = self.api.cluster("endpoint-controllers")
            discovery = partial(add_discovery, cluster=cluster, which=settings.controllers, settings=settings)
            parts.append(self._managed("discovery", informers, discovery))
        if "nodes" in self.components and (self.config.nodes.count or self.api.cache.of(NODES).entries):
            parts.append(self._managed("nodes", informers, self._add_nodes))
        if "controllers" in self.components:
            # Last, to share the informers of the others.
            clean = partial(add_cleaning, cluster_for=self.api.cluster, kinds=self.api.kinds)
            parts.append(self._managed("cleaning", informers, clean))
        return parts

    def _managed(self, name: str, informers: Informers, add: Callable[[Manager], asyncio.Event | None]) -> Part:
        """A part that runs controllers.  ``add`` adds them to a manager, and may return when they are ready."""

        async def manage(started: Started) -> None:
            manager = Manager(informers, metrics=self.metrics)
            ready = add(manager) or manager.ready
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(manager.work(), name=name)
                await ready.wait()
                started()

        return self.supervisor.part(name, manage)

    def _add_nodes(self, manager: Manager) -> asyncio.Event | None:
        from seamark.nodes.simulated.simulation import add_nodes

        simulation = add_nodes(manager, self.api.cluster("nodes"), self.config.nodes)
        return None if simulation is None else simulation.ready

    async def _repair_ports(self) -> None:
        name = "portallocator-repair-controller"
        recorder = EventRecorder(self.api.cluster(name), component=name)
        try:
            await self.api.port_repair(recorder).run()
        finally:
            await recorder.stop()

    def _answer_names(self) -> Part:
        """The DNS server, which reads this cluster's state.  Its sockets are opened here, for its first start."""
        from seamark.dns.server import DnsServer, ListenError, bind

        config = self.config.dns
        try:
            opened = [bind(config.listen)]
        except ListenError as error:
            raise StartError(f"{error}; choose another with {_which(error.__cause__, 'dns')}") from error
        self.dns_addresses = [udp.getsockname()[:2] for udp, _ in opened[0]]

        async def answer(started: Started) -> None:
            pairs = opened.pop() if opened else bind([_shown(host, port) for host, port in self.dns_addresses])
            dns = DnsServer(config, self.api.cluster("dns"), informers=self.informers, registry=self.metrics)
            async with dns.running(pairs):
                await dns.synced()
                started()
                await asyncio.Event().wait()

        return self.supervisor.part("dns", answer)

    def _forward(self) -> Part:
        """The userspace proxy, which serves node ports on loopback.

        Nothing answers at the address of a simulated Pod, so connections to one are refused at once.
        """
        from seamark.proxy.feed import RouteFeed
        from seamark.proxy.userspace.engine import Problem, UserspaceEngine
        from seamark.proxy.userspace.events import COMPONENT, ProblemEvents
        from seamark.rules.routing.surroundings import Surroundings, ThisNode

        settings = self.config.userspace
        silent = self.config.nodes.pod_ranges if "nodes" in self.components and self.config.nodes.count else ()

        async def forward(started: Started) -> None:
            events = ProblemEvents(self.api.cluster(COMPONENT), self.informers)

            def report(problem: Problem | None) -> None:
                if problem is not None:
                    events.record(problem)
                self._tell()

            self.proxy = UserspaceEngine(
                settings,
                node_ports_at=settings.node_ports_at,
                silent=silent,
                take_addresses=False,
                report=report,
                metrics=self.metrics,
            )
            feed = RouteFeed(self.informers, self.proxy, Surroundings(ThisNode("")), metrics=self.metrics)
            try:
                await feed.run(started)
            finally:
                self.proxy = None
                await events.stop()

        return self.supervisor.part("proxy", forward)

    async def _listen(self, authority: Authority) -> list[asyncio.Task[None]]:
        host, port = self.config.api.host, self.config.api.port
        plain = self.config.api.plain_http
        with _own_files(self.data_dir):
            tls = None if plain else authority.tls()
        try:
            listener = await self.api.listen(host, port, tls)
        except OSError as error:
            # The system's message only: the event loop's message would repeat the address.
            reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or error
            where = _shown(host, port)
            raise StartError(
                f"cannot listen on {where}: {reason}; choose another with {_which(error, 'api')}"
            ) from error
        self.url = listener.url
        ca = None if plain else authority.ca_pem
        text = kubeconfig(server=self.url, ca=ca, token=authority.admin_token)
        with _own_files(self.data_dir):
            write_private(self.kubeconfig_path, text.encode())
        if tls is None:
            return []
        renew = partial(authority.keep_fresh, tls, self._server_names())
        return [self._keep(self.supervisor.part("certificate", at_once(renew)))]

    def _serve(self, cluster: Any) -> list[asyncio.Task[None]]:
        listener = self.api.listener
        assert listener is not None
        address = self.config.api.advertise or bootstrap.advertised_address(self.config.api.host)
        network = self.config.network
        services = [bootstrap.api_service(network, address, listener.address[1])]
        if self.config.profile == "full" and self.dns_addresses:
            host, port = self.dns_addresses[0]
            services.append(bootstrap.dns_service(network, bootstrap.advertised_address(host), port))
        own = partial(bootstrap.keep_own_services, cluster, services)
        return [
            self._keep(self.supervisor.part("connections", at_once(listener.sweep))),
            self._keep(self.supervisor.part("own-services", at_once(own))),
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
            dns=tuple(_shown(host, port) for host, port in self.dns_addresses),
            cluster_domain=self.config.cluster_domain,
            store=self.config.store_url,
            nodes=self.config.nodes.count if "nodes" in self.components else 0,
            node_ports=self.proxy.node_ports_at if self.proxy is not None else (),
            not_served=tuple(str(each) for each in self.proxy.problems.values()) if self.proxy is not None else (),
            log=self.config.log.file,
        )

    def _server_names(self) -> list[str]:
        """Every name and address that clients may use for this server; the certificate carries them."""
        first = [address_in(cidr, 1) for cidr in self.config.network.ranges]
        names = ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        names += [f"kubernetes.default.svc.{self.config.cluster_domain}", *first]
        names += [n for n in (self.config.api.host, self.config.api.advertise, _host_name()) if _nameable(n)]
        return list(dict.fromkeys(names))


async def _opened(url: str) -> Store:
    try:
        store = open_store(url)
        await store.open()
    except StoreError as error:
        raise StartError(str(error)) from error
    return store


@contextmanager
def _own_files(directory: Path) -> Iterator[None]:
    """Turn errors about files of the data directory into a :class:`StartError`."""
    try:
        yield
    except (ValueError, ssl.SSLError) as error:
        reason = " ".join(str(error).split())
        raise StartError(
            f"the certificates in {directory / 'pki'} cannot be used ({reason}); "
            "restore them, or remove them to have new ones made"
        ) from error
    except OSError as error:
        name = error.filename2 or error.filename or directory
        raise StartError(f"cannot use {name}: {error.strerror}; see --data-dir") from error


def _which(error: BaseException | None, part: str) -> str:
    """The flag that changes an address that cannot be used."""
    port = isinstance(error, OSError) and error.errno in (errno.EADDRINUSE, errno.EACCES)
    return f"--{part}-{'port' if port else 'host'}"


def _audit_log(settings: ApiSettings, metrics: Registry) -> AuditLog | None:
    if not settings.audit_log:
        return None
    try:
        chosen = policy.read(Path(settings.audit_policy)) if settings.audit_policy else policy.DEFAULT
        return AuditLog(Path(settings.audit_log), policy=chosen, clock=SYSTEM_CLOCK, metrics=metrics)
    except policy.PolicyError as error:
        raise ConfigError(str(error)) from error
    except OSError as error:
        raise ConfigError(f"cannot write the audit log {settings.audit_log}: {error.strerror}") from error


def _fixed_tokens(authority: Authority, file: str) -> FixedTokens:
    """The admin's token, and those of a token file."""
    admin = User("seamark-admin", (MASTERS, AUTHENTICATED))
    files = [authority.admin_token_path, *([Path(file)] if file else [])]

    def read() -> dict[str, User]:
        return {authority.admin_token: admin} | (read_token_file(Path(file)) if file else {})

    try:
        return FixedTokens(read, files)
    except OSError as error:
        raise ConfigError(f"cannot read the token file {error.filename}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"bad token file: {error}") from error


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _host_name() -> str:
    return socket.gethostname().lower()


def _nameable(name: str) -> bool:
    """Whether a certificate can contain this name."""
    if not name or name in ("0.0.0.0", "::"):
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name.isascii() and not name.startswith("-") and "_" not in name
    return True


async def run(config: Config, components: Collection[Component], ready: Callable[[Daemon], Awaitable[None]]) -> None:
    """Run until SIGTERM or SIGINT; ``ready`` is called once everything is up."""
    daemon = Daemon(config, components)
    with _signals(daemon) as is_up:
        try:
            async with daemon.running():
                is_up()
                await ready(daemon)
                await daemon.wait()
        except BaseExceptionGroup as group:
            # Report the first cause, not the exception group around it: the cause is what helps the user.
            cause = first_cause(group)
            if isinstance(cause, StoreError | ApiError | DirectoryError):  # store or disk failed during the start
                raise StartError(str(cause)) from group
            names = getattr(cause, "__notes__", ())  # the name of the part that failed, see `note_name`
            if not names or not isinstance(cause, Exception):
                raise cause from group
            log.error("%s failed", names[0], exc_info=cause)
            raise PartFailed(f"{names[0]} failed: {type(cause).__name__}: {' '.join(str(cause).split())}") from group
        except DirectoryError as error:
            raise StartError(str(error)) from error


@contextmanager
def _signals(daemon: Daemon) -> Iterator[Callable[[], None]]:
    """SIGTERM and SIGINT stop a running daemon in order, and interrupt one that is still starting.

    Yields a function to call once the daemon is running.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    starting = True
    told: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        told.append(number)
        daemon.stop()
        if starting:
            task.cancel()

    def is_up() -> None:
        nonlocal starting
        starting = False

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end, number)
    try:
        yield is_up
    except asyncio.CancelledError:
        if not told:
            raise
        if told[0] is signal.SIGINT:
            raise KeyboardInterrupt from None
        raise StartError("told to stop before it was ready") from None
