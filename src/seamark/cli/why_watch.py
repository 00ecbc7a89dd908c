"""``seamark why --watch``: look again whenever something changes, and speak when the answer does."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seamark.access.cluster import Cluster

_SETTLE = 0.3  # changes come in bursts
_SAFETY_NET = 30.0


async def keep_telling(cluster: Cluster, namespace: str, look: Callable[[], Awaitable[tuple[str, int]]]) -> int:
    """Until interrupted; every new answer is printed under the time of day."""
    from seamark.why.follow import following

    before = ""
    async with following(cluster, namespace) as changed:
        while True:
            changed.clear()
            text, _ = await look()
            if text != before:
                print(f"{'' if not before else chr(10)}--- {time.strftime('%H:%M:%S')}\n{text}", flush=True)
                before = text
            try:
                await asyncio.wait_for(changed.wait(), _SAFETY_NET)
            except TimeoutError:
                continue
            await asyncio.sleep(_SETTLE)
            sys.stdout.flush()
