"""The calls of the ``Store`` protocol, and its errors, as bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from seamark.store.protocol import Batch, Compacted, Future, Mismatch, Page, StoreError, Unavailable, Uncertain, Write


class Commits(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """Transactions that have nothing to do with each other; the answer is an outcome of each."""

    transactions: Sequence[Sequence[Write]]


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
decode_call = msgspec.msgpack.Decoder(Commits | Read | Check | Compact).decode
decode_watch = msgspec.msgpack.Decoder(Watch).decode
decode_page = msgspec.msgpack.Decoder(Page).decode
decode_batch = msgspec.msgpack.Decoder(Batch).decode
_decode_outcomes = msgspec.msgpack.Decoder(list[int | Refusal]).decode
_decode_refusal = msgspec.msgpack.Decoder(Refusal).decode


def refusal(error: StoreError | ValueError) -> Refusal:
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
    return Refusal(name, about)


def decode_error(body: bytes) -> Exception:
    return _error(_decode_refusal(body))


def decode_outcomes(body: bytes) -> list[int | Exception]:
    """Of several commits, the revision or the error of each."""
    return [each if isinstance(each, int) else _error(each) for each in _decode_outcomes(body)]


def _error(refused: Refusal) -> Exception:
    return _ERRORS[refused.name](*refused.about)
