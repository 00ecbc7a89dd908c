"""A watch that reconnects without losing events.

It always watches the whole store, marker included, and filters by prefix here.  So it sees every revision of the
store, and can resume after any interruption from the last revision it delivered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio

from seamark.store.etcd import messages
from seamark.store.etcd.connection import (
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    EtcdConnection,
    Refused,
    Verdict,
    judge,
)
from seamark.store.etcd.keys import Keyspace
from seamark.store.protocol import Batch, Change, Compacted, Unavailable

logger = logging.getLogger(__name__)


class _Interrupted(Exception):
    """The stream ended without a gRPC error; the watch continues on a new one."""


class EtcdWatch(AsyncIterator[Batch]):
    """One reader's position in the log.  One task at a time may read it.

    ``check`` raises for a revision that cannot be watched from; etcd itself would wait for a future revision.
    """

    def __init__(
        self,
        connection: EtcdConnection,
        keys: Keyspace,
        *,
        prefix: str,
        since: int,
        check: Callable[[int], Awaitable[None]],
    ) -> None:
        self._connection = connection
        self._keys = keys
        self._prefix = prefix
        self._position = since  # everything up to here has been delivered
        self._check: Callable[[int], Awaitable[None]] | None = check
        self._ended = False
        self._call: Any = None
        self._address = ""
        self._token: str | None = None
        self._denied = False
        self._parts: list[Any] = []  # events of an incomplete answer: further fragments follow
        self._pause = FIRST_PAUSE_SECONDS
        self._interrupted_at: float | None = None  # since when no member has answered

    async def __anext__(self) -> Batch:
        while not self._ended:
            try:
                if self._call is None:
                    await self._start()
                batch = self._take(await self._call.read())
            except (grpc.aio.AioRpcError, _Interrupted) as error:
                await self._recover(error)
            except asyncio.CancelledError:
                if self._reader_was_cancelled():
                    self._drop()  # gRPC has cancelled the stream too; the next read starts a new one
                    raise
            else:
                if batch is not None:
                    self._position = batch.revision
                    return batch
        raise StopAsyncIteration

    def end(self) -> None:
        """End the watch, because the store closes."""
        self._ended = True
        self._drop()

    async def aclose(self) -> None:
        self.end()

    def _reader_was_cancelled(self) -> bool:
        """Whether the reading task was cancelled, rather than the stream by :meth:`end`."""
        task = asyncio.current_task()
        return not self._ended or (task is not None and task.cancelling() > 0)

    async def _start(self) -> None:
        if self._check is not None:
            await self._check(self._position)
            self._check = None
        self._address = self._connection.address  # the member to move on from, if even the log-in fails
        self._address, self._token, self._call = await self._connection.start_watch()
        start, end = self._keys.whole
        # Start at the position itself, not after it: if the position has been compacted, deletions after it may be
        # missing, and etcd refuses the watch only if it starts at a compacted revision.
        create = messages.WatchCreateRequest(
            key=start,
            range_end=end,
            start_revision=max(1, self._position),
            progress_notify=True,
            prev_kv=True,
            fragment=True,
        )
        with suppress(asyncio.InvalidStateError):  # the stream has failed already; reading from it raises the reason
            await self._call.write(messages.WatchRequest(create_request=create))

    def _take(self, answer: Any) -> Batch | None:
        """The batch in an answer of the server, or None if there is nothing to deliver yet."""
        if answer is grpc.aio.EOF:
            raise _Interrupted("the stream ended")
        if answer.canceled:
            raise self._cancelled(answer)
        self._pause, self._denied, self._interrupted_at = FIRST_PAUSE_SECONDS, False, None
        if answer.created:
            return None
        self._parts += answer.events
        if answer.fragment:
            return None
        events, self._parts = self._parts, []
        # While a reader catches up, events come in several answers, and the header is ahead of them.
        revision = events[-1].kv.mod_revision if events else answer.header.revision
        if revision <= self._position:
            return None
        return Batch([self._change(event) for event in events if self._wanted(event.kv)], revision)

    def _wanted(self, changed: Any) -> bool:
        return (
            changed.mod_revision > self._position
            and changed.key != self._keys.marker
            and self._keys.decode(changed.key).startswith(self._prefix)
        )

    def _change(self, event: Any) -> Change:
        return Change(
            key=self._keys.decode(event.kv.key),
            value=None if event.type == messages.EVENT_DELETE else event.kv.value,
            previous=event.prev_kv.value if event.HasField("prev_kv") else None,
            revision=event.kv.mod_revision,
        )

    def _cancelled(self, answer: Any) -> Exception:
        if answer.compact_revision:
            self._drop()
            return Compacted(self._position, answer.compact_revision)
        if "permission denied" not in answer.cancel_reason:
            return _Interrupted(answer.cancel_reason)
        # etcd also says "permission denied" for an expired token, so log in again once before giving up.
        if self._token is None or self._denied:
            self._drop()
            return Refused(self._address, answer.cancel_reason)
        self._denied = True
        self._connection.forget_token(self._token)
        return _Interrupted(answer.cancel_reason)

    async def _recover(self, error: grpc.aio.AioRpcError | _Interrupted) -> None:
        """Prepare to start again, at another member if that may help.

        Raises errors that a new start cannot mend, and :class:`Unavailable` if the connection's patience is at its end.
        """
        self._drop()
        said = str(error)
        if isinstance(error, grpc.aio.AioRpcError):
            said = error.details() or error.code().name
            match judge(error.code(), said):
                case Verdict.REFUSED:
                    raise Refused(self._address, said) from error
                case Verdict.LOG_IN_AGAIN:
                    self._connection.forget_token(self._token)
                case Verdict.NOT_EXECUTED | Verdict.UNKNOWN:
                    self._connection.move_on(self._address)
        now = asyncio.get_running_loop().time()
        if self._interrupted_at is None:
            self._interrupted_at = now
            logger.warning("the watch of etcd at %s goes on elsewhere: %s", self._address, said)
        elif now - self._interrupted_at > self._connection.patience:
            self._interrupted_at = None
            raise Unavailable(f"etcd at {self._address}: {said}") from error
        await asyncio.sleep(self._pause)
        self._pause = min(self._pause * 2, LONGEST_PAUSE_SECONDS)

    def _drop(self) -> None:
        if self._call is not None:
            self._call.cancel()
            self._call = None
        self._parts = []


async def oldest_kept(connection: EtcdConnection, keys: Keyspace, asked: int) -> int:
    """The revision up to which etcd has been compacted, which is later than ``asked``.  Only a watch reports it."""

    async def check(revision: int) -> None:
        pass  # `asked` is known to be compacted

    watch = EtcdWatch(connection, keys, prefix="/", since=asked, check=check)
    try:
        async for _ in watch:
            pass
    except Compacted as compacted:
        return compacted.oldest
    finally:
        watch.end()
    return asked + 1
