"""Which webhooks and policies edit an object once more, because it changed after they saw it."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from seamark.errors import Object
from seamark.kinds.admission import Request


class Rounds(msgspec.Struct):
    """What the webhooks, or the policies, did to one object so far."""

    left: Object = {}  # the object as they left it
    invoked: set[Hashable] = set()  # those that are asked again if the object changes
    again: set[Hashable] = set()  # those that are to be asked again

    @classmethod
    def of(cls, request: Request, step: object) -> Rounds:
        """What a step of admission knows of this request, as its next round begins."""
        memory = request.memory = request.memory or {}
        rounds: Rounds = memory.setdefault(step, cls())
        if request.round and request.obj != rounds.left:
            rounds.changed()  # by the other steps
        return rounds

    def skips(self, request: Request, which: Hashable) -> bool:
        return bool(request.round) and which not in self.again

    def changed(self) -> None:
        self.again |= self.invoked
        self.invoked.clear()

    def end(self, request: Request) -> None:
        """Remember the object as it is now; it may be edited in place later."""
        self.left = msgspec.json.decode(msgspec.json.encode(request.obj))
