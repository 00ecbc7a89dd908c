"""How many requests were answered, and how fast, by verb and resource.

Definitions and aggregated servers come and go under ever new names, so what was measured of them goes with them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from seamark.metrics import Distribution, Registry, Value

AGGREGATED = "aggregated."  # before the group of an aggregated server, in the place of a resource


class Measures:
    """The measures of one server; ``groups`` are those that aggregated servers have now."""

    def __init__(self, metrics: Registry, groups: Callable[[], Collection[str]]) -> None:
        self._metrics = metrics
        self._groups = groups
        self._of: dict[tuple[str, str, int], tuple[Value, Distribution]] = {}

    def count(self, verb: str, resource: str, status: int, began: float) -> None:
        """An answer with this status; ``began`` is when its request was taken up."""
        key = (verb, resource, status)
        found = self._of.get(key)
        if found is None:
            self._forget_aggregated()
            found = self._of[key] = (
                self._metrics.counter(
                    "seamark_api_requests_total",
                    "Requests answered.",
                    *(verb, resource, str(status)),
                    labels=("verb", "resource", "code"),
                ),
                self._metrics.histogram(
                    "seamark_api_request_seconds",
                    "Time to answer, watches to their first byte.",
                    *(verb, resource),
                    labels=("verb", "resource"),
                ),
            )
        found[0].add()
        found[1].observe(time.perf_counter() - began)

    def forget(self, resource: str) -> None:
        """Say no more about a resource that is gone."""
        self._of = {key: kept for key, kept in self._of.items() if key[1] != resource}
        for label in ("resource", "crd_name"):
            self._metrics.forget_all(label, resource)

    def _forget_aggregated(self) -> None:
        measured = {resource for _, resource, _ in self._of if resource.startswith(AGGREGATED)}
        for gone in measured - {f"{AGGREGATED}{group}" for group in self._groups()}:
            self.forget(gone)
