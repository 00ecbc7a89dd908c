"""Questions and records, as ``zone.answers`` makes them and ``wire`` writes them."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import msgspec

from seamark.dns.zone.names import Labels

Spelled = tuple[bytes, ...]  # a name's labels in their original spelling: upper and lower case are kept

IN = 1  # the class of all records here


class Type(IntEnum):
    """The record types that Seamark treats specially; a question's type may be any number."""

    A = 1
    NS = 2
    CNAME = 5
    SOA = 6
    PTR = 12
    MX = 15
    TXT = 16
    AAAA = 28
    SRV = 33
    OPT = 41
    HTTPS = 65
    IXFR = 251
    AXFR = 252
    ANY = 255


class Rcode(IntEnum):
    NOERROR = 0
    FORMERR = 1
    SERVFAIL = 2
    NXDOMAIN = 3
    NOTIMP = 4
    REFUSED = 5
    BADVERS = 16


def type_name(number: int) -> str:
    try:
        return Type(number).name
    except ValueError:
        return f"TYPE{number}"


class Question(msgspec.Struct, frozen=True, gc=False):
    """The name as spelled in the query, the same name in lower case (``name``), and the record type."""

    spelled: Spelled
    name: Labels
    type: int
    klass: int = IN

    @classmethod
    def about(cls, spelled: Spelled, type: int) -> Question:
        return cls(spelled, lowered(spelled), type)


class Record(NamedTuple):
    """One record; ``data`` is a sequence of raw bytes and names."""

    owner: Spelled
    type: int
    ttl: int
    data: tuple[bytes | Spelled, ...]


def spell(name: str) -> Spelled:
    """The labels of ``www.example.com``, with or without a final dot."""
    bare = name.rstrip(".")
    return tuple(bare.encode("utf-8").split(b".")) if bare else ()


def lowered(spelled: Spelled) -> Labels:
    return tuple([label.lower().decode("latin-1") for label in spelled])


def spellable(spelled: Spelled) -> bool:
    """Whether a name fits the limits of DNS: labels of 1 to 63 octets, 255 in all."""
    return all(0 < len(label) < 64 for label in spelled) and sum(map(len, spelled)) + len(spelled) < 255


def presented(spelled: Spelled) -> str:
    """A name in presentation form, with a final dot; special octets are escaped."""
    return "".join(_presented_label(label) + "." for label in spelled) or "."


def _presented_label(label: bytes) -> str:
    out = []
    for octet in label:
        character = chr(octet)
        if character in '.\\"();@$':
            out.append("\\" + character)
        elif 33 <= octet <= 126:
            out.append(character)
        else:
            out.append(f"\\{octet:03d}")
    return "".join(out)
