"""Our tables in the kernel: read as a ``Ruleset``, changed by transactions."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from seamark.linux.netlink import (
    NFTABLES,
    Message,
    Netlink,
    attributes,
    pairs,
    string,
    text,
)
from seamark.proxy.nftables import ruleset as r
from seamark.proxy.nftables.expressions import verdict_data
from seamark.proxy.nftables.layout import NUMBER, SETS


class Kernel:
    """nftables as the kernel has it, in this network namespace or in that of the socket."""

    def __init__(self, table: str, opened: socket.socket | None = None) -> None:
        self._table = table
        self._netlink = Netlink(opened)

    def close(self) -> None:
        self._netlink.close()

    def carry_out(self, messages: Sequence[Message]) -> None:
        """All of these or none; raises ``NetlinkError``."""
        if messages:
            self._netlink.transaction(messages)

    def generation(self) -> int:
        """A number that changes with every change to nftables, by any program."""
        answers = self._netlink.request(NFTABLES, Message(r.GET_GENERATION, 0))
        return int.from_bytes(attributes(answers[0])[1])

    def tables(self) -> set[int]:
        """The families in which our table exists."""
        found = set()
        for family in NUMBER.values():
            for body in self._netlink.dump(NFTABLES, Message(r.GET_TABLE, family)):
                if string(attributes(body)[1]) == self._table:
                    found.add(family)
        return found

    def read(self) -> r.Ruleset:
        """What our tables hold, but not what packets put into sets."""
        found = r.Ruleset(self.tables())
        for family in found.tables:
            self._read_chains(found, family)
            self._read_sets(found, family)
        return found

    def _read_chains(self, into: r.Ruleset, family: int) -> None:
        hooks: dict[str, r.Hook | None] = {}
        rules: dict[str, list[str]] = {}
        for body in self._netlink.dump(NFTABLES, Message(r.GET_CHAIN, family)):
            found = attributes(body)
            if string(found[1]) == self._table:
                hooks[string(found[3])] = _hook(found)
        for body in self._netlink.dump(NFTABLES, Message(r.GET_RULE, family, text(1, self._table))):
            found = attributes(body)
            if string(found[1]) == self._table:
                rules.setdefault(string(found[2]), []).append(_comment(found.get(7, b"")))
        for name, hook in hooks.items():
            into.chains[family, name] = r.Chain((), hook, tuple(rules.get(name, ())))

    def _read_sets(self, into: r.Ruleset, family: int) -> None:
        sets = list(self._netlink.dump(NFTABLES, Message(r.GET_SET, family, text(1, self._table))))
        for found in map(attributes, sets):
            name, flags = string(found[2]), int.from_bytes(found.get(3, b""))
            data = int.from_bytes(found.get(7, b""))
            if int.from_bytes(found.get(6, b"")) == r.VERDICT:
                data = 0
            into.signatures[family, name] = (flags, int.from_bytes(found[5]), data)
            if not flags & r.FROM_PACKETS:
                into.elements[family, name] = self._read_elements(family, name)

    def _read_elements(self, family: int, name: str) -> r.Elements:
        elements: r.Elements = {}
        edges = (family, name) in SETS and SETS[family, name].edges
        query = Message(r.GET_ELEMENTS, family, text(1, self._table) + text(2, name))
        for body in self._netlink.dump(NFTABLES, query):
            for _, element in pairs(attributes(body).get(3, b"")):
                parts = attributes(element)
                if 1 not in parts:
                    continue  # the catch-all element, which we never make
                key = attributes(parts[1])[1]
                if 10 in parts:
                    key += attributes(parts[10])[1]
                if edges:
                    key += b"\1" if int.from_bytes(parts.get(3, b"")) & 1 else b"\0"
                elements[key] = _data(parts[2]) if 2 in parts else b""
        return elements


def _data(body: bytes) -> bytes:
    found = attributes(body)
    if 1 in found:
        return found[1]
    parts = attributes(found[2])
    code = int.from_bytes(parts[1], signed=True)
    return verdict_data(code, string(parts[2]) if 2 in parts else "")


def _hook(found: dict[int, bytes]) -> r.Hook | None:
    if 4 not in found:
        return None
    parts = attributes(found[4])
    return r.Hook(string(found[7]), int.from_bytes(parts[1]), int.from_bytes(parts[2], signed=True))


def _comment(data: bytes) -> str:
    """The comment in a rule's data: type, length and text of each entry."""
    at = 0
    while at + 2 <= len(data):
        kind, length = data[at], data[at + 1]
        if kind == 0:
            return string(data[at + 2 : at + 2 + length])
        at += 2 + length
    return ""
