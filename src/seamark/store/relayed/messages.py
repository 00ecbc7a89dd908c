"""The calls of the ``Store`` protocol, and its errors, as bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from seamark.store.protocol import Batch, Compacted, Future, Mismatch, Page, StoreError, Unavailable, Uncertain, Write


class Commit(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    writes: Sequence[Write]


class Read(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    start: str
    end: str
    revision: int
    limit: int


class Check(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    pass


class Compact(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    revision: int


class Watch(msgspec.Struct, frozen=True, array_like=True, gc=False):
    prefix: str
    since: int


class Refusal(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An error: the name of its class, and what it is made from."""

    name: str
    about: tuple[str | int, ...]


_KINDS = (StoreError, Unavailable, Uncertain, Compacted, Future, Mismatch, ValueError)
_ERRORS: dict[str, Callable[..., Exception]] = {kind.__name__: kind for kind in _KINDS}

encode = msgspec.msgpack.Encoder().encode
decode_call = msgspec.msgpack.Decoder(Commit | Read | Check | Compact).decode
decode_watch = msgspec.msgpack.Decoder(Watch).decode
decode_page = msgspec.msgpack.Decoder(Page).decode
decode_batch = msgspec.msgpack.Decoder(Batch).decode
decode_revision = msgspec.msgpack.Decoder(int).decode
_decode_refusal = msgspec.msgpack.Decoder(Refusal).decode


def encode_error(error: StoreError | ValueError) -> bytes:
    about: tuple[str | int, ...]
    match error:
        case Compacted():
            about = (error.asked, error.oldest)
        case Future():
            about = (error.asked, error.current)
        case Mismatch():
            about = (error.key, error.found)
        case _:
            about = (str(error),)
    # An engine's own kind of error goes as the protocol's that it derives from.
    name = next(each.__name__ for each in type(error).__mro__ if each.__name__ in _ERRORS)
    return encode(Refusal(name, about))


def decode_error(body: bytes) -> Exception:
    refusal = _decode_refusal(body)
    return _ERRORS[refusal.name](*refusal.about)
