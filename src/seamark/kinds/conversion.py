"""How a webhook converts the objects of a kind between its versions, as the rest of the server sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from seamark.errors import Object


class Conversion(Protocol):
    """Converts the objects of one version of a custom resource; raises ``ApiError`` if the webhook does not do it."""

    def needed(self, stored: Object) -> bool:
        """Whether a stored object is of another version."""
        ...

    async def shown(self, stored: Sequence[Object]) -> Sequence[Object]:
        """Stored objects, in this version."""
        ...

    async def to_stored(self, obj: Object) -> Object:
        """An object of this version, as it is stored."""
        ...

    async def moved(self, obj: Object, version: str) -> Object:
        """An object of this version, in another one."""
        ...
