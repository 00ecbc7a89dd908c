"""Maps the store's keys to etcd's and back.

A store owns the keys under ``<prefix>/``.  Besides the keys of its rows there is one more, the *marker*, which every
transaction writes too.  The marker's mod revision is therefore the store's own revision, also when other tenants write
to the same etcd.  Every watch includes the marker, so a watch reaches every revision of the store without asking the
server for its progress (older servers answer that too early: etcd issue 15220).
"""

from __future__ import annotations

from typing import Any

from seamark.store.protocol import Row

# Row keys contain no NUL, so the marker sorts before all of them and equals none.
MARKER = "/\0"
FIRST_KEY = "/\1"
AFTER_LAST_KEY = "0"  # the character after the slash


class Keyspace:
    """The keys of one store, which all begin with its prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix.rstrip("/").encode()
        self.marker = self.encode(MARKER)
        self.whole = (self.encode("/"), self.encode(AFTER_LAST_KEY))

    def encode(self, key: str) -> bytes:
        return self._prefix + key.encode()

    def decode(self, key: bytes) -> str:
        return key[len(self._prefix) :].decode()

    def range(self, start: str, end: str) -> tuple[bytes, bytes]:
        """etcd's range for ``start <= key < end``; an empty ``end`` means just the key ``start``, as in etcd."""
        if not end:
            return self.encode(start), b""
        return self.encode(max(start, FIRST_KEY)), self.encode(min(end, AFTER_LAST_KEY))

    def row(self, found: Any) -> Row:
        return Row(self.decode(found.key), found.value, found.mod_revision, found.create_revision)
