"""The hooks of containers: what is asked of one after its start and before its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from seamark.clock import Clock
from seamark.nodes.running.machine.machine import Process
from seamark.nodes.running.machine.messages import Start
from seamark.nodes.running.probes import Answer, Errored
from seamark.nodes.running.spec import Action, Container

log = logging.getLogger(__name__)

Ask = Callable[[Action, Container, Start, float | None], Awaitable[Answer]]


class Hooks:
    """Carries out the hooks of one Pod's containers.

    ``ask`` puts a question to a container and may raise ``Errored``; ``tell`` records an Event, a reason and a message,
    about the container that is named last.
    """

    def __init__(self, pod: str, *, ask: Ask, tell: Callable[[str, str, str], None], clock: Clock) -> None:
        self._pod = pod  # its key, for the log
        self._ask, self._tell = ask, tell
        self._clock = clock

    async def carry_out(
        self,
        hook: Action,
        kind: Literal["PostStart", "PreStop"],
        container: Container,
        *,
        process: Process,
        start: Start,
        timeout: float | None = None,
    ) -> bool:
        """Whether the hook succeeded, or the container ended meanwhile."""
        asking = asyncio.create_task(self._failure(hook, container, start, timeout))
        either: list[asyncio.Future[Any]] = [asking, process.ended]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not asking.done():
            asking.cancel()
            await asyncio.wait([asking])
            return True
        if why := asking.result():
            log.info("%s: %s of %s failed: %s", self._pod, kind, container.name, why)
            self._tell(f"Failed{kind}Hook", f"{kind}Hook failed", container.name)
        return not why

    async def _failure(self, hook: Action, container: Container, start: Start, timeout: float | None) -> str:
        """Why the hook failed; "" if it succeeded."""
        if hook.sleep is not None:
            await self._clock.sleep(min(hook.sleep.seconds, timeout or hook.sleep.seconds))
            return ""
        try:
            answer = await self._ask(hook, container, start, timeout)
        except Errored as error:
            return str(error)
        return "" if answer.passed else answer.said or "it failed"
