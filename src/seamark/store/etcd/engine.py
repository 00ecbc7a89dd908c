"""The ``Store`` protocol over etcd."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from seamark.store import history
from seamark.store.etcd import messages
from seamark.store.etcd.connection import COMPACTED, FUTURE, EtcdConnection, Login, Refused, tls_credentials
from seamark.store.etcd.keys import Keyspace
from seamark.store.etcd.watching import EtcdWatch, oldest_kept
from seamark.store.protocol import (
    Batch,
    Compacted,
    Future,
    Mismatch,
    Page,
    StoreError,
    Unavailable,
    Write,
    check_writes,
)

DEFAULT_PREFIX = "/seamark"


class EtcdStore:
    """The keys under ``prefix`` of an etcd cluster.  A call waits up to ``patience`` seconds for a member to answer.

    What is to be read at one moment is read at one revision, by several calls: one transaction would do, but etcd 3.5.1
    ends itself if a transaction that only reads is cancelled.

    History is compacted only if ``history_seconds`` is given, because compaction also removes the history of the
    cluster's other tenants.
    """

    shared = True

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        prefix: str = DEFAULT_PREFIX,
        ca: str | None = None,
        cert: str | None = None,
        key: str | None = None,
        user: str | None = None,
        password: str = "",
        history_seconds: float | None = None,
        patience: float = 10.0,
    ) -> None:
        self._addresses = list(addresses)
        self._keys = Keyspace(prefix or DEFAULT_PREFIX)
        self._credentials = tls_credentials(ca, cert, key)
        self._login = None if user is None else Login(user, password)
        self._window = None if history_seconds is None else history.Window(seconds=history_seconds)
        self._patience = patience
        self._connection: EtcdConnection | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._watches: WeakSet[EtcdWatch] = WeakSet()
        self._writing = 0
        self._idle = asyncio.Event()

    async def open(self) -> None:
        if self._connection is not None:
            raise StoreError("the store is open already")
        connection = EtcdConnection(
            self._addresses, credentials=self._credentials, login=self._login, patience=self._patience
        )
        marker = self._keys.marker
        make_marker = messages.TxnRequest(
            compare=[_is_at(marker, 0)], success=[messages.RequestOp(request_put=messages.PutRequest(key=marker))]
        )
        try:
            await connection.call("Txn", make_marker, repeatable=True)
        except StoreError:
            await connection.close()
            raise
        self._connection = connection
        if self._window is not None:
            self._keeper = asyncio.create_task(history.keep(self, self._window))

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        while self._writing:
            self._idle.clear()
            await self._idle.wait()
        for watch in list(self._watches):
            watch.end()
        await connection.close()

    # --- writing -----------------------------------------------------------------------------------

    async def commit(self, writes: Sequence[Write]) -> int:
        check_writes(writes)
        connection = self._require_open()
        with self._write_under_way():
            if any(write.value is not None or write.expect for write in writes):
                return await self._transact(connection, writes)
            return await self._delete_what_is_there(connection, writes)

    async def _transact(self, connection: EtcdConnection, writes: Sequence[Write]) -> int:
        """Commit a transaction that changes something if it succeeds, and write the marker in it (see ``keys``)."""
        request = messages.TxnRequest(success=[self._operation(write) for write in writes])
        request.success.add().request_put.key = self._keys.marker
        expecting = [write for write in writes if write.expect is not None]
        for write in expecting:
            key = self._keys.encode(write.key)
            request.compare.append(_is_at(key, write.expect or 0))
            request.failure.append(_look_at(key))
        answer = await connection.call("Txn", request, repeatable=False)
        if answer.succeeded:
            return int(answer.header.revision)
        for write, looked in zip(expecting, answer.responses, strict=True):
            found = _revision_at(looked.response_range)
            if found != write.expect:
                raise Mismatch(write.key, found)
        raise StoreError("etcd refused a transaction whose expectations all hold")

    async def _delete_what_is_there(self, connection: EtcdConnection, writes: Sequence[Write]) -> int:
        """Commit deletions of keys that may be absent: read first, because a no-op must not take a new revision."""
        while True:
            marker = await self._marker(connection)
            try:
                found = await asyncio.gather(
                    *(self._mod_revision(connection, write.key, marker.header.revision) for write in writes)
                )
            except Refused as refused:
                if refused.said == COMPACTED:
                    continue  # history was compacted in between
                raise
            for write, at in zip(writes, found, strict=True):
                if write.expect == 0 and at:
                    raise Mismatch(write.key, at)
            if not any(found):
                return _revision_at(marker)
            pinned = [Write(write.key, None, at) for write, at in zip(writes, found, strict=True)]
            try:
                return await self._transact(connection, pinned)
            except Mismatch:
                continue  # another writer changed a key in between; read again

    async def _mod_revision(self, connection: EtcdConnection, key: str, revision: int) -> int:
        """The mod revision that a key had at a revision, 0 if it was absent."""
        wanted = messages.RangeRequest(key=self._keys.encode(key), revision=revision, keys_only=True)
        return _revision_at(await connection.call("Range", wanted, repeatable=True))

    def _operation(self, write: Write) -> Any:
        key = self._keys.encode(write.key)
        if write.value is None:
            return messages.RequestOp(request_delete_range=messages.DeleteRangeRequest(key=key))
        return messages.RequestOp(request_put=messages.PutRequest(key=key, value=write.value))

    @contextmanager
    def _write_under_way(self) -> Iterator[None]:
        self._writing += 1
        try:
            yield
        finally:
            self._writing -= 1
            if not self._writing:
                self._idle.set()

    # --- reading -----------------------------------------------------------------------------------

    async def read(self, start: str, end: str, *, revision: int = 0, limit: int = 0) -> Page:
        connection = self._require_open()
        key, range_end = self._keys.range(start, end)
        # The rows are read as of the revision at which the marker was read, so that both are of one moment.
        while True:
            marker = await self._marker(connection)
            wanted = messages.RangeRequest(
                key=key, range_end=range_end, revision=revision or marker.header.revision, limit=limit
            )
            try:
                found = await connection.call("Range", wanted, repeatable=True)
            except Refused as refused:
                if refused.said == COMPACTED and not revision:
                    continue  # history was compacted in between
                raise await self._explain(connection, refused, revision) from refused
            return Page([self._keys.row(kv) for kv in found.kvs], _revision_at(marker), found.more)

    async def revision(self) -> int:
        answer = await self._marker(self._require_open())
        return _revision_at(answer) or int(answer.header.revision)

    async def _marker(self, connection: EtcdConnection) -> Any:
        return await connection.call(
            "Range", messages.RangeRequest(key=self._keys.marker, keys_only=True), repeatable=True
        )

    def latest(self) -> None:
        return None  # another process may have written

    def watch(self, prefix: str, since: int) -> AsyncIterator[Batch]:
        watch = EtcdWatch(self._require_open(), self._keys, prefix=prefix, since=since, check=self._check_known)
        self._watches.add(watch)
        return watch

    async def check(self) -> None:
        await self.revision()

    async def _check_known(self, revision: int) -> None:
        await self.read("/", "", revision=revision)

    async def _explain(self, connection: EtcdConnection, refused: Refused, asked: int) -> StoreError:
        """Translate etcd's refusal into an error of the ``Store`` protocol."""
        if refused.said == COMPACTED:
            return Compacted(asked, await oldest_kept(connection, self._keys, asked))
        if refused.said == FUTURE:
            return Future(asked, await self.revision())
        return refused

    # --- forgetting --------------------------------------------------------------------------------

    async def compact(self, revision: int) -> None:
        connection = self._require_open()
        try:
            await connection.call("Compact", messages.CompactionRequest(revision=revision), repeatable=True)
        except Refused as refused:
            if refused.said != COMPACTED:  # compacted already is fine
                raise await self._explain(connection, refused, revision) from refused

    def _require_open(self) -> EtcdConnection:
        if self._connection is None:
            raise Unavailable("the store is not open")
        return self._connection


def _is_at(key: bytes, revision: int) -> Any:
    return messages.Compare(result=messages.COMPARE_EQUAL, target=messages.COMPARE_MOD, key=key, mod_revision=revision)


def _look_at(key: bytes) -> Any:
    return messages.RequestOp(request_range=messages.RangeRequest(key=key, keys_only=True))


def _revision_at(found: Any) -> int:
    """The mod revision of the one key in the answer to a range, 0 if it is absent."""
    return int(found.kvs[0].mod_revision) if found.kvs else 0
