"""What nftables tables hold, and the messages that turn what is there into what should be (pure)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from seamark.linux.netlink import APPEND, CREATE, Message, attribute, nested, number, text

Address = tuple[int, str]  # the family of a table, and the name of something in it
Elements = dict[bytes, bytes]  # keys, and what they lead to; see SetSpec

(NEW_TABLE, GET_TABLE, DELETE_TABLE, NEW_CHAIN, GET_CHAIN, DELETE_CHAIN, NEW_RULE, GET_RULE, DELETE_RULE) = range(9)
(NEW_SET, GET_SET, DELETE_SET, NEW_ELEMENTS, GET_ELEMENTS, DELETE_ELEMENTS, NEW_GENERATION, GET_GENERATION) = range(
    9, 17
)

INTERVAL, MAP, TIMEOUT, FROM_PACKETS, CONCATENATION = 0x4, 0x8, 0x10, 0x20, 0x80
VERDICT = 0xFFFFFF00
_TYPE_BITS = 6  # nft's own number of a type of several parts: six bits for each
_MESSAGE = 48_000  # bytes of elements in one message; the length of an attribute is limited to 65,535
_INTERVAL_END = number(3, 1)


class Part(msgspec.Struct, frozen=True):
    """One part of a key or value: its number among nft's data types, and its length in bytes."""

    type: int
    length: int

    @property
    def padded(self) -> int:
        return (self.length + 3) & ~3


ADDRESS = {2: Part(7, 4), 10: Part(8, 16)}  # by family
PROTOCOL, PORT, MARK = Part(12, 1), Part(13, 2), Part(19, 4)


class SetSpec(msgspec.Struct, frozen=True):
    """A set, or a map if it has ``data``.

    Keys and data are the bytes of their parts, each filled up to whole words.  With ``ranges``, a key is two keys: the
    first and the last of a range.  With ``edges`` (a set of one part only), a key has one more byte: 0 for the first
    of a range, 1 for the one behind its last.
    """

    key: tuple[Part, ...]
    data: tuple[Part, ...] = ()
    verdicts: bool = False
    ranges: bool = False
    edges: bool = False
    seconds: int = 0  # more than 0: packets put elements in, which are forgotten after so long
    size: int = 0

    @property
    def flags(self) -> int:
        found = INTERVAL if self.ranges or self.edges else 0
        found |= CONCATENATION if self.ranges else 0
        found |= MAP if self.data or self.verdicts else 0
        return found | (TIMEOUT | FROM_PACKETS if self.seconds else 0)

    @property
    def signature(self) -> tuple[int, int, int]:
        """What tells it from another set of its name in the kernel."""
        return self.flags, _length(self.key), _length(self.data)


class Rule(msgspec.Struct, frozen=True):
    comment: str
    expressions: bytes

    @property
    def signature(self) -> str:
        """Written into the kernel's rule as its comment, so that a rule that another program changed is noticed."""
        return f"{self.comment} [{hashlib.sha256(self.expressions).hexdigest()[:8]}]"


class Hook(msgspec.Struct, frozen=True):
    """Where packets enter a base chain."""

    type: str
    number: int
    priority: int


class Chain(msgspec.Struct, frozen=True):
    """``signatures`` are those of its rules; a chain that was read from the kernel has no others."""

    rules: tuple[Rule, ...] = ()
    hook: Hook | None = None
    seen: tuple[str, ...] = ()

    @property
    def signatures(self) -> tuple[str, ...]:
        return self.seen or tuple(rule.signature for rule in self.rules)


class Ruleset(msgspec.Struct):
    """Tables, as far as they are ours.  Elements that packets put in are not in it."""

    tables: set[int] = msgspec.field(default_factory=set)
    sets: dict[Address, SetSpec] = msgspec.field(default_factory=dict)
    chains: dict[Address, Chain] = msgspec.field(default_factory=dict)
    elements: dict[Address, Elements] = msgspec.field(default_factory=dict)
    signatures: dict[Address, tuple[int, int, int]] = msgspec.field(
        default_factory=dict
    )  # of sets read from the kernel

    def add(self, other: Ruleset) -> None:
        self.tables |= other.tables
        self.sets |= other.sets
        self.chains |= other.chains
        for address, elements in other.elements.items():
            self.elements.setdefault(address, {}).update(elements)

    def signature(self, address: Address) -> tuple[int, int, int] | None:
        if address in self.signatures:
            return self.signatures[address]
        return self.sets[address].signature if address in self.sets else None

    def without(self, family: int) -> Ruleset:
        return Ruleset(
            self.tables - {family},
            {address: each for address, each in self.sets.items() if address[0] != family},
            {address: each for address, each in self.chains.items() if address[0] != family},
            {address: each for address, each in self.elements.items() if address[0] != family},
            {address: each for address, each in self.signatures.items() if address[0] != family},
        )

    def __len__(self) -> int:
        rules = sum(len(chain.signatures) for chain in self.chains.values())
        return rules + sum(len(each) for each in self.elements.values())


# --- the difference --------------------------------------------------------------------------------


def difference(table: str, old: Ruleset, new: Ruleset) -> list[Message]:
    """The messages that turn ``old`` into ``new`` in tables of this name.

    They come in an order in which each finds what it refers to: what is needed is made first, and what is not needed
    any more is removed last.  A table in which something of ours has another shape than it should is made anew.
    """
    return list(_messages(table, old, new))


def _messages(table: str, old: Ruleset, new: Ruleset) -> Iterator[Message]:
    for family in sorted(old.tables):
        if family not in new.tables or _misshapen(old, new, family):
            yield delete_table(table, family)
            old = old.without(family)
    for family in sorted(new.tables - old.tables):
        yield Message(NEW_TABLE, family, text(1, table) + number(2, 0), CREATE)
    before = old.sets.keys() | old.signatures.keys()
    for position, address in enumerate(address for address in new.sets if address not in before):
        yield _new_set(table, address, new.sets[address], position + 1)
    for address, chain in new.chains.items():
        if address not in old.chains:
            yield _new_chain(table, address, chain.hook)
    for address, seen in old.chains.items():
        wanted = new.chains.get(address)
        if seen.signatures and (wanted is None or wanted.signatures != seen.signatures):
            yield Message(DELETE_RULE, address[0], text(1, table) + text(2, address[1]))
    for address, chain in new.chains.items():
        if address not in old.chains or old.chains[address].signatures != chain.signatures:
            for rule in chain.rules:
                yield _new_rule(table, address, rule)
    yield from _element_changes(table, old, new)
    for address in before - new.sets.keys():
        yield Message(DELETE_SET, address[0], text(1, table) + text(2, address[1]))
    for address in old.chains.keys() - new.chains.keys():
        yield Message(DELETE_CHAIN, address[0], text(1, table) + text(3, address[1]))


def _misshapen(old: Ruleset, new: Ruleset, family: int) -> bool:
    """Whether something in this table has another shape than it should."""
    sets = (address for address in new.sets if address[0] == family and old.sets.get(address) is not new.sets[address])
    if any(old.signature(address) not in (None, new.sets[address].signature) for address in sets):
        return True
    chains = (address for address in new.chains if address[0] == family and address in old.chains)
    return any(old.chains[address].hook != new.chains[address].hook for address in chains)


def _element_changes(table: str, old: Ruleset, new: Ruleset) -> Iterator[Message]:
    """First all that goes, then all that comes: an element that leads elsewhere now does both."""
    nothing: Elements = {}
    coming: list[tuple[Address, SetSpec, Elements]] = []
    for address in old.elements.keys() | new.elements.keys():
        spec = new.sets.get(address)
        if spec is None:
            continue  # the set goes, and its elements with it
        before, after = old.elements.get(address, nothing), new.elements.get(address, nothing)
        if not spec.edges:
            gone = [(key, None) for key, data in before.items() if after.get(key) != data]
            yield from _elements(DELETE_ELEMENTS, table, address, spec, gone)
            coming.append((address, spec, {key: data for key, data in after.items() if before.get(key) != data}))
        elif before != after:  # the edges of one range cannot be told from those of another
            if before:
                yield Message(DELETE_ELEMENTS, address[0], text(1, table) + text(2, address[1]))
            coming.append((address, spec, after))
    for address, spec, elements in coming:
        yield from _elements(NEW_ELEMENTS, table, address, spec, elements.items())


# --- the messages ----------------------------------------------------------------------------------


def delete_table(table: str, family: int) -> Message:
    return Message(DELETE_TABLE, family, text(1, table))


def _length(parts: Iterable[Part]) -> int:
    return sum(part.padded for part in parts)


def _type(parts: Iterable[Part]) -> int:
    found = 0
    for part in parts:
        found = found << _TYPE_BITS | part.type
    return found


def _new_set(table: str, address: Address, spec: SetSpec, identity: int) -> Message:
    body = [
        text(1, table),
        text(2, address[1]),
        number(3, spec.flags),
        number(4, _type(spec.key)),
        number(5, _length(spec.key)),
        number(10, identity),
    ]
    if spec.verdicts:
        body += [number(6, VERDICT), number(7, 0)]
    elif spec.data:
        body += [number(6, _type(spec.data)), number(7, _length(spec.data))]
    about = [number(1, spec.size)] if spec.size else []
    if spec.ranges:
        about.append(nested(2, *(nested(1, number(1, part.length)) for part in spec.key)))
    if about:
        body.append(nested(9, *about))
    return Message(NEW_SET, address[0], b"".join(body), CREATE)


def _new_chain(table: str, address: Address, hook: Hook | None) -> Message:
    body = text(1, table) + text(3, address[1])
    if hook is not None:
        body += nested(4, number(1, hook.number), number(2, hook.priority)) + text(7, hook.type)
    return Message(NEW_CHAIN, address[0], body, CREATE)


def _new_rule(table: str, address: Address, rule: Rule) -> Message:
    comment = rule.signature.encode() + b"\0"
    body = text(1, table) + text(2, address[1]) + nested(4, rule.expressions)
    return Message(NEW_RULE, address[0], body + attribute(7, bytes([0, len(comment)]) + comment), CREATE | APPEND)


def _elements(
    kind: int, table: str, address: Address, spec: SetSpec, elements: Iterable[tuple[bytes, bytes | None]]
) -> Iterator[Message]:
    head = text(1, table) + text(2, address[1])
    flags = CREATE if kind == NEW_ELEMENTS else 0
    packed: list[bytes] = []
    size = 0
    for key, data in elements:
        one = _element(spec, key, data)
        packed.append(one)
        size += len(one)
        if size > _MESSAGE:
            yield Message(kind, address[0], head + nested(3, *packed), flags)
            packed, size = [], 0
    if packed:
        yield Message(kind, address[0], head + nested(3, *packed), flags)


def _element(spec: SetSpec, key: bytes, data: bytes | None) -> bytes:
    if spec.ranges:
        half = len(key) // 2
        return nested(1, nested(1, attribute(1, key[:half])), nested(10, attribute(1, key[half:])))
    if spec.edges:
        return nested(1, nested(1, attribute(1, key[:-1])), _INTERVAL_END if key[-1] else b"")
    if data and spec.verdicts:
        return nested(1, nested(1, attribute(1, key)), nested(2, data))
    before, between = _frame(len(key), len(data or b""))
    return before + key + between + (data or b"")


@lru_cache
def _frame(key: int, data: int) -> tuple[bytes, bytes]:
    """What comes before the key of an element and between it and its data, whose lengths are in whole words.

    Elements are by far the most of what the kernel is told, and all of a set have the same lengths.
    """
    empty = nested(1, nested(1, attribute(1, bytes(key))), nested(2, attribute(1, bytes(data))) if data else b"")
    return empty[: len(empty) - key - (8 + data if data else 0)], empty[len(empty) - 8 - data :][:8] if data else b""
