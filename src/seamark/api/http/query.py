"""Query strings: what they ask for, as the options of :mod:`seamark.api.call`."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

from seamark import errors
from seamark.api.call import DeleteOptions, ListOptions, WriteOptions
from seamark.kinds.values.fields import show

Query = dict[str, list[str]]


def parse_query(text: str) -> Query:
    """Values by name; a name given twice keeps both values."""
    query: Query = {}
    if text:
        for name, value in parse_qsl(text, keep_blank_values=True):
            query.setdefault(name, []).append(value)
    return query


def first(query: Query, name: str) -> str:
    values = query.get(name)
    return values[0] if values else ""


def flag(query: Query, name: str) -> bool:
    """A boolean as Kubernetes reads it: present means true, unless it says false or 0."""
    values = query.get(name)
    return bool(values) and values is not None and values[0].lower() not in ("false", "0")


def _flag_if_given(query: Query, name: str) -> bool | None:
    return flag(query, name) if name in query else None


def integer(query: Query, name: str) -> int | None:
    """A whole number of 64 bits; None if it is not asked for."""
    values = query.get(name)
    if not values:
        return None
    text = values[0]
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise errors.BadRequest(f"strconv.ParseInt: parsing {show(text)}: invalid syntax")
    number = int(text) if len(digits) < 20 else 2**63
    if not -(2**63) <= number < 2**63:
        raise errors.BadRequest(f'strconv.ParseInt: parsing "{text}": value out of range')
    return number


_duration = re.compile(r"[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+")
_number = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")


def check_timeout(query: Query) -> None:
    """Refuse a ``timeout`` that is not a duration.  A valid one is ignored, because all answers are fast."""
    text = first(query, "timeout")
    if not text or text in ("0", "+0", "-0") or _duration.fullmatch(text):
        return
    wrong = "missing unit in" if _number.fullmatch(text) else "invalid"
    raise errors.BadRequest(f"invalid timeout specified in the request URL - time: {wrong} duration {show(text)}")


def list_options(query: Query, *, watch: bool) -> ListOptions:
    """``watch`` if the path already says that it is one."""
    options = ListOptions(
        labels=first(query, "labelSelector"),
        fields=first(query, "fieldSelector"),
        limit=max(0, integer(query, "limit") or 0),
        continue_=first(query, "continue"),
        version=first(query, "resourceVersion"),
        match=first(query, "resourceVersionMatch"),
        watch=watch or flag(query, "watch"),
        bookmarks=flag(query, "allowWatchBookmarks"),
        initial_events=_flag_if_given(query, "sendInitialEvents"),
        timeout_seconds=integer(query, "timeoutSeconds"),
    )
    options.check()
    return options


def write_options(query: Query, kind: str) -> WriteOptions:
    """``kind`` is CreateOptions, UpdateOptions or PatchOptions."""
    options = _write_options(query)
    options.check(kind)
    return options


def patch_options(query: Query, *, apply: bool) -> WriteOptions:
    options = _write_options(query)
    options.check_patch(apply=apply)
    return options


def _write_options(query: Query) -> WriteOptions:
    return WriteOptions(
        tuple(query.get("dryRun", ())),
        first(query, "fieldManager"),
        first(query, "fieldValidation"),
        _flag_if_given(query, "force"),
    )


def delete_options(query: Query) -> DeleteOptions:
    """For a DELETE without a body."""
    options = DeleteOptions(
        dry_run=tuple(query.get("dryRun", ())),
        grace_seconds=integer(query, "gracePeriodSeconds"),
        propagation=first(query, "propagationPolicy"),
        orphan=_flag_if_given(query, "orphanDependents"),
    )
    options.check()
    return options
