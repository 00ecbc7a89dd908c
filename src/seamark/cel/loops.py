"""Macros that go through a list or map, as functions of a frame; each round is charged."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

from seamark.cel import values
from seamark.cel.errors import CostError, EvaluationError, no_such_overload
from seamark.cel.values import key_of, plain_key

Frame = list[Any]
Run = Callable[[Frame], Any]

# What a round of a loop costs besides its parts: the condition to go on, and keeping the result.
STEP_COSTS = {
    "all": 3,
    "exists": 4,
    "exists_one": 2,
    "map": 12,
    "filter": 13,
    "sortBy": 12,
    "transformList": 12,
    "transformMap": 2,
    "transformMapEntry": 2,
}

Steps = Callable[[Any, Frame], Any]


def steps_of(places: list[int]) -> Steps:
    """Goes through a list or map, with each element (or key) in its place of the frame."""
    if len(places) == 1:
        place = places[0]

        def single(over: Any, frame: Frame) -> Any:
            if isinstance(over, list):
                for item in over:
                    frame[place] = item
                    yield item
            elif isinstance(over, dict):
                for key in list(over):
                    frame[place] = item = plain_key(key)
                    yield item
            else:
                raise no_such_overload()

        return single
    first, second = places

    def double(over: Any, frame: Frame) -> Any:
        if isinstance(over, list):
            pairs: Any = enumerate(over)
        elif isinstance(over, dict):
            pairs = [(plain_key(key), value) for key, value in over.items()]
        else:
            raise no_such_overload()
        for key, value in pairs:
            frame[first], frame[second] = key, value
            yield key

    return double


def _until(over: Run, steps: Steps, parts: list[Run], cost: int, decisive: bool) -> Run:
    """``all`` and ``exists``: the first decisive answer counts, even after failures."""
    (part,) = parts

    def run(frame: Frame) -> bool:
        meter, failure = frame[0], None
        for _ in steps(over(frame), frame):
            meter.left -= cost
            if meter.left < 0:
                raise CostError
            try:
                value: bool = part(frame)
            except EvaluationError as error:
                failure = failure or error
                continue
            if value is decisive:
                return value
            if value is not (not decisive):
                failure = failure or no_such_overload()
        if failure is not None:
            raise failure
        return not decisive

    return run


def _all(over: Run, steps: Steps, parts: list[Run], cost: int) -> Run:
    return _until(over, steps, parts, cost, False)


def _exists(over: Run, steps: Steps, parts: list[Run], cost: int) -> Run:
    return _until(over, steps, parts, cost, True)


def _rounds(over: Run, steps: Steps, parts: list[Run], cost: int) -> Callable[[Frame], Any]:
    """The rounds in which the condition holds, each charged; the loop's own variable is given."""
    condition = parts[0] if len(parts) == 2 else None

    def run(frame: Frame) -> Any:
        meter = frame[0]
        for item in steps(over(frame), frame):
            meter.left -= cost
            if meter.left < 0:
                raise CostError
            if condition is None or _truth(condition(frame)):
                yield item

    return run


def _truth(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise no_such_overload()


def _exists_one(over: Run, steps: Steps, parts: list[Run], cost: int) -> Run:
    rounds = _rounds(over, steps, [*parts, parts[0]], cost)
    return lambda frame: sum(1 for _ in rounds(frame)) == 1


def _filter(over: Run, steps: Steps, parts: list[Run], cost: int) -> Run:
    rounds = _rounds(over, steps, [*parts, parts[0]], cost)
    return lambda frame: list(rounds(frame))


def _map(over: Run, steps: Steps, parts: list[Run], cost: int) -> Run:
    rounds, made = _rounds(over, steps, parts, cost), parts[-1]
    return lambda frame: [made(frame) for _ in rounds(frame)]


def _transform_map(over: Run, steps: Steps, parts: list[Run], cost: int) -> Run:
    rounds, made = _rounds(over, steps, parts, cost), parts[-1]
    return lambda frame: {key_of(key): made(frame) for key in rounds(frame)}


def _transform_entries(over: Run, steps: Steps, parts: list[Run], cost: int) -> Run:
    rounds, made = _rounds(over, steps, parts, cost), parts[-1]

    def run(frame: Frame) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        for _ in rounds(frame):
            entries = made(frame)
            if not isinstance(entries, dict):
                raise no_such_overload()
            for key, value in entries.items():
                if key in out:
                    raise EvaluationError(f"insert failed: key {values.shown_key(key)} already exists")
                out[key] = value
        return out

    return run


def _sort_by(over: Run, steps: Steps, parts: list[Run], cost: int) -> Run:
    rounds, made = _rounds(over, steps, parts, cost), parts[-1]

    def run(frame: Frame) -> list[Any]:
        by_key = cmp_to_key(compare)
        pairs = [(by_key(made(frame)), item) for item in rounds(frame)]
        return [item for _, item in sorted(pairs, key=lambda pair: pair[0])]

    return run


def compare(one: Any, other: Any) -> int:
    return -1 if values.less(one, other) else 1 if values.less(other, one) else 0


LOOPS: dict[str, Callable[[Run, Steps, list[Run], int], Run]] = {
    "all": _all,
    "exists": _exists,
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
    "sortBy": _sort_by,
    "transformList": _map,
    "transformMap": _transform_map,
    "transformMapEntry": _transform_entries,
}
