"""Get and list: from memory if the current state is asked for, from the store's history if a past one is."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator, Mapping

import msgspec

from seamark import errors
from seamark.api.call import ListOptions
from seamark.api.state import versions
from seamark.api.state.cache import Cache
from seamark.api.state.collection import Collection
from seamark.api.state.entries import Entry, entry_of, prefix_of
from seamark.api.state.select import Selection
from seamark.api.state.versions import Continue
from seamark.errors import Object
from seamark.kinds.resource import Resource
from seamark.kinds.values.refusals import missing
from seamark.store.protocol import Compacted, Future, Store, prefix_end

# How long a read waits for a version it may not be older than before giving up, as Kubernetes does.
PATIENCE_SECONDS = 3.0
MAX_REVISION = 2**63 - 1  # what a store can count to
# Rows asked of the store at a time when a selector may drop most of them.
HISTORY_PAGE = 1000

_EXPIRED_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class Page(msgspec.Struct):
    """What a list found: entries in order and the list's metadata."""

    entries: list[Entry]
    listing: Object


# Finds the objects of a kind that is never stored, in the order of their names.
Compute = Callable[[], list[Object]]


class Reader:
    """Reads for every kind."""

    def __init__(self, cache: Cache, store: Store, computed: Mapping[Resource, Compute] | None = None) -> None:
        """``computed`` are the kinds whose objects are found out with each read."""
        self._cache = cache
        self._store = store
        self._computed = dict(computed or {})

    def compute(self, resource: Resource, compute: Compute) -> None:
        """From now on the objects of this kind are found out with each read, too."""
        self._computed[resource] = compute

    def must_wait(self, version: str) -> bool:
        """Whether a read has to wait until memory is fresh enough to answer it."""
        return not self._cache.fresh or (version not in ("", "0") and versions.of_read(version) > self._cache.revision)

    async def wait(self, version: str) -> None:
        """Until memory is as fresh as the read demands."""
        if version == "0":
            return
        asked = versions.of_read(version)
        if not asked:
            await self._cache.freshen()
            return
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._cache.reach(asked)
        except TimeoutError:
            raise self._too_large(asked, self._cache.revision) from None

    @staticmethod
    def _too_large(asked: int, current: int) -> errors.Timeout:
        return errors.Timeout(
            f"Timeout: Too large resource version: {asked}, current: {current}",
            details={},
            causes=[errors.Cause(reason="ResourceVersionTooLarge", message="Too large resource version")],
            retry_after=1,
        )

    def get(self, resource: Resource, namespace: str, name: str) -> Entry:
        entry = self._cache.of(resource).get(f"{namespace}/{name}" if resource.namespaced else name)
        if entry is None and resource in self._computed:
            found_out = self._found_out(resource)
            entry = next((found for found in found_out if (found.namespace, found.name) == (namespace, name)), None)
        if entry is None:
            raise missing(resource, name)
        return entry

    def _found_out(self, resource: Resource) -> Iterator[Entry]:
        for obj in self._computed[resource]():
            name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace", "")
            yield Entry(f"{namespace}/{name}" if namespace else name, namespace, name, 0, msgspec.json.encode(obj)[1:])

    # --- lists -------------------------------------------------------------------------------------

    def weight(self, resource: Resource, namespace: str, limit: int) -> int:
        """About how many bytes a list looks at; ``limit`` is 0 if it has none."""
        collection = self._cache.of(resource)
        if not (every := len(collection.entries)):
            return 0
        count = collection.count(namespace) if namespace else every
        return collection.size * (min(count, limit) if limit else count) // every

    def in_memory(self, selection: Selection, options: ListOptions) -> bool:
        """Whether the current state answers this list (once fresh enough)."""
        if options.continue_:
            token = versions.decode(options.continue_)
            # A token ends with the history, as in Kubernetes, also where nothing has changed since.
            # ``changed`` is never before the version the cache began with, so older tokens go to the store too.
            oldest = max(self._cache.recent_since, self._cache.of(selection.kind.resource).changed)
            return token.rv < 0 or oldest <= token.rv
        return not self._exact(options)

    @staticmethod
    def _exact(options: ListOptions) -> bool:
        # A limited list of a version means exactly that version even without Exact, as before Exact existed.
        return options.match == "Exact" or (
            bool(options.limit) and not options.match and options.version not in ("", "0")
        )

    def page(self, selection: Selection, options: ListOptions) -> Page:
        """From memory."""
        if selection.kind.resource in self._computed:
            found = self._found_out(selection.kind.resource)
            chosen = [
                entry
                for entry in found
                if selection.name in ("", entry.name)
                and selection.namespace in ("", entry.namespace)
                and selection.matches(entry)
            ]
            return Page(chosen, {"resourceVersion": str(self._cache.revision)})
        collection = self._cache.of(selection.kind.resource)
        revision, after = self._cache.revision, ""
        if options.continue_:
            token = versions.decode(options.continue_)
            after = self._after(selection, token)
            if token.rv > 0:
                revision = token.rv
        candidates = self._candidates(collection, selection, after)
        if not options.limit or options.version == "0":  # for version 0, which means any, the limit is ignored
            chosen = list(candidates) if selection.everything else [e for e in candidates if selection.matches(e)]
            return Page(chosen, {"resourceVersion": str(revision)})
        chosen, last = self._take(candidates, selection, options.limit)
        if selection.name:
            left = sum(1 for _ in candidates)
        else:
            left = collection.count(selection.namespace, last) if last else 0
        return Page(chosen, self._listing(selection, revision, last if left else "", left))

    @staticmethod
    def _candidates(collection: Collection, selection: Selection, after: str) -> Iterator[Entry]:
        """Entries behind the path ``after`` of the right namespace and name."""
        if not selection.name:
            return collection.of_namespace(selection.namespace, after)
        if selection.kind.resource.namespaced and not selection.namespace:
            return (e for e in collection.of_namespace("", after) if e.name == selection.name)
        path = f"{selection.namespace}/{selection.name}" if selection.namespace else selection.name
        entry = collection.get(path)
        return iter((entry,) if entry is not None and path > after else ())

    @staticmethod
    def _take(candidates: Iterator[Entry], selection: Selection, limit: int) -> tuple[list[Entry], str]:
        """The first ``limit`` matches and the path of the last entry looked at; "" if the candidates ran out."""
        chosen = list(itertools.islice((e for e in candidates if selection.matches(e)), limit))
        return chosen, chosen[-1].path if len(chosen) == limit else ""

    @staticmethod
    def _after(selection: Selection, token: Continue) -> str:
        start = token.start.removesuffix("\0")
        return f"{selection.namespace}/{start}" if selection.namespace else start

    @staticmethod
    def _listing(selection: Selection, revision: int, last: str, left: int) -> Object:
        listing: Object = {"resourceVersion": str(revision)}
        if last:
            start = last.removeprefix(f"{selection.namespace}/") if selection.namespace else last
            listing["continue"] = Continue(versions.VERSION, revision, start + "\0").encode()
            if selection.everything:
                listing["remainingItemCount"] = left
        return listing

    async def past_page(self, selection: Selection, options: ListOptions) -> Page:
        """From the store's history."""
        token = versions.decode(options.continue_) if options.continue_ else None
        revision = token.rv if token else versions.of_read(options.version)
        if revision > MAX_REVISION:
            raise self._too_large(revision, self._cache.revision)
        prefix = prefix_of(selection.kind.stored_as or selection.kind.resource)
        area = prefix + f"{selection.namespace}/" if selection.namespace else prefix
        start = prefix + self._after(selection, token) + "\0" if token else area
        try:
            return await self._page_past(selection, options, revision, prefix, start, prefix_end(area))
        except Compacted as error:
            if token is None:
                raise errors.Expired("The resourceVersion for the provided list is too old.") from error
            again = Continue(versions.VERSION, -1, token.start).encode()
            raise errors.Expired(_EXPIRED_CONTINUE, metadata={"continue": again}) from error
        except Future as error:
            raise self._too_large(error.asked, error.current) from error

    async def _page_past(
        self, selection: Selection, options: ListOptions, revision: int, prefix: str, start: str, end: str
    ) -> Page:
        chosen: list[Entry] = []
        while True:
            size = HISTORY_PAGE if not options.limit or not selection.everything else options.limit - len(chosen)
            page = await self._store.read(start, end, revision=revision, limit=size)
            for position, row in enumerate(page.rows, 1):
                entry = entry_of(row.key[len(prefix) :], row.value, row.revision)
                if selection.matches(entry) and (not selection.name or entry.name == selection.name):
                    chosen.append(entry)
                    if len(chosen) == options.limit:
                        more = page.more or position < len(page.rows)
                        return Page(chosen, self._past_listing(selection, revision, entry.path if more else ""))
            if not page.more:
                return Page(chosen, {"resourceVersion": str(revision)})
            start = page.rows[-1].key + "\0"

    def _past_listing(self, selection: Selection, revision: int, last: str) -> Object:
        """Counts what is left in the present state: counting in the past would cost as much as reading it."""
        left = self._cache.of(selection.kind.resource).count(selection.namespace, last) if last else 0
        return self._listing(selection, revision, last, max(1, left))
