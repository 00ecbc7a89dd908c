"""Short hashes of templates, for names and labels."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

# No vowels and nothing that reads like one, so that no hash spells a word.
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"

_canonical = msgspec.json.Encoder(order="deterministic")


def short_hash(content: Any, collisions: int | None = None) -> str:
    """The same for the same content; ``collisions`` makes it another one where the first was taken."""
    seed = b"" if collisions is None else str(collisions).encode()
    digest = hashlib.blake2b(_canonical.encode(content), digest_size=4, salt=seed[:16]).digest()
    # Ten digits at most, each replaced by a letter: what Kubernetes' own hashes look like.
    return "".join(ALPHABET[ord(digit) % len(ALPHABET)] for digit in str(int.from_bytes(digest, "big")))
