"""The embedded engine: one SQLite file, one writer thread with group commit, reads that never block it.

A commit's way: ``engine`` gathers what one turn of the event loop brings → ``writer`` (its own thread) decides each
transaction with ``group.settle``, appends the group to the ``log`` in one durable SQLite transaction → back on the
event loop, once per group, ``feed`` hands the changes to the watches, and only then do the writers get their answers.

- ``engine``: the store as the rest of Seamark sees it
- ``file``: opening the file: lock, format, migrations
- ``log``: every SQL statement about keys and history
- ``group``: which transactions of a group happen (pure)
- ``writer``: the thread that writes
- ``feed``: watches: replay, then live
- ``checkpoints``: moving the write-ahead log into the file off the writers' path
"""

from seamark.store.sqlite.engine import SqliteStore

__all__ = ["SqliteStore"]
