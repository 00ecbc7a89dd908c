"""Which events a watch delivers, beginning where; and a watch for readers in this process.

A watch begins with what is there, with the events kept in memory, or (if it begins further back) with the store's log.
:mod:`seamark.api.http.watches` sends the same events to clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import islice

import msgspec

from seamark import errors
from seamark.api.call import ListOptions
from seamark.api.state.cache import Cache
from seamark.api.state.collection import Collection
from seamark.api.state.entries import Entry, Event, entry_of, restamped
from seamark.api.state.failures import unwatchable
from seamark.api.state.forms import converted
from seamark.api.state.select import Selection
from seamark.store.protocol import Change, Store, StoreError

# How many events a reader in this process takes from the recent ones at a time.
AT_ONCE = 256


class Watching(msgspec.Struct, frozen=True):
    """A watch that was accepted, with what is needed to carry it out.

    ``since`` is the version to begin after: None to begin with what is there, -1 to begin with whatever comes next.
    """

    cache: Cache
    store: Store
    selection: Selection
    options: ListOptions
    since: int | None

    @property
    def collection(self) -> Collection:
        return self.cache.of(self.selection.kind.resource)

    def concerns(self, event: Event) -> bool:
        """Whether an event is about the namespace and name that are watched; see :func:`seen` for the rest."""
        selection, entry = self.selection, event.entry
        return selection.namespace in ("", entry.namespace) and selection.name in ("", entry.name)

    def view(self, event: Event) -> tuple[str, Entry] | None:
        """A past event as the watcher sees it, if it does."""
        return seen(event, self.selection) if self.concerns(event) else None

    @property
    def converts(self) -> bool:
        """Whether a webhook may have to be asked before events can be seen."""
        return self.selection.kind.conversion is not None

    async def converted(self, events: Iterable[Event]) -> None:
        """Return once all that is to be seen of these events is converted."""
        await converted(self.selection.kind, [entry for event in events for entry in self.needed(event)])

    def needed(self, event: Event) -> Iterator[Entry]:
        """What of an event is looked at: one that leaves the selection is shown as it was before."""
        if self.concerns(event):
            yield event.entry
            if event.previous is not None and not self.selection.everything:
                yield event.previous

    async def replay(self, since: int, until: int) -> AsyncIterator[Event]:
        """Events of the store's log after ``since`` up to ``until``."""
        prefix = self.collection.prefix
        async for batch in self.store.watch(prefix, since):
            for change in batch.changes:
                if change.revision > until:
                    return
                yield _event_of(change, prefix)
            if batch.revision >= until:
                return


def seen(event: Event, selection: Selection) -> tuple[str, Entry] | None:
    """The event as a watcher with selectors sees it: entering is ADDED, leaving DELETED, the rest is not seen."""
    if selection.everything:
        return event.type, event.entry
    now = event.type != "DELETED" and selection.matches(event.entry)
    before = event.previous is not None and selection.matches(event.previous)
    if now:
        return ("MODIFIED" if before else "ADDED"), event.entry
    if before and event.previous is not None:
        return "DELETED", restamped(event.previous, event.entry.revision)
    return None


def _event_of(change: Change, prefix: str) -> Event:
    path = change.key[len(prefix) :]
    previous = entry_of(path, change.previous, change.revision) if change.previous is not None else None
    if change.value is None:
        # A deletion must be reported even if the store no longer knows the last state.
        last = previous or entry_of(
            path, b'{"metadata":{"name":"%b"}}' % path.rpartition("/")[2].encode(), change.revision
        )
        return Event("DELETED", last, previous, {})
    entry = entry_of(path, change.value, change.revision)
    return Event("ADDED" if previous is None else "MODIFIED", entry, previous, {})


class Subscription:
    """The events of a watch for a reader in this process; it begins when it is made.

    It keeps no events, only the number of the next one to read: the collection keeps them for all readers.
    """

    def __init__(self, watching: Watching) -> None:
        selection = watching.selection
        self._watching = watching
        self._collection = watching.collection
        self._now = watching.cache.revision
        self._number = self._collection.next_number
        self._behind = False
        self._wake = asyncio.Event()
        self._ended = False
        self._unsubscribe: Callable[[], None] | None = self._collection.subscribe(
            self, selection.namespace, selection.name
        )

    # The cache's side: see :class:`seamark.api.state.collection.Watcher`.

    def offer(self, event: Event) -> None:
        if not self._behind:
            # It has read all events before this one that concern it; this one is the latest that there is.
            self._number = self._collection.next_number - 1
            self._set_behind(True)

    def flush(self, revision: int) -> None:
        self._wake.set()

    def end(self) -> None:
        """No more events will come; those that wait can still be read."""
        self._ended = True
        self._wake.set()

    def _set_behind(self, behind: bool) -> None:
        if behind != self._behind:
            self._behind = behind
            self._collection.behind += 1 if behind else -1

    # The reader's side.

    def stop(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
            self._set_behind(False)

    async def events(self, *, bare: bool = False) -> AsyncIterator[tuple[str, Entry]]:
        """Types and entries, until the kind is no longer served or the reader stops.

        ``bare`` says that of their metadata only that is read which is the same in every version.
        """
        watching = self._watching
        converts = watching.converts and not bare
        try:
            async for step in self._past(converts):
                yield step
        except StoreError as error:
            raise unwatchable(error) from error
        after = max(self._now, watching.since or 0)
        while True:
            while self._behind:
                events = self._next_events()
                if converts:
                    await watching.converted(events)
                for event in events:
                    if event.entry.revision > after and (view := watching.view(event)) is not None:
                        yield view
            if self._ended:
                return
            self._wake.clear()
            await self._wake.wait()

    def _next_events(self) -> list[Event]:
        """A few more events; with none left the reader is no longer behind."""
        kept = self._collection.numbered_from(self._number)
        if kept is None:
            raise errors.Expired("too old resource version: the events that come next are no longer kept")
        events = list(islice(kept, AT_ONCE))
        self._number += len(events)
        if not events:
            self._set_behind(False)
        return events

    async def _past(self, converts: bool) -> AsyncIterator[tuple[str, Entry]]:
        """What the watch begins with, up to the version ``_now``."""
        watching, selection, now = self._watching, self._watching.selection, self._now
        if watching.since is None:
            # All events so far are part of the beginning.
            self._set_behind(False)
            self._now = watching.cache.revision
            entries = list(self._collection.of_namespace(selection.namespace))
            if converts:
                await converted(selection.kind, entries)
            for entry in entries:
                if selection.name in ("", entry.name) and selection.matches(entry):
                    yield "ADDED", entry
            return
        recent = self._collection.since(watching.since)
        if recent is None:
            async for event in watching.replay(watching.since, now):
                if converts:
                    await watching.converted([event])
                if (view := watching.view(event)) is not None:
                    yield view
            return
        events = list(recent)
        if converts:
            await watching.converted(events)
        for event in events:
            if event.entry.revision <= now and (view := watching.view(event)) is not None:
                yield view
