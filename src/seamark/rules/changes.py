"""What a plan wants written."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class Changes(msgspec.Struct, Generic[T], frozen=True):
    """Objects to create, update and delete.  ``delete`` holds the objects as last seen."""

    create: tuple[T, ...] = ()
    update: tuple[T, ...] = ()
    delete: tuple[T, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.create or self.update or self.delete)
