"""The expressions that rules are made of, as the kernel reads them.

Registers are numbered in words of four bytes from ``FIRST`` on; a value that is longer takes several in a row, and a
shorter one is filled up with zeros.  So a key of several parts is built by loading its parts one behind the other.
"""

from __future__ import annotations

import sys

from seamark.linux.netlink import attribute, long, nested, number, text

FIRST = 8  # the first register
EQUAL, NOT_EQUAL = 0, 1
ACCEPT, DROP, JUMP, GOTO, RETURN = 1, 0, -3, -4, -5

_NETWORK_HEADER, _TRANSPORT_HEADER = 1, 2
_MARK, _L4PROTO = 3, 16
_CT_STATE, _CT_STATUS = 0, 2
_LOCAL = 2  # what the routing table calls an address of this machine
_ADDRESS_TYPE = 3
_RANDOM = 1
_FULLY_RANDOM = 16  # source ports
_UPDATE = 1
_TCP_RESET, _ICMP = 1, 0
_PORT_UNREACHABLE = {2: 3, 10: 4}  # ICMP code by family
CT_NEW, CT_DESTINATION_CHANGED = 8, 32


def _expression(name: str, *parts: bytes) -> bytes:
    return nested(1, text(1, name), nested(2, *parts))


def _value(kind: int, value: bytes) -> bytes:
    return nested(kind, attribute(1, value))


def word(value: int) -> bytes:
    """A number as registers hold it."""
    return value.to_bytes(4, sys.byteorder)


# --- loading ---------------------------------------------------------------------------------------


def network_header(register: int, offset: int, length: int) -> bytes:
    return _payload(register, _NETWORK_HEADER, offset, length)


def destination_port(register: int) -> bytes:
    return _payload(register, _TRANSPORT_HEADER, 2, 2)


def _payload(register: int, base: int, offset: int, length: int) -> bytes:
    return _expression("payload", number(1, register), number(2, base), number(3, offset), number(4, length))


def protocol(register: int) -> bytes:
    return _meta(register, _L4PROTO)


def mark(register: int) -> bytes:
    return _meta(register, _MARK)


def _meta(register: int, key: int) -> bytes:
    return _expression("meta", number(2, key), number(1, register))


def set_mark(register: int) -> bytes:
    return _expression("meta", number(2, _MARK), number(3, register))


def constant(register: int, value: bytes) -> bytes:
    return _expression("immediate", number(1, register), _value(2, value))


def random(register: int, below: int, offset: int = 0) -> bytes:
    return _expression("numgen", number(1, register), number(2, below), number(3, _RANDOM), number(4, offset))


def source_type(register: int) -> bytes:
    return _expression("fib", number(3, 1), number(2, _ADDRESS_TYPE), number(1, register))


def destination_type(register: int) -> bytes:
    return _expression("fib", number(3, 2), number(2, _ADDRESS_TYPE), number(1, register))


def ct_state(register: int) -> bytes:
    return _expression("ct", number(2, _CT_STATE), number(1, register))


def ct_status(register: int) -> bytes:
    return _expression("ct", number(2, _CT_STATUS), number(1, register))


# --- deciding --------------------------------------------------------------------------------------


def bits(register: int, mask: bytes, flip: bytes) -> bytes:
    """Keep the bits of ``mask``, then flip those of ``flip``."""
    lengths = number(1, register), number(2, register), number(3, len(mask))
    return _expression("bitwise", *lengths, _value(4, mask), _value(5, flip))


def compare(register: int, value: bytes, operation: int = EQUAL) -> bytes:
    return _expression("cmp", number(1, register), number(2, operation), _value(3, value))


def any_bit(register: int, value: int) -> list[bytes]:
    return [bits(register, word(value), word(0)), compare(register, word(0), NOT_EQUAL)]


def is_local(register: int) -> bytes:
    return compare(register, word(_LOCAL))


def contained(name: str, register: int, *, inverted: bool = False) -> bytes:
    flags = number(5, 1) if inverted else b""
    return _expression("lookup", text(1, name), number(2, register), flags)


def looked_up(name: str, key: int, into: int) -> bytes:
    return _expression("lookup", text(1, name), number(2, key), number(3, into))


def dispatched(name: str, key: int) -> bytes:
    """Go where the verdict map says."""
    return looked_up(name, key, 0)


# --- acting ----------------------------------------------------------------------------------------


def verdict(code: int, chain: str = "") -> bytes:
    return _expression("immediate", number(1, 0), nested(2, verdict_data(code, chain)))


def verdict_data(code: int, chain: str = "") -> bytes:
    return nested(2, number(1, code), text(2, chain) if chain else b"")


def remember(name: str, key: int, milliseconds: int) -> bytes:
    """Put an element into a set from a packet, or renew it."""
    return _expression("dynset", text(1, name), number(3, _UPDATE), number(4, key), long(6, milliseconds))


def change_destination(family: int, address: int, port: int) -> bytes:
    return _expression("nat", number(1, 1), number(2, family), number(3, address), number(5, port))


def masquerade() -> bytes:
    return _expression("masq", number(1, _FULLY_RANDOM))


def reset() -> bytes:
    return _expression("reject", number(1, _TCP_RESET), attribute(2, b"\0"))


def unreachable(family: int) -> bytes:
    return _expression("reject", number(1, _ICMP), attribute(2, bytes([_PORT_UNREACHABLE[family]])))
