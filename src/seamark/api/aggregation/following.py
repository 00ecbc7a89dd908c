"""Follows the APIServices: which version of which group another server answers for, and whether that is available.

Every server does this by itself.  Servers that share a store come to the same result, and a write that another server
has already made changes nothing.  As long as there is no such APIService, nothing is asked and nothing is repeated.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.api.aggregation.backends import Backend, Foreign, backend_of, with_condition
from seamark.api.aggregation.reaching import Servers
from seamark.api.authorization import User
from seamark.api.http.wire.messages import Request, Response, Streaming
from seamark.api.state.cache import Cache
from seamark.api.state.entries import Event
from seamark.clock import Clock
from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.registration.apiservice import AUTOMANAGED_LABEL, CUSTOM_PRIORITIES
from seamark.kinds.resource import API_SERVICES, ENDPOINT_SLICES, SERVICES, Resource
from seamark.kinds.table import Kinds
from seamark.kinds.values import times
from seamark.kinds.wellknown import SERVICE_NAME_LABEL
from seamark.store.protocol import StoreError

_log = logging.getLogger(__name__)

CHECK_SECONDS = 30.0  # between two looks at servers that are well
RETRY_SECONDS = 1.0  # after the first failure; doubled until it is CHECK_SECONDS

Version = tuple[str, str]


class _Noticing:
    """A watcher that says that something changed that matters."""

    def __init__(self, notice: Callable[[], None], service: str = "") -> None:
        self._notice = notice
        self._service = service  # whose EndpointSlices matter; "" for everything

    def offer(self, event: Event) -> None:
        if not self._service or (event.entry.labels or {}).get(SERVICE_NAME_LABEL) == self._service:
            self._notice()

    def flush(self, revision: int) -> None:
        return

    def end(self) -> None:
        self._notice()


class Aggregation:
    """The aggregated servers of one cluster; :meth:`run` for as long as this server lives."""

    def __init__(self, cache: Cache, kinds: Kinds, servers: Servers, cluster: Cluster, clock: Clock) -> None:
        self._cache = cache
        self._kinds = kinds
        self.servers = servers
        self._cluster = cluster
        self._clock = clock
        self._news = asyncio.Event()
        self._retry = RETRY_SECONDS
        self.backends: dict[Version, Backend] = {}
        self._found: dict[Version, Foreign] = {}
        self.revision = 0  # grows whenever :attr:`foreign` changes
        self._waits = asyncio.Event()  # set while there is nothing to do

    # --- for requests --------------------------------------------------------------------------------

    def backend_of(self, path: str) -> Backend | None:
        """The server that answers for a path, if it is another one: objects, discovery and OpenAPI of its version."""
        if not self.backends:
            return None
        root, _, rest = path.removeprefix("/openapi/v3").removeprefix("/").partition("/")
        if root != "apis":
            return None
        group, _, rest = rest.partition("/")
        return self.backends.get((group, rest.partition("/")[0]))

    async def relay(self, backend: Backend, request: Request, user: User) -> Response | Streaming:
        from seamark.api.aggregation.relaying import relay

        return await relay(self.servers, backend, request, user)

    @property
    def foreign(self) -> list[Foreign]:
        """What the other servers serve."""
        return list(self._found.values())

    def resources(self) -> dict[Resource, list[str]]:
        """The kinds of the other servers, each with its verbs."""
        return {
            Resource(
                each.group,
                each.version,
                entry["resource"],
                (entry.get("responseKind") or {}).get("kind", ""),
                namespaced=entry.get("scope") == "Namespaced",
            ): entry.get("verbs") or []
            for each in self._found.values()
            for entry in each.resources
            if "resource" in entry
        }

    def unknown(self) -> list[str]:
        """The versions of groups whose servers cannot say now what they serve."""
        return [
            f"{group}/{version}"
            for group, version in self.backends
            if (found := self._found.get((group, version))) is None or found.stale
        ]

    # --- following -----------------------------------------------------------------------------------

    async def run(self) -> None:
        stop = self._kinds.on_change(self._kinds_changed)
        try:
            while True:
                self._news.clear()
                with self._subscribed():
                    try:
                        seconds = await self._look()
                    except (errors.ApiError, StoreError) as error:
                        _log.warning("APIServices could not be kept right: %s", error)
                        seconds = self._retry
                    except Exception:  # a mistake of ours with one server must not end the service of all others
                        _log.exception("APIServices could not be followed")
                        seconds = self._retry
                    if not self._news.is_set():
                        self._waits.set()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._news.wait(), seconds)
                    self._waits.clear()
        finally:
            stop()

    async def settled(self) -> None:
        """Return once all that was written before has been looked at."""
        if self._news.is_set():
            self._waits.clear()
        await self._waits.wait()

    def _kinds_changed(self, old: Kind | None, new: Kind | None) -> None:
        self._news.set()

    @contextlib.contextmanager
    def _subscribed(self) -> Iterator[None]:
        """Told of changes of the APIServices, and of the Services behind them."""
        notice = self._news.set
        stops = [self._cache.of(API_SERVICES).subscribe(_Noticing(notice), "", "")]
        for backend in self.backends.values():
            where = backend.client.service
            assert where is not None, "a backend has a Service"
            service = self._cache.of(SERVICES)
            stops.append(service.subscribe(_Noticing(notice), where.namespace, where.name))
            slices = self._cache.of(ENDPOINT_SLICES)
            stops.append(slices.subscribe(_Noticing(notice, where.name), where.namespace, ""))
        try:
            yield
        finally:
            for stop in stops:
                stop()

    async def _look(self) -> float | None:
        """Look at everything once; returns after how many seconds to look again, None if only news matter."""
        entries = [entry.decode() for entry in self._cache.of(API_SERVICES).entries.values()]
        await self._register_custom({entry["metadata"]["name"]: entry for entry in entries})
        known = set(self.backends)
        self._take(entries)
        if not self.backends:
            return None
        if set(self.backends) != known:
            self._news.set()  # once more, now told of the changes of their Services
        well = await asyncio.gather(
            *(self._check(entry, backend) for entry in entries if (backend := backend_of(entry)) is not None)
        )
        self._retry = CHECK_SECONDS if all(well) else min(CHECK_SECONDS, self._retry * 2)
        waits = self._retry
        if all(well):
            self._retry = RETRY_SECONDS
        return waits

    def _take(self, entries: Iterable[Object]) -> None:
        found = [backend for entry in entries if (backend := backend_of(entry)) is not None]
        self.backends = {(backend.group, backend.version): backend for backend in found}
        for gone in set(self._found) - set(self.backends):
            del self._found[gone]
            self.revision += 1

    async def _check(self, apiservice: Object, backend: Backend) -> bool:
        """Write down whether a server is available, and learn what it serves."""
        from seamark.api.aggregation.asking import checked, discovered

        condition = await checked(self.servers, backend)
        status = with_condition(apiservice, condition, times.text(self._clock.time()))
        if status is not None:
            changed = {**apiservice, "kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1", "status": status}
            with contextlib.suppress(errors.NotFound, errors.Conflict):  # which are news
                await self._cluster.update(API_SERVICES, changed, subresource="status", as_=Receipt)
        key = (backend.group, backend.version)
        before = self._found.get(key)
        found = await discovered(self.servers, replace(backend, available=condition.status == "True"), before)
        if found != before and key in self.backends:
            self._found[key] = found
            self.revision += 1
        return condition.status == "True"

    # --- the groups of custom resources ----------------------------------------------------------------

    async def _register_custom(self, entries: dict[str, Object]) -> None:
        """Give every version of a group of custom resources its APIService, and take it away with the last of them."""
        wanted = {_name(kind.resource): kind.resource for kind in self._kinds if not kind.built_in}
        kept = {name for name, entry in entries.items() if _labels(entry).get(AUTOMANAGED_LABEL) == "true"}
        for name, resource in wanted.items():
            if name not in entries:
                with contextlib.suppress(errors.AlreadyExists):
                    await self._cluster.create(API_SERVICES, _automatic(name, resource), as_=Receipt)
        for name in kept - set(wanted):
            with contextlib.suppress(errors.NotFound):
                await self._cluster.delete(API_SERVICES, name)


def _name(resource: Resource) -> str:
    return f"{resource.version}.{resource.group}"


def _labels(obj: Object) -> Object:
    return obj["metadata"].get("labels") or {}


def _automatic(name: str, resource: Resource) -> Object:
    group_priority, version_priority = CUSTOM_PRIORITIES
    spec: Object = {"groupPriorityMinimum": group_priority, "versionPriority": version_priority}
    spec |= {"group": resource.group, "version": resource.version}
    return {"metadata": {"name": name, "labels": {AUTOMANAGED_LABEL: "true"}}, "spec": spec}
