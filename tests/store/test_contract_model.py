"""The contract against a model: random commits, reads, watches, compactions and restarts, told apart by nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test

from seamark.store.protocol import Batch, Change, Compacted, Mismatch, Row, Store, Write, prefix_end

KEYS = ["/a", "/a/", "/a/1", "/a/2", "/a0", "/b", "/ü", "/ü/1"]
PREFIXES = ["/", "/a", "/a/", "/b", "/ü", "/nothing"]

keys = st.sampled_from(KEYS)
values = st.none() | st.binary(max_size=3)
# How an expectation is to relate to the truth at the time; "right" and "absent" become revisions when it is known.
expectations = st.sampled_from(["any", "any", "right", "absent", "wrong"])
writes = st.lists(st.tuples(keys, values, expectations), max_size=4, unique_by=lambda write: write[0])


class Model:
    """What a store should hold: every state it went through, and every change."""

    def __init__(self, revision: int) -> None:
        self.states: dict[int, dict[str, Row]] = {revision: {}}
        self.changes: list[Change] = []
        self.compacted = 0

    @property
    def revision(self) -> int:
        return max(self.states)

    @property
    def current(self) -> dict[str, Row]:
        return self.states[self.revision]

    def at(self, revision: int) -> dict[str, Row]:
        """Also for a revision that another writer took, as happens in a shared store."""
        return self.states[max(known for known in self.states if known <= revision)]

    def mismatch(self, transaction: list[Write]) -> tuple[str, int] | None:
        for write in transaction:
            row = self.current.get(write.key)
            found = row.revision if row else 0
            if write.expect is not None and write.expect != found:
                return write.key, found
        return None

    def commit(self, transaction: list[Write], revision: int) -> None:
        state = dict(self.current)
        for write in transaction:
            before = state.pop(write.key, None)
            if write.value is not None:
                state[write.key] = Row(write.key, write.value, revision, before.created if before else revision)
            if write.value is not None or before is not None:
                self.changes.append(Change(write.key, write.value, before.value if before else None, revision))
        self.states[revision] = state

    def changes_nothing(self, transaction: list[Write]) -> bool:
        return all(write.value is None and write.key not in self.current for write in transaction)


class Following:
    """A watch and how far it has been read."""

    def __init__(self, watch: AsyncIterator[Batch], prefix: str, since: int) -> None:
        self.watch, self.prefix, self.position = watch, prefix, since


class Contract(RuleBasedStateMachine):
    """Does the same to a store and to the model, and compares."""

    new_place: Callable[[], Callable[[], Store]]  # set by the test

    watches = Bundle("watches")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.place = type(self).new_place()
        self.live: list[Following] = []
        self.store = self.place()
        self.run(self.store.open())
        self.model = Model(self.run(self.store.revision()))

    def run(self, coroutine: Any) -> Any:
        return self.runner.run(coroutine)

    def committed(self, transaction: list[Write]) -> int:
        async def commit() -> int:  # an engine may answer with a future, for which the event loop has to run
            return await self.store.commit(transaction)

        return int(self.run(commit()))

    def teardown(self) -> None:
        self.run(self.store.close())
        self.runner.close()

    def resolve(self, drawn: list[tuple[str, bytes | None, str]]) -> list[Write]:
        """Expectations in words become revisions."""
        resolved = []
        for key, value, expectation in drawn:
            row = self.model.current.get(key)
            found = row.revision if row else 0
            expect = {"any": None, "right": found, "absent": 0, "wrong": found + 1}[expectation]
            resolved.append(Write(key, value, expect))
        return resolved

    @rule(drawn=writes)
    def commit(self, drawn: list[tuple[str, bytes | None, str]]) -> None:
        transaction = self.resolve(drawn)
        mismatch = self.model.mismatch(transaction)
        if mismatch:
            with pytest.raises(Mismatch) as raised:
                self.committed(transaction)
            assert (raised.value.key, raised.value.found) == mismatch
        elif self.model.changes_nothing(transaction):
            assert self.committed(transaction) >= self.model.revision
        else:
            revision = self.committed(transaction)
            assert revision > self.model.revision
            self.model.commit(transaction, revision)

    @rule(drawn=st.lists(st.tuples(keys, st.binary(max_size=3), expectations), min_size=2, max_size=6))
    def commit_at_once(self, drawn: list[tuple[str, bytes, str]]) -> None:
        transactions = [self.resolve([single]) for single in drawn]

        async def commit_all() -> list[Any]:
            return await asyncio.gather(*map(self.store.commit, transactions), return_exceptions=True)

        outcomes = self.run(commit_all())
        happened = [(o, t) for o, t in zip(outcomes, transactions, strict=True) if isinstance(o, int)]
        assert len({revision for revision, _ in happened}) == len(happened)
        for revision, transaction in sorted(happened, key=lambda pair: pair[0]):
            assert revision > self.model.revision
            assert self.model.mismatch(transaction) is None
            self.model.commit(transaction, revision)
        for outcome, (write,) in zip(outcomes, transactions, strict=True):
            assert isinstance(outcome, int) or (isinstance(outcome, Mismatch) and outcome.found != write.expect)

    @rule(start=keys, end=keys, limit=st.integers(0, 4), back=st.integers(0, 5))
    def read(self, start: str, end: str, limit: int, back: int) -> None:
        revision = sorted(self.model.states)[-1 - min(back, len(self.model.states) - 1)]
        reading = self.store.read(start, end, revision=revision if back else 0, limit=limit)
        if back and revision < self.model.compacted:
            with pytest.raises(Compacted) as raised:
                self.run(reading)
            assert (raised.value.asked, raised.value.oldest) == (revision, self.model.compacted)
            return
        page = self.run(reading)
        state = self.model.states[revision]
        expected = [state[key] for key in sorted(state) if start <= key < end]
        assert list(page.rows) == expected[: limit or None]
        assert page.more == (0 < limit < len(expected))
        assert page.revision >= self.model.revision

    @rule(key=keys)
    def read_one(self, key: str) -> None:
        row = self.model.current.get(key)
        assert list(self.run(self.store.read(key, "")).rows) == ([row] if row else [])

    @rule(target=watches, prefix=st.sampled_from(PREFIXES), back=st.integers(0, 5))
    def watch(self, prefix: str, back: int) -> Any:
        since = sorted(self.model.states)[-1 - min(back, len(self.model.states) - 1)]

        async def begin() -> AsyncIterator[Batch]:
            return self.store.watch(prefix, since)

        if since < self.model.compacted:
            with pytest.raises(Compacted):
                self.run(anext(self.run(begin())))
            return multiple()
        following = Following(self.run(begin()), prefix, since)
        self.live.append(following)
        return following

    @rule(following=watches)
    def follow(self, following: Following) -> None:
        """Read a watch up to now."""
        if following not in self.live:
            return
        wanted = [
            change
            for change in self.model.changes
            if change.key.startswith(following.prefix) and change.revision > following.position
        ]
        seen: list[Change] = []

        async def read_on() -> None:
            while following.position < self.model.revision:
                batch = await anext(following.watch)
                seen.extend(batch.changes)
                following.position = batch.revision

        try:
            self.run(read_on())
        except Compacted:
            # It had not begun to be read, or was not being read, when its place in the log was forgotten.
            assert following.position < self.model.compacted
            self.live.remove(following)
            assert seen == wanted[: len(seen)]
            return
        assert [(c.key, c.value, c.revision) for c in seen] == [(c.key, c.value, c.revision) for c in wanted]
        assert all(c.previous in (w.previous, None) for c, w in zip(seen, wanted, strict=True))

    @rule(back=st.integers(0, 5))
    def compact(self, back: int) -> None:
        revision = sorted(self.model.states)[-1 - min(back, len(self.model.states) - 1)]
        self.run(self.store.compact(revision))
        self.model.compacted = max(self.model.compacted, revision)
        for known in (known for known in self.model.states if known >= self.model.compacted):
            rows = self.run(self.store.read("/", prefix_end(""), revision=known)).rows
            assert {row.key: row for row in rows} == self.model.states[known]

    @rule()
    def reopen(self) -> None:
        self.run(self.store.close())
        self.live.clear()
        self.store = self.place()
        self.run(self.store.open())

    @invariant()
    def same(self) -> None:
        page = self.run(self.store.read("/", prefix_end("")))
        assert list(page.rows) == [self.model.current[key] for key in sorted(self.model.current)]
        assert self.run(self.store.revision()) >= self.model.revision


def test_a_store_behaves_as_the_model(new_place: Callable[[], Any], request: pytest.FixtureRequest) -> None:
    examples = 25 if "sqlite" in request.node.name else 10  # over the network each takes several times as long
    machine = type("Machine", (Contract,), {"new_place": staticmethod(new_place)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
