"""The embedded engine: one SQLite file, one writer with group commit, reads that never block it.

A commit's way: ``engine`` → ``writer`` gathers what one turn of the event loop brings, decides each transaction with
``group.settle``, appends the group to the ``log`` and has its thread make it durable → back on the event loop, once
per group, ``feed`` hands the changes to the watches, and only then do the writers get their answers.

- ``engine``: the store as the rest of Seamark sees it
- ``file``: opening the file: lock, format, migrations
- ``log``: every SQL statement about keys and history
- ``group``: which transactions of a group happen (pure)
- ``writer``: group commit
- ``reader``: connections that only read
- ``worker``: the threads behind both
- ``feed``: watches: replay, then live
- ``checkpoints``: moving the write-ahead log into the file off the writers' path
"""

from seamark.store.sqlite.engine import SqliteStore

__all__ = ["SqliteStore"]
