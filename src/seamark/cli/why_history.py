"""``seamark why svc/NAME --since 1h``: when each address came and went, and what caused it."""

from __future__ import annotations

import argparse
import re
import time
from typing import TYPE_CHECKING

from seamark.cli.failure import Failure
from seamark.cli.why import style_of

if TYPE_CHECKING:
    from seamark.access.cluster import Cluster

_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds_of(text: str) -> float:
    """``90s``, ``1h30m``, ``2d``; ``Failure`` for what is no duration."""
    if not text or _DURATION.sub("", text):
        raise Failure(f"--since {text}: not a duration such as 30m, 1h30m or 2d", 2)
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(text))


async def tell_history(options: argparse.Namespace, kind: str, name: str, cluster: Cluster, namespace: str) -> int:
    from seamark.why import machine
    from seamark.why.chronicle import chronicle, render, to_builtins
    from seamark.why.observe import observe_service
    from seamark.why.recall import recall

    since = seconds_of(options.since)
    if kind != "service" or not name or options.watch:
        raise Failure("--since tells the history of one Service: svc/NAME", 2)
    world = await observe_service(cluster, (namespace, name), clock=time.time)
    memory = await recall(cluster, (namespace, name))
    told = chronicle(world, (namespace, name), memory, since=since)
    print(machine.text(to_builtins(told)) if options.output == "json" else render(told, style_of(options)))
    return 0 if told.found else 1
