"""Where in etcd's key space a store lives.

A store owns what lies under ``<prefix>/``.  Besides the keys of its rows there is one more, the *marker*, which every
transaction writes too.  Its mod revision is therefore the store's own revision, whoever else uses the same etcd; and
since every watch of ours sees the marker, a watch reaches every revision the store has had, without having to ask the
server how far it is (which older servers answer too early: etcd issue 15220).
"""

from __future__ import annotations

from typing import Any

from seamark.store.protocol import Row

# A NUL is in no row's key, so the marker comes before all of them and is none of them.
MARKER = "/\0"
FIRST_KEY = "/\1"
AFTER_LAST_KEY = "0"  # the character after the slash


class Keyspace:
    """Keys of the store to keys of etcd and back."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix.rstrip("/").encode()
        self.marker = self.encode(MARKER)
        self.whole = (self.encode("/"), self.encode(AFTER_LAST_KEY))

    def encode(self, key: str) -> bytes:
        return self._prefix + key.encode()

    def decode(self, key: bytes) -> str:
        return key[len(self._prefix) :].decode()

    def range(self, start: str, end: str) -> tuple[bytes, bytes]:
        """``start <= key < end`` for etcd; an empty ``end`` means just one key, to etcd as well."""
        if not end:
            return self.encode(start), b""
        return self.encode(max(start, FIRST_KEY)), self.encode(min(end, AFTER_LAST_KEY))

    def row(self, found: Any) -> Row:
        return Row(self.decode(found.key), found.value, found.mod_revision, found.create_revision)
