"""Who asks, and how: what a write needs to know beyond the object itself."""

from __future__ import annotations

import msgspec


class User(msgspec.Struct, frozen=True):
    """Somebody the server knows, or ``system:anonymous``."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


class Writing(msgspec.Struct, frozen=True):
    """One write: by which field manager, whether for real, and since when it is.

    ``now`` is the moment of the request as RFC 3339; all timestamps of one write agree.
    """

    manager: str
    now: str
    dry_run: bool = False
    field_validation: str = ""
    user: User = User("system:anonymous")
