"""What ``KIND[,KIND] [NAME …]`` and ``KIND/NAME …`` mean.  Pure."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import msgspec

from seamark.cli.failure import Refusal
from seamark.cli.server_kinds import ServerKind, ServerKinds

Warn = Callable[[str], None]


class Target(msgspec.Struct, frozen=True):
    """An object, or without a name all of a kind; in the namespace asked for unless it names its own."""

    kind: ServerKind
    name: str = ""
    namespace: str = ""


def check_words_or_files(options: argparse.Namespace) -> None:
    """Objects are named by words or by files; both would leave open which is meant."""
    if options.what and options.filename:
        raise Refusal(
            "when paths, URLs, or stdin is provided as input, you may not specify resource arguments as well", 2
        )


def selection(options: argparse.Namespace) -> dict[str, str]:
    """The selectors given, as a server is asked for them."""
    chosen = {"labelSelector": options.selector, "fieldSelector": options.field_selector}
    return {key: value for key, value in chosen.items() if value}


def parse_targets(words: Sequence[str], kinds: ServerKinds, warn: Warn = lambda text: None) -> list[Target]:
    """The targets in the order given; ``Refusal`` in kubectl's words for what makes no sense."""
    if any("/" in word for word in words):
        return [_pair(word, kinds, warn) for word in words]
    first, *names = words
    unique = list(dict.fromkeys(kind for word in first.split(",") for kind in _known(word, kinds, warn)))
    if not names:
        return [Target(kind) for kind in unique]
    return [Target(kind, name) for kind in unique for name in names]


def _pair(word: str, kinds: ServerKinds, warn: Warn) -> Target:
    kind, slash, name = word.partition("/")
    if not slash:
        raise Refusal(
            "there is no need to specify a resource type as a separate argument when passing arguments in "
            f"resource/name form (e.g. 'seamark get resource/<resource_name>'): {word}",
            2,
        )
    if "/" in name:
        raise Refusal("arguments in resource/name form may not have more than one slash", 2)
    if not name or not kind or "," in kind:
        raise Refusal("arguments in resource/name form must have a single resource and name", 2)
    known = _known(kind, kinds, warn)
    if len(known) != 1:
        raise Refusal(f"{word}: {kind} is not one kind, but several", 2)
    return Target(known[0], name)


def _known(word: str, kinds: ServerKinds, warn: Warn) -> tuple[ServerKind, ...]:
    known = kinds.find(word)
    if not known:
        raise Refusal(f'the server doesn\'t have a resource type "{word.partition(".")[0]}"')
    for other in kinds.less_meant(word):
        label = f"{other.resource.plural}.{other.resource.group}".rstrip(".")
        warn(f'short name "{word}" could also match lower priority resource {label}')
    return known
