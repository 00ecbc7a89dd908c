"""Follows the certificates while a server runs: old ones are renewed, and files that were replaced take effect.

New connections see a new serving certificate.  A new authority is believed beside the earlier ones, until those are
taken out of ``ca.crt``; from then on the certificates they signed are refused, also on connections that are open.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from seamark.api.certificates import Authority, single
from seamark.api.identity.keys import LOOK_SECONDS
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.kinds.values import times

log = logging.getLogger(__name__)


class Renewal:
    """Keeps the TLS settings of a running server as its files are.

    ``tell`` is called when the authorities have changed; ``given`` names a certificate made elsewhere, and its key.
    """

    def __init__(
        self,
        authority: Authority,
        context: ssl.SSLContext | None,
        names: Sequence[str],
        tell: Callable[[], Awaitable[None]],
        *,
        given: tuple[str, str] | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._authority = authority
        self._context = context
        self._names = names
        self._tell = tell
        self._given = given
        self._clock = clock
        self._believed = authority.ca_pem
        self._replaced = asyncio.Event()
        self._seen = self._state()
        self._timely = True  # whether an authority was valid at the last look
        self.dropped: tuple[bytes, ...] = ()  # authorities that are no longer believed, PEM

    async def replaced(self) -> None:
        """Return when the authorities have changed the next time."""
        await self._replaced.wait()

    async def follow(self) -> None:
        """Look at the files every ten seconds, until cancelled."""
        self._look_at_clock()
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        self._look_at_clock()
        if self._given is None:
            self._authority.renew(self._names)
        try:
            if (seen := self._state()) == self._seen:
                return
            self._take()
        except (OSError, ssl.SSLError) as error:  # such as a key whose certificate is just being written
            log.warning("the certificates cannot be read again: %s; those before stay in use", error)
            return
        self._seen = seen
        if (believed := self._authority.ca_pem) != self._believed:
            now = single(believed)
            self.dropped = tuple(each for each in (*self.dropped, *single(self._believed)) if each not in now)
            self._believed = believed
            log.info("the authorities have changed: %d are believed", len(now))
            await self._tell()
            self._replaced.set()
            self._replaced = asyncio.Event()

    def _look_at_clock(self) -> None:
        """Say once that no authority is valid now.  It is not replaced: the clock may be wrong only for a while."""
        found = () if self._context is None else self._context.get_ca_certs()
        now = self._clock.time()
        begin_and_end = [
            [ssl.cert_time_to_seconds(str(each[at])) for at in ("notBefore", "notAfter")] for each in found
        ]
        timely = not found or any(begin < now < end for begin, end in begin_and_end)
        if self._timely and not timely:
            log.warning(
                "no authority in %s is valid at %s, so clients cannot trust this server: set the clock, or replace the "
                "authority with seamark rotate ca, then seamark rotate ca --drop-old",
                self._authority.ca_path,
                times.text(now),
            )
        self._timely = timely

    def _take(self) -> None:
        if self._context is None:
            return
        self._authority.tls(self._given)  # fails before anything is changed
        self._context.load_cert_chain(*(self._given or self._authority.serving))
        self._context.load_verify_locations(self._authority.ca_path)

    def _state(self) -> list[tuple[int, int, int]]:
        files = (self._authority.ca_path, *map(Path, self._given or self._authority.serving))
        return [(found.st_mtime_ns, found.st_size, found.st_ino) for found in map(Path.stat, files)]
