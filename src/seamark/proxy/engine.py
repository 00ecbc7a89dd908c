"""What an engine is: it is given routes and carries them out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from seamark.rules.routing.model import NOT_SERVED, ServiceRoutes
from seamark.rules.routing.surroundings import Surroundings


class Unsupported(Exception):
    """This machine or user lacks something that an engine cannot do without; the message says what, and what to do."""


class Update(msgspec.Struct, frozen=True):
    """Routes that may have changed, by Service.  None: the Service is gone.

    With ``everything`` these are all Services there are: whatever the engine has besides them has to go.
    """

    routes: Mapping[str, ServiceRoutes | None]
    surroundings: Surroundings
    everything: bool = False


class Problem(msgspec.Struct, frozen=True):
    """A place of a Service that cannot be served."""

    service: str  # namespace/name
    text: str
    reason: str = NOT_SERVED  # of the Event that tells it

    def __str__(self) -> str:
        return f"{self.service}: {self.text}"


def reason_of(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)


# Called when a place cannot be served (with the problem), and when that is over (with None).
Report = Callable[[Problem | None], None]


class Engine(Protocol):
    """Carries routes out.  One task calls it, one call at a time.

    The first update has ``everything``.  Frontends and their places are unique over all Services, so an engine never
    has to choose between two of them.
    """

    async def start(self) -> None:
        """Get ready; raises ``Unsupported`` where that is not possible."""

    async def apply(self, update: Update) -> None:
        """Carry out an update as a whole.

        An exception means that nothing was carried out: the caller reports it and calls again later, with these
        routes and those that changed meanwhile.
        """

    async def close(self) -> None:
        """End, and leave behind what should outlive the process."""

    @property
    def rules(self) -> int:
        """How many rules, elements or listeners the engine has, for the metrics."""
