"""The API server put together: store → cache → operations → HTTP, and clusters for components of this process.

Everything is built here and handed what it needs; nothing looks for its collaborators.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from seamark.access.events import EventRecorder
from seamark.api.admission import PLAIN, Admission, Others, Plugins, before_quotas
from seamark.api.aggregation.clusters import Elsewhere
from seamark.api.aggregation.following import Aggregation
from seamark.api.aggregation.front_proxy import FrontProxy
from seamark.api.aggregation.reaching import Servers
from seamark.api.allocation.repair import PortRepair
from seamark.api.allocation.reserve import Reservations
from seamark.api.audit.log import AuditLog
from seamark.api.authentication import Authenticator, FixedTokens, KeptCertificate
from seamark.api.authorization import Authorizer, GroupAuthorizer, User, component
from seamark.api.custom import Definitions
from seamark.api.delete import Deleter
from seamark.api.http.application import Application
from seamark.api.http.auditing import Auditing
from seamark.api.http.documents import Documents, Readiness, Report
from seamark.api.http.issuer import CONFIGURATION, KEYS, IssuerDiscovery
from seamark.api.http.levels import Levels
from seamark.api.http.verbs import Verbs
from seamark.api.http.watches.opening import Watches
from seamark.api.http.wire.listener import Listener
from seamark.api.http.wire.unread import Unread
from seamark.api.identity.keys import KeyRing
from seamark.api.identity.signers import SignerRights
from seamark.api.identity.tokens import ServiceAccountTokens
from seamark.api.local import LocalCluster
from seamark.api.operations import Operations
from seamark.api.outgoing.calling import Outgoing
from seamark.api.policies.mutating import MutatingPolicies
from seamark.api.policies.plugin import ValidatingPolicies
from seamark.api.policies.rights import ParameterRights
from seamark.api.posted import Posted
from seamark.api.rbac.authorizer import RbacAuthorizer
from seamark.api.rbac.components import field_manager, user_of
from seamark.api.rbac.escalation import NoEscalation
from seamark.api.settings import DEFAULT_TOKENS, WATCH_BYTES, ServiceNetwork, TokenSettings
from seamark.api.state.cache import Cache
from seamark.api.state.read import Reader
from seamark.api.streaming.connecting import Connecting
from seamark.api.turns import Turns
from seamark.api.webhooks.asking import Asking
from seamark.api.webhooks.plugin import Webhooks
from seamark.api.write.change import Changes
from seamark.api.write.create import Creations
from seamark.api.write.path import WritePath
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.haste import Patience
from seamark.kinds.admission import Plugin
from seamark.kinds.autoscaling.usage import NODE_METRICS, POD_METRICS
from seamark.kinds.core.componentstatus import component_statuses
from seamark.kinds.kind import Kind
from seamark.kinds.resource import COMPONENT_STATUSES, Resource
from seamark.kinds.table import KINDS, NEVER_STORED, Kinds
from seamark.metrics import Registry
from seamark.runtime.supervisor import Supervisor, at_once
from seamark.store.metered import MeteredStore
from seamark.store.protocol import Store

if TYPE_CHECKING:
    from seamark.errors import Object
    from seamark.kinds.extensions.custom import CustomKind


class ApiServer:
    """One API server over one store: ``await load()``, run ``follow()`` for as long as it lives, then ``listen()``."""

    def __init__(
        self,
        store: Store,
        *,
        network: ServiceNetwork,
        tokens: Mapping[str, User] | FixedTokens,
        metrics: Registry,
        authorizer: Authorizer | None = None,
        rbac: bool = False,
        keys: KeyRing | None = None,
        token_settings: TokenSettings = DEFAULT_TOKENS,
        max_in_flight: int = 128,
        watch_bytes: int = WATCH_BYTES,
        readiness: Readiness = dict,
        max_connections: int = 10_000,
        audit: AuditLog | None = None,
        kinds: Iterable[Kind] = KINDS,
        plugins: Sequence[Plugin] = PLAIN,
        clock: Clock = SYSTEM_CLOCK,
        chance: random.Random | None = None,
        front_proxy: FrontProxy | None = None,
        admin_certificate: KeptCertificate | None = None,
        report: Callable[[], Awaitable[Report]] | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        """``readiness`` says for ``/readyz`` what is wrong with the parts that run beside this server.

        ``keys`` sign the tokens of ServiceAccounts; without, a key is made that ends with this server.  ``plugins`` are
        the steps of admission, in their order.  With ``rbac``, roles say what users may do, else their groups.
        By ``front_proxy``, aggregated servers know this one.  ``report`` asks all processes that serve together.
        ``supervisor`` keeps running what this server does beside requests.
        """
        stored = tuple(kinds)
        self._store = MeteredStore(store, metrics, clock=clock)
        self._metrics = metrics
        self._network = network
        self._max_connections = max_connections
        self._clock = clock
        self._supervisor = supervisor or Supervisor(clock=clock, metrics=metrics)
        self.kinds = Kinds(chain(stored, NEVER_STORED))
        self.cache = Cache(self._store, stored, event_bytes=watch_bytes // 4, clock=clock)
        self._levels = Levels(self.cache)
        self._rbac = RbacAuthorizer(self.cache) if rbac else None
        self._authorizer = authorizer or self._rbac or GroupAuthorizer()
        self.accounts = ServiceAccountTokens(self.cache, keys or KeyRing(), token_settings, clock)
        fixed = tokens if isinstance(tokens, FixedTokens) else FixedTokens(lambda: tokens)
        self.authenticator = Authenticator(fixed, self.accounts, admin_certificate)
        others = Others(self.cache)
        self.connecting = Connecting(others, clock)
        self.outgoing = Outgoing(others, lambda: self.connecting.pods)
        computed = {
            COMPONENT_STATUSES: lambda: component_statuses({"store": self._check_store(), **readiness()}),
        }
        self._reader = Reader(self.cache, self._store, computed)
        cut = metrics.counter(
            "seamark_api_watches_cut_total", "Watches cut off, because too many clients did not read."
        )
        self.watches = Watches(self._reader, Unread(watch_bytes - watch_bytes // 4, cut=cut.add))
        self._patience = Patience()
        self._write(Admission(self.cache, self._steps(plugins)), chance or random.Random())
        self.aggregation = self._aggregation(Servers(self.outgoing, others, front_proxy))
        self.application = self._application(readiness, report, max_in_flight, audit)
        self.listener: Listener | None = None
        self._changing_kinds = asyncio.Lock()
        self._expose(metrics)

    def _write(self, admission: Admission, chance: random.Random) -> None:
        """Put together what writes: the operations, and the definitions, which write their own status."""
        self.kinds.on_change(admission.kind_changed)
        reservations = Reservations(self.cache, self._network, chance, self._clock)
        path = WritePath(self.cache, self._store, admission, reservations, self._patience, Turns())
        changes = Changes(path)
        deleter = Deleter(self.cache, self._store, reservations, admission)
        self.definitions = Definitions(
            self.cache,
            changes,
            deleter,
            self._clock,
            load=self._load_kind,
            show=self._show_kind,
            remove=self.remove_kind,
            prepare=self._convert_by_webhook,
        )
        posted = Posted(
            kinds=self.kinds,
            cache=self.cache,
            reader=self._reader,
            changes=changes,
            deleter=deleter,
            admission=admission,
            authorizer=self._authorizer,
            authenticator=self.authenticator,
        )
        self.operations = Operations(
            kinds=self.kinds,
            cache=self.cache,
            store=self._store,
            reader=self._reader,
            creations=Creations(path, chance),
            changes=changes,
            deleter=deleter,
            admission=admission,
            authorizer=self._authorizer,
            posted=posted,
        )

    def _aggregation(self, servers: Servers) -> Aggregation:
        user = component("kube-aggregator")
        cluster = LocalCluster(self.operations, user=user, manager="kube-apiserver", clock=self._clock)
        return Aggregation(self.cache, self.kinds, servers, cluster, self._clock)

    def _application(
        self,
        readiness: Readiness,
        report: Callable[[], Awaitable[Report]] | None,
        max_in_flight: int,
        audit: AuditLog | None,
    ) -> Application:
        issuer = IssuerDiscovery(self.accounts, self._url)
        documents = Documents(
            kinds=self.kinds,
            metrics=self._metrics,
            checks={"store": self._check_store},
            readiness=readiness,
            pages={CONFIGURATION: issuer.configuration, KEYS: issuer.keys},
            elsewhere=self.aggregation,
            report=report,
        )
        return Application(
            operations=self.operations,
            verbs=Verbs(self.operations, self.watches, self.connecting),
            patience=self._patience,
            documents=documents,
            authenticator=self.authenticator,
            authorizer=self._authorizer,
            levels=self._levels,
            metrics=self._metrics,
            max_in_flight=max_in_flight,
            clock=self._clock,
            aggregation=self.aggregation,
            definitions=self.definitions,
            auditing=None if audit is None else Auditing(audit),
        )

    def _steps(self, plugins: Sequence[Plugin]) -> Plugins:
        """The steps of admission with those that need this server, in the order in which Kubernetes has them."""
        authorizer = self._authorizer
        rights: list[Plugin] = [] if self._rbac is None else [NoEscalation(self._rbac)]
        rights += [SignerRights(authorizer), ParameterRights(self.kinds, authorizer)]
        return before_quotas(
            (*(plugin.measured(self._metrics) for plugin in plugins), *rights),
            MutatingPolicies(self.cache, self.kinds, authorizer),
            ValidatingPolicies(self.cache, self.kinds, authorizer),
            Webhooks(self.cache, self.kinds, Asking(self.outgoing, self._metrics), authorizer),
        )

    def _expose(self, metrics: Registry) -> None:
        """Metrics that are counted when they are asked for."""
        metrics.measured("seamark_api_watches", "Open watches.", lambda: float(len(self.watches.open)))
        metrics.measured(
            "seamark_api_watch_bytes",
            "Bytes held for watches: recent events, and what clients have not read.",
            lambda: float(self.cache.room.used + self.watches.unread.size),
        )
        metrics.measured(
            "seamark_store_revision", "The revision the cache has seen.", lambda: float(self.cache.revision)
        )
        metrics.measured(
            "seamark_api_objects",
            "Objects in memory, all kinds.",
            lambda: float(sum(len(c.entries) for c in self.cache.collections)),
        )

    def _url(self) -> str:
        return "" if self.listener is None else self.listener.url

    def _check_store(self) -> str | None:
        return self._store.trouble or (None if self.cache.lost is None else str(self.cache.lost))

    # --- kinds that come and go --------------------------------------------------------------------

    async def add_kind(self, kind: Kind) -> None:
        """Serve a kind from now on, with the objects of it that are in the store.

        It replaces a kind of the same group, version and plural.  Watches of that end, so that clients watch on by the
        new rules.
        """
        await self._load_kind(kind)
        self._show_kind(kind)

    async def _load_kind(self, kind: Kind) -> None:
        """Read the objects of a kind that is to be served."""
        async with self._changing_kinds:
            self.kinds.check(kind)
            await self.cache.add(kind)

    def _show_kind(self, kind: Kind) -> None:
        """Serve a kind whose objects are read."""
        self.cache.of(kind.resource).end_watches()
        self.kinds.add(kind)

    def _convert_by_webhook(self, kind: CustomKind, definition: Object) -> None:
        """Let a webhook convert the objects of a custom kind, if its definition says so."""
        if definition["spec"]["conversion"]["strategy"] == "Webhook":
            from seamark.api.conversion.webhook import convert_by_webhook

            convert_by_webhook(kind, definition, self.outgoing, self._metrics)

    async def remove_kind(self, resource: Resource) -> None:
        """Serve a kind no longer: its watches end and its paths answer 404.

        Its objects stay in the store.  If they are to be gone for good, delete them while the kind is still served, so
        that watchers see them go.
        """
        async with self._changing_kinds:
            kind = self.kinds.by_plural(resource.group, resource.version, resource.plural)
            if kind is not None:
                self.kinds.remove(resource)
                self.cache.remove(kind)

    async def measure(self) -> None:
        """Serve ``metrics.k8s.io``, because Pods run here and are measured."""
        for kind, compute in (
            (POD_METRICS, self.connecting.pod_metrics),
            (NODE_METRICS, self.connecting.node_metrics),
        ):
            self._reader.compute(kind.resource, compute)
            await self.add_kind(kind)

    # --- access --------------------------------------------------------------------------------------

    def cluster(self, name: str, *, user: User | None = None) -> LocalCluster:
        """The cluster for a component of this process, which acts as ``user``.

        Without a user it is the one that roles are for (:mod:`seamark.api.rbac.components`); where there are none, it
        may do everything.
        """
        if user is None:
            user = component(name) if self._rbac is None else user_of(name)
        elsewhere = Elsewhere(self.aggregation, self._authorizer, user)
        return LocalCluster(
            self.operations, user=user, manager=field_manager(name), clock=self._clock, elsewhere=elsewhere
        )

    def port_repair(self, recorder: EventRecorder) -> PortRepair:
        """Repairs the reservations of node ports; if servers share a store, one of them is enough to run it."""
        return PortRepair(self.cache, self._store, self._network.node_ports, recorder, clock=self._clock)

    async def load(self) -> None:
        """Read the state; the store must be open."""
        await self.cache.load()
        self._levels.load()
        if self._rbac is not None:
            self._rbac.load()

    async def follow(self) -> None:
        """Keep the cache current, also when the store goes away and returns.

        Ends when the store is closed, and with an error if the store was replaced by an older state of it.
        """
        part = self._supervisor.part
        parts = self._supervisor.run(
            part("store-checks", at_once(self._store.mend)),
            part("definitions", at_once(self.definitions.run)),
            part("aggregation", at_once(self.aggregation.run)),
        )
        beside = asyncio.create_task(parts, name="beside the cache")
        try:
            await self.cache.follow()
        finally:
            beside.cancel()

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None) -> Listener:
        self.listener = self._listener(tls)
        await self.listener.open(host, port)
        return self.listener

    def take_connections(self, address: tuple[str, int], tls: ssl.SSLContext | None) -> Listener:
        """Serve connections that another process accepts at this address."""
        self.listener = self._listener(tls)
        self.listener.address = address
        return self.listener

    def _listener(self, tls: ssl.SSLContext | None) -> Listener:
        return Listener(
            self.application,
            tls=tls,
            admit=self.application.admit,
            max_connections=self._max_connections,
            unread=self.watches.unread,
        )

    async def close(self) -> None:
        """Stop accepting, end watches cleanly, finish what is under way."""
        self.watches.end_all()
        self.connecting.tasks.end()
        if self.listener is not None:
            await self.listener.close()
        await self.outgoing.close()
        await asyncio.sleep(0)
