"""What every way into the server has in common, whether it comes over HTTP or from a component of this process."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from seamark.api.delete import Deleter
from seamark.api.state.cache import Cache
from seamark.api.state.read import Reader
from seamark.api.state.watch import Watches
from seamark.api.write import Writer
from seamark.kinds.table import Kinds


class Core(msgspec.Struct, frozen=True):
    """The parts that read, write and watch the state, and the clock they go by."""

    kinds: Kinds
    cache: Cache
    reader: Reader
    writer: Writer
    deleter: Deleter
    watches: Watches
    clock: Callable[[], float]
