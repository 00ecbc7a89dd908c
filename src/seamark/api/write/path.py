"""The write path as creations and changes share it: what they use, and the steps that may take long."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec

from seamark.api.admission import Admission
from seamark.api.allocation.reserve import Reservations
from seamark.api.call import Caller
from seamark.api.state.cache import Cache
from seamark.api.turns import Turn, Turns, aside
from seamark.errors import Object
from seamark.haste import Costly, Patience, at_length, at_once
from seamark.kinds.admission import Request
from seamark.kinds.values.fields import Errors, FieldError, TooManyMistakes, limited
from seamark.store.protocol import Store

T = TypeVar("T")

MORE_MISTAKES = "there are many more mistakes, which are not listed; correct these first"
TOO_COSTLY = "its rules and patterns take too long to check"

# What is wrong with an object, what of that is told twice, and warnings if nothing is wrong.
Judgement = tuple[Errors, Errors, list[str]]


class WritePath(msgspec.Struct):
    """What writes of every kind use."""

    cache: Cache
    store: Store
    admission: Admission
    reservations: Reservations
    patience: Patience
    turns: Turns

    async def stored_by_webhook(self, request: Request, *held: Turn) -> Object:
        """The stored form of an object that a webhook has to convert; it is asked once for each write."""
        conversion, obj = request.kind.conversion, request.obj
        assert conversion is not None
        memory = request.memory = request.memory or {}
        uid, inner = memory.get("stored", ("", None))
        if uid != obj["metadata"]["uid"]:
            uid, inner = obj["metadata"]["uid"], await aside(request.notes, conversion.to_stored(obj), *held)
            memory["stored"] = uid, inner
        stored_form: Object = inner
        return stored_form

    async def judged(self, judge: Callable[[], Judgement], caller: Caller, *, large: bool) -> Judgement:
        """What rules say that may take long."""
        if not large:
            try:
                return at_once(judge)
            except Costly:
                pass  # it is done in a thread instead
        return await self.apart(partial(_judge_at_length, judge), caller)

    async def apart(self, step: Callable[[], T], caller: Caller) -> T:
        """Do a step in a thread.  Meanwhile others use the seat, but the object is not written.

        A request with a large body keeps its seat, which is one of a few for such requests.
        """
        hearing = self.patience.hear(step)
        return await hearing if caller.patience is not None else await aside(caller.notes, hearing)


def _judge_at_length(judge: Callable[[], Judgement]) -> Judgement:
    try:
        return limited(partial(at_length, judge))
    except TooManyMistakes as error:
        wrong, sentence = error.first, MORE_MISTAKES
    except Costly:
        wrong, sentence = [], TOO_COSTLY
    return [*wrong, FieldError("<nil>", "FieldValueInvalid", f"Invalid value: null: {sentence}")], [], []
