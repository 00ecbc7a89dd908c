"""Counters, gauges and histograms, and the text format that Prometheus reads.

Written here because importing the usual library takes longer than the rest of Seamark's start, and because an
observation on the hot path must be cheap: callers look up a metric's labels once and keep the child they get.
"""

from __future__ import annotations

import asyncio
import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import isfinite, isnan

LATENCY_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


def _number(value: float) -> str:
    if not isfinite(value):
        return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(value)


def _pairs(names: Sequence[str], values: Sequence[str]) -> str:
    """Labels as they stand between braces."""
    escaped = (value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for value in values)
    return ",".join(f'{name}="{value}"' for name, value in zip(names, escaped, strict=True))


def _braced(pairs: str) -> str:
    return f"{{{pairs}}}" if pairs else ""


@cache
def _edges(bounds: tuple[float, ...]) -> tuple[str, ...]:
    """The labels of a histogram's buckets; there are few kinds of histograms, and each is shown at every scrape."""
    return (*(f'le="{_number(bound)}"' for bound in bounds), 'le="+Inf"')


class Value:
    """The value of a counter or gauge."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, amount: float = 1.0) -> None:
        self.value += amount

    def set(self, value: float) -> None:
        self.value = value

    def lines(self, name: str, pairs: str) -> Iterator[str]:
        yield f"{name}{_braced(pairs)} {_number(self.value)}"


class Measured:
    """A gauge whose value is computed when the metrics are scraped."""

    __slots__ = ("read",)

    def __init__(self, read: Callable[[], float]) -> None:
        self.read = read

    def lines(self, name: str, pairs: str) -> Iterator[str]:
        yield f"{name}{_braced(pairs)} {_number(self.read())}"


class Distribution:
    """The buckets of a histogram."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, pairs: str) -> Iterator[str]:
        seen = 0
        before = f"{name}_bucket{{{pairs}," if pairs else f"{name}_bucket{{"
        for edge, count in zip(_edges(self.bounds), self.counts, strict=True):
            seen += count
            yield f"{before}{edge}}} {seen}"
        yield f"{name}_sum{_braced(pairs)} {_number(self.total)}"
        yield f"{name}_count{_braced(pairs)} {seen}"


Child = Value | Measured | Distribution

# Metrics as text, by name: what each is about, its kind, and its lines.
Exposed = dict[str, tuple[str, str, list[str]]]


class Registry:
    """All metrics of one process.  It is passed to the components that measure; there is no global registry."""

    def __init__(self) -> None:
        self._families: dict[str, _Family] = {}

    def counter(self, name: str, help: str, *values: str, labels: Sequence[str] = ()) -> Value:
        child = self._child(name, help, "counter", labels, values, Value)
        assert isinstance(child, Value)
        return child

    def gauge(self, name: str, help: str, *values: str, labels: Sequence[str] = ()) -> Value:
        child = self._child(name, help, "gauge", labels, values, Value)
        assert isinstance(child, Value)
        return child

    def histogram(
        self, name: str, help: str, *values: str, labels: Sequence[str] = (), buckets: Sequence[float] = LATENCY_BUCKETS
    ) -> Distribution:
        child = self._child(name, help, "histogram", labels, values, lambda: Distribution(buckets))
        assert isinstance(child, Distribution)
        return child

    def measured(
        self, name: str, help: str, read: Callable[[], float], *values: str, labels: Sequence[str] = ()
    ) -> None:
        """A gauge whose value ``read`` computes when the metrics are scraped; replaces one of the same labels."""
        self._family(name, help, "gauge", labels).children[tuple(values)] = Measured(read)

    def forget(self, name: str, *values: str) -> None:
        """Show a metric no longer with labels that begin with these."""
        if (family := self._families.get(name)) is not None:
            children, size = family.children, len(values)
            family.children = {labels: child for labels, child in children.items() if labels[:size] != values}

    def forget_all(self, label: str, value: str) -> None:
        """Show no longer what any metric says about a thing that is gone."""
        for family in self._families.values():
            if label in family.labels:
                at = family.labels.index(label)
                family.children = {values: child for values, child in family.children.items() if values[at] != value}

    def _child(
        self,
        name: str,
        help: str,
        kind: str,
        labels: Sequence[str],
        values: Sequence[str],
        make: Callable[[], Child],
    ) -> Child:
        family = self._family(name, help, kind, labels)
        child = family.children.get(tuple(values))
        if child is None:
            child = family.children[tuple(values)] = make()
        return child

    def _family(self, name: str, help: str, kind: str, labels: Sequence[str]) -> _Family:
        family = self._families.get(name)
        if family is None:
            family = self._families[name] = _Family(help, kind, tuple(labels))
        return family

    def exposed(self, **more: str) -> Exposed:
        """All metrics as they are now; ``more`` are labels that every line gets."""
        names, values = tuple(more), tuple(more.values())
        return {
            name: (
                family.help,
                family.kind,
                [
                    line
                    for own, child in family.children.items()
                    for line in child.lines(name, _pairs((*family.labels, *names), (*own, *values)))
                ],
            )
            for name, family in self._families.items()
        }

    def text(self) -> str:
        """All metrics in Prometheus' text format."""
        return exposition(self.exposed())


def exposition(*processes: Exposed) -> str:
    """The metrics of several processes in Prometheus' text format, in which all lines of a metric stand together."""
    out: list[str] = []
    for name in sorted(set().union(*processes)):
        found = [process[name] for process in processes if name in process]
        help, kind, _ = found[0]
        out += (f"# HELP {name} {help}", f"# TYPE {name} {kind}")
        for _, _, lines in found:
            out += lines
    return "\n".join(out) + "\n"


def measure_process(registry: Registry) -> None:
    """What this process takes, by the names that Prometheus' clients use; without /proc only its tasks."""
    registry.measured("seamark_tasks", "Tasks of the event loop.", lambda: len(asyncio.all_tasks()))
    if os.path.exists("/proc/self/statm"):
        registry.measured("process_resident_memory_bytes", "Resident memory.", _resident_bytes)
        registry.measured("process_open_fds", "Open file descriptors.", lambda: len(os.listdir("/proc/self/fd")) - 1)


def _resident_bytes() -> float:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class _Family:
    __slots__ = ("children", "help", "kind", "labels")

    def __init__(self, help: str, kind: str, labels: tuple[str, ...]) -> None:
        self.help, self.kind, self.labels = help, kind, labels
        self.children: dict[tuple[str, ...], Child] = {}
