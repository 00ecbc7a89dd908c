"""Forwards questions to upstream resolvers.  Concurrent identical questions are sent only once."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence

from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.dns.config import ForwardConfig
from seamark.dns.forwarding.cache import AnswerCache, Fetched, Key, fetched
from seamark.dns.forwarding.upstream import Address, UpstreamFailed, UpstreamResolver, parse_upstream, system_upstreams
from seamark.dns.wire import message as wire
from seamark.dns.wire.message import Query
from seamark.dns.zone.names import Labels, labels_of, within
from seamark.dns.zone.records import Question, Rcode, Record
from seamark.metrics import Registry

log = logging.getLogger(__name__)

# RFC 8767, section 5: the TTL of a stale answer, and how long to wait for a fresh one before serving it.
_STALE_TTL = 30
_STALE_PATIENCE = 1.8
_QUERIES_PER_QUESTION = 4  # that may wait for their answers, for each question that may be in progress
_MOST_FOLLOWED = 64  # records of an alias's target that are looked at


class Forwarder:
    """Chooses the upstream resolver for a name, and caches the replies."""

    def __init__(
        self,
        config: ForwardConfig,
        registry: Registry,
        *,
        own_addresses: Sequence[Address] = (),
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """``own_addresses`` are removed from the system's resolvers, because forwarding to itself would never end."""
        self._config = config
        self._clock = clock
        self._routes = [
            (labels_of(route.zone), [self._resolver(address) for address in _addresses(route.to, own_addresses)])
            for route in config.routes
        ]
        self._routes.sort(key=lambda route: len(route[0]), reverse=True)
        self._cache = AnswerCache(entries=config.cache_entries, stale_seconds=config.stale_seconds)
        self._asking: dict[Key, asyncio.Task[Fetched]] = {}
        self._waiting = 0  # queries whose questions are being asked
        self._requests = registry.counter("seamark_dns_forward_requests_total", "Questions put to upstream resolvers.")
        self._failures = registry.counter("seamark_dns_forward_failures_total", "Upstream resolvers that failed.")
        self._hits = registry.counter("seamark_dns_forward_cache_hits_total", "Answers of others served from memory.")
        self._stale = registry.counter("seamark_dns_forward_stale_total", "Expired answers served for want of others.")
        registry.measured(
            "seamark_dns_forward_unhealthy", "Upstream resolvers that do not answer.", lambda: float(self.unhealthy)
        )
        registry.measured(
            "seamark_dns_forward_cache_entries", "Answers of others kept.", lambda: float(len(self._cache))
        )

    @property
    def unhealthy(self) -> int:
        return sum(not resolver.healthy for _, resolvers in self._routes for resolver in resolvers)

    @property
    def asks(self) -> bool:
        return bool(self._routes)

    def covers(self, name: Labels) -> bool:
        return bool(self._resolvers(name))

    async def reply(self, query: Query, *, datagram: bool) -> bytes:
        """The reply to a client: an upstream's answer, SERVFAIL if there is none, REFUSED if too many are waiting."""
        question = query.question
        key: Key = (question.name, question.type, question.klass, query.dnssec_ok, bool(query.flags & wire.CD))
        now = self._clock.monotonic()
        known = self._cache.get(key, now)
        if known is not None:
            self._hits.add()
            return known.reply_to(query, datagram=datagram, age=known.age(now))
        if self._crowded(key):
            return wire.write_status(query, Rcode.REFUSED)
        try:
            answer = await self._fetch_or_tire(key, question, query.flags & (wire.RD | wire.CD))
        except (UpstreamFailed, TimeoutError) as problem:
            log.debug("no answer for %s: %s", ".".join(question.name), problem)
            now = self._clock.monotonic()
            old = self._cache.stale(key, now)
            if old is None:
                return wire.write_status(query, Rcode.SERVFAIL)
            self._stale.add()
            return old.reply_to(query, datagram=datagram, age=old.age(now), stale_ttl=_STALE_TTL)
        return answer.reply_to(query, datagram=datagram, age=answer.age(self._clock.monotonic()))

    async def records(self, question: Question) -> list[Record]:
        import dns.exception

        key: Key = (question.name, question.type, question.klass, False, False)
        now = self._clock.monotonic()
        answer = self._cache.get(key, now)
        if answer is None:
            if self._crowded(key):
                return []
            try:
                answer = await self._fetch(key, question, wire.RD)
            except UpstreamFailed as problem:
                log.debug("no answer for %s: %s", ".".join(question.name), problem)
                return []
        try:
            return _records(answer, answer.age(self._clock.monotonic()))
        except dns.exception.DNSException as problem:
            log.debug("%s leads to what cannot be read: %s", ".".join(question.name), problem)
            return []

    async def close(self) -> None:
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
        for _, resolvers in self._routes:
            for resolver in resolvers:
                await resolver.close()

    # --- asking ------------------------------------------------------------------------------------

    async def _fetch_or_tire(self, key: Key, question: Question, flags: int) -> Fetched:
        """Fetch an answer, but give up early if an expired one can be served; the request itself goes on."""
        patience = None if self._cache.stale(key, self._clock.monotonic()) is None else _STALE_PATIENCE
        async with asyncio.timeout(patience):
            return await self._fetch(key, question, flags)

    async def _fetch(self, key: Key, question: Question, flags: int) -> Fetched:
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.get_running_loop().create_task(self._ask(key, question, flags))
            task.add_done_callback(lambda done: self._asked(key, done))
        self._waiting += 1
        try:
            return await asyncio.shield(task)
        finally:
            self._waiting -= 1

    def _crowded(self, key: Key) -> bool:
        """Whether too many questions are in progress, or too many queries wait for them: a few may be of thousands."""
        most = self._config.most_concurrent
        return (key not in self._asking and len(self._asking) >= most) or self._waiting >= _QUERIES_PER_QUESTION * most

    def _asked(self, key: Key, task: asyncio.Task[Fetched]) -> None:
        del self._asking[key]
        if not task.cancelled():
            task.exception()  # mark it as retrieved: the waiting clients may all be gone

    async def _ask(self, key: Key, question: Question, flags: int) -> Fetched:
        """Ask one resolver after the other, healthy ones first, until one answers or the deadline passes."""
        import dns.exception

        problems = []
        try:
            async with asyncio.timeout(self._config.deadline):
                for resolver in self._order(question.name):
                    self._requests.add()
                    try:
                        reply = await resolver.ask(question, flags=flags, dnssec_ok=key[3])
                        answer = fetched(
                            reply,
                            question,
                            self._clock.monotonic(),
                            longest=self._config.longest_ttl,
                            longest_negative=self._config.longest_negative_ttl,
                        )
                    except (UpstreamFailed, wire.MalformedMessage, dns.exception.DNSException) as problem:
                        self._failures.add()
                        problems.append(str(problem))
                        continue
                    self._cache.put(key, answer)
                    return answer
        except TimeoutError:
            problems.append(f"nothing within {self._config.deadline:g} s")
        raise UpstreamFailed("; ".join(problems) or "there is no upstream resolver to ask")

    def _order(self, name: Labels) -> list[UpstreamResolver]:
        resolvers = list(self._resolvers(name))
        random.shuffle(resolvers)
        return sorted(resolvers, key=lambda resolver: not resolver.healthy)

    def _resolvers(self, name: Labels) -> Sequence[UpstreamResolver]:
        for zone, resolvers in self._routes:
            if within(name, zone):
                return resolvers
        return ()

    def _resolver(self, address: Address) -> UpstreamResolver:
        config = self._config
        return UpstreamResolver(
            address, timeout=config.timeout, most_failures=config.most_failures, probe_seconds=config.probe_seconds
        )


def _addresses(named: Sequence[str], own: Sequence[Address]) -> list[Address]:
    found: list[Address] = []
    for text in named:
        if text.startswith("/"):
            from pathlib import Path

            found += [address for address in system_upstreams(Path(text)) if address not in own]
        else:
            found.append(parse_upstream(text))
    return list(dict.fromkeys(found))


def _records(answer: Fetched, age: int) -> list[Record]:
    """The answer section, each record with its remaining TTL."""
    import dns.message

    message = dns.message.from_wire(answer.cut(wire.LARGEST, most=_MOST_FOLLOWED), one_rr_per_rrset=True)
    return [
        Record(rrset.name.labels[:-1], int(rrset.rdtype), max(0, rrset.ttl - age), (rrset[0].to_wire(),))
        for rrset in message.answer
    ]
