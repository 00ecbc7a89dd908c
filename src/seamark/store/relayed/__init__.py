"""The engine of a process whose store is open in another process of this machine, which orders all commits.

- ``engine``: implements the ``Store`` protocol by asking that process over a channel
- ``serving``: the other end: answers the calls of such engines from the store that is open there
- ``board``: numbers that the processes share in memory, among them the store's revision
- ``messages``: the calls, and errors as bytes
"""

from seamark.store.relayed.board import Board
from seamark.store.relayed.engine import RelayedStore
from seamark.store.relayed.serving import AnnouncedStore, StoreCalls

__all__ = ["AnnouncedStore", "Board", "RelayedStore", "StoreCalls"]
