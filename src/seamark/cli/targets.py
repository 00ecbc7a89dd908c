"""What ``KIND[,KIND] [NAME …]`` and ``KIND/NAME …`` mean.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from seamark.cli.failure import Failure
from seamark.cli.server_kinds import ServerKind, ServerKinds


class Target(msgspec.Struct, frozen=True):
    """An object, or without a name all of a kind."""

    kind: ServerKind
    name: str = ""


def parse_targets(words: Sequence[str], kinds: ServerKinds) -> list[Target]:
    """The targets in the order given; ``Failure`` in kubectl's words for what makes no sense."""
    if any("/" in word for word in words):
        return [_pair(word, kinds) for word in words]
    first, *names = words
    found = [kind for word in first.split(",") if word for kind in _known(word, kinds)]
    if not found:
        raise Failure(f"no kind in {first!r}", 2)
    unique = list(dict.fromkeys(found))
    if not names:
        return [Target(kind) for kind in unique]
    return [Target(kind, name) for kind in unique for name in dict.fromkeys(names)]


def _pair(word: str, kinds: ServerKinds) -> Target:
    kind, slash, name = word.partition("/")
    if not slash:
        raise Failure(f"{word}: beside KIND/NAME every argument must be written so, for example {word}/NAME", 2)
    if not name or "/" in name:
        raise Failure(f"{word}: arguments of the form KIND/NAME have one slash and a name behind it", 2)
    known = _known(kind, kinds)
    if len(known) != 1:
        raise Failure(f"{word}: {kind} is not one kind", 2)
    return Target(known[0], name)


def _known(word: str, kinds: ServerKinds) -> tuple[ServerKind, ...]:
    known = kinds.find(word)
    if not known:
        raise Failure(f'the server doesn\'t have a resource type "{word}"')
    return known
