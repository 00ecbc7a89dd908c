"""Versions and continue tokens as clients send them: which state of the cluster a call is about.

A continue token says where the next page of a list begins; only the server reads it.
"""

from __future__ import annotations

import base64
import posixpath
import re
from typing import Any

import msgspec

from seamark.errors import ApiError, BadRequest
from seamark.kinds.language import inner_json, json_scan
from seamark.kinds.language.decode import found
from seamark.kinds.values.fields import show

VERSION = "meta.k8s.io/v1"

_NOT_VALID = "continue key is not valid"
_outside = re.compile(r"[^A-Za-z0-9_\-]")
_FIELDS = (("v", str, "string"), ("rv", int, "int64"), ("start", str, "string"))


def unsigned(text: str) -> int:
    """A resourceVersion as a number; ValueError with Go's sentence if it is not one."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"strconv.ParseUint: parsing {show(text)}: invalid syntax")
    number = int(text) if len(text) <= 20 else 2**64
    if number >= 2**64:
        raise ValueError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return number


def number_or_zero(text: str) -> int:
    """A resourceVersion as a number; 0 if it is not one."""
    try:
        return unsigned(text)
    except ValueError:
        return 0


def of_read(text: str) -> int:
    """The resourceVersion of a get or list; 0 for none."""
    if not text:
        return 0
    try:
        return unsigned(text)
    except ValueError as error:
        sentence = f"Invalid value: {show(text)}: {error}"
        raise BadRequest(f"invalid resource version: resourceVersion: {sentence}") from None


def of_write_or_watch(text: str) -> int:
    """The resourceVersion of a write or a watch, for which Kubernetes answers a bare 500 without a reason."""
    try:
        return unsigned(text or "0")
    except ValueError as error:
        raise ApiError(str(error)) from None


class Continue(msgspec.Struct):
    """A continue token: begin at ``start`` (a path below the list's prefix) in the state of revision ``rv``."""

    v: str
    rv: int
    start: str

    def encode(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")


def decode(token: str) -> Continue:
    """Raises :class:`BadRequest`, with Go's words about what cannot be read."""
    begin = _read(_unwrapped(token))
    if begin.v != VERSION:
        raise _invalid(f"{_NOT_VALID}: server does not recognize this encoded version {begin.v}")
    if begin.rv == 0:
        raise _invalid(f"{_NOT_VALID}: incorrect encoded start resourceVersion (version {VERSION})")
    if not begin.start:
        raise _invalid(f"{_NOT_VALID}: encoded start key empty (version {VERSION})")
    path = "/" + begin.start.removeprefix("/")
    if posixpath.normpath(path) != path or path.startswith("//"):
        raise _invalid(f"{_NOT_VALID}: {begin.start}")
    return begin


def _unwrapped(token: str) -> bytes:
    text = token.replace("\r", "").replace("\n", "")
    if wrong := _outside.search(text):
        raise _invalid(f"{_NOT_VALID}: illegal base64 data at input byte {wrong.start()}")
    if len(text) % 4 == 1:
        raise _invalid(f"{_NOT_VALID}: illegal base64 data at input byte {len(text) - 1}")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _read(raw: bytes) -> Continue:
    try:
        json_scan.check(raw)
        value = inner_json.read(raw)
    except json_scan.SyntaxFault as fault:
        raise _invalid(f"{_NOT_VALID}: {fault}") from fault
    except inner_json.Unreadable as error:  # not UTF-8, or very deep, as no token of ours is
        raise _invalid(_NOT_VALID) from error
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise _invalid(
            f"{_NOT_VALID}: json: cannot unmarshal {found(value)} into Go value of type storage.continueToken"
        )
    fields: dict[str, Any] = {}
    for name, type, go_type in _FIELDS:
        given = value.get(name)
        large = isinstance(given, int) and not -(2**63) <= given < 2**63
        if given is not None and (given.__class__ is not type or large):
            number = f" {given}" if isinstance(given, float) or large else ""
            raise _invalid(
                f"{_NOT_VALID}: json: cannot unmarshal {found(given)}{number} into Go struct field "
                f"continueToken.{name} of type {go_type}"
            )
        fields[name] = type() if given is None else given
    return Continue(**fields)


def _invalid(why: str) -> BadRequest:
    return BadRequest(f"invalid continue token: {why}")
