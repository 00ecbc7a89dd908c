"""The embedded engine: one SQLite file, one writer with group commit, reads that never block the writer.

How a commit runs: ``writer`` collects the transactions of one turn of the event loop, decides each of them with
``group.settle``, appends the group to the ``log`` and lets its thread make it durable.  Back on the event loop,
``feed`` passes the group's changes to the watches, and then each ``commit`` call gets its answer.

- ``engine``: implements the ``Store`` protocol and runs checkpoints
- ``file``: opens the file: lock, format, migrations
- ``opened``: the files of an open store, together
- ``acknowledged``: a record beside the file, by which missing writes are noticed
- ``unread_log``: finds commits in a write-ahead log that SQLite does not read, because a page before them is damaged
- ``log``: every SQL statement about keys and history
- ``group``: decides which transactions of a group succeed (pure)
- ``writer``: group commit
- ``reader``: read-only connections
- ``worker``: the thread behind a writer or reader
- ``feed``: watches: the log from a past revision, then live changes
- ``outside``: reads the file from outside, also where only reading is allowed
- ``upkeep``: the file from outside: copies for backups, and a check of its contents
"""

from seamark.store.sqlite.engine import SqliteStore

__all__ = ["SqliteStore"]
