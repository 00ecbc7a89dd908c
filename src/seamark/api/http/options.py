"""What a query string asks for: one frozen struct per family of verbs, refused with Kubernetes' own sentences."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

import msgspec

from seamark import errors
from seamark.kinds.resource import Resource
from seamark.kinds.values.fields import Errors, forbidden, invalid, not_supported, refuse, required, show, too_long

Query = dict[str, list[str]]

FIELD_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


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
    """Refuse a ``timeout`` that is no duration.  Otherwise it changes nothing: whatever is answered here is fast."""
    text = first(query, "timeout")
    if not text or text in ("0", "+0", "-0") or _duration.fullmatch(text):
        return
    wrong = "missing unit in" if _number.fullmatch(text) else "invalid"
    raise errors.BadRequest(f"invalid timeout specified in the request URL - time: {wrong} duration {show(text)}")


def _options(kind: str) -> Resource:
    """Options are refused as if they were an object of their own kind."""
    return Resource("meta.k8s.io", "v1", "", kind)


class ListOptions(msgspec.Struct, frozen=True):
    """For get, list, watch and deletecollection."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    continue_: str = ""
    version: str = ""
    match: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout_seconds: int | None = None


def list_options(query: Query, *, watch: bool) -> ListOptions:
    initial = flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None
    options = ListOptions(
        labels=first(query, "labelSelector"),
        fields=first(query, "fieldSelector"),
        limit=max(0, integer(query, "limit") or 0),
        continue_=first(query, "continue"),
        version=first(query, "resourceVersion"),
        match=first(query, "resourceVersionMatch"),
        watch=watch or flag(query, "watch"),
        bookmarks=flag(query, "allowWatchBookmarks"),
        initial_events=initial,
        timeout_seconds=integer(query, "timeoutSeconds"),
    )
    wrong = _watch_mistakes(options) if options.watch else _list_mistakes(options)
    if wrong:
        raise refuse(_options("ListOptions"), "", wrong)
    return options


def _list_mistakes(options: ListOptions) -> Errors:
    wrong: Errors = []
    if options.match:
        if not options.version:
            wrong.append(
                forbidden(
                    "resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"
                )
            )
        if options.continue_:
            wrong.append(
                forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
            )
        if options.match not in ("Exact", "NotOlderThan"):
            wrong.append(not_supported("resourceVersionMatch", options.match, ("Exact", "NotOlderThan", "")))
        if options.match == "Exact" and options.version == "0":
            wrong.append(
                forbidden("resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
            )
    if options.initial_events is not None:
        wrong.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return wrong


def _watch_mistakes(options: ListOptions) -> Errors:
    wrong: Errors = []
    if options.initial_events is not None:
        if options.match != "NotOlderThan":
            wrong.append(
                forbidden(
                    "resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
                )
            )
            if options.match:
                wrong.append(not_supported("resourceVersionMatch", options.match, ("NotOlderThan",)))
    elif options.match:
        wrong.append(
            forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )
        )
    return wrong


class WriteOptions(msgspec.Struct, frozen=True):
    """For create, update and patch."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = ""
    force: bool = False


def write_options(query: Query, kind: str) -> WriteOptions:
    """``kind`` is CreateOptions, UpdateOptions or PatchOptions."""
    wrong: Errors = []
    dry = query.get("dryRun", [])
    if set(dry) - {"All"}:
        wrong.append(not_supported("dryRun", dry, ("All",)))
    manager = first(query, "fieldManager")
    if len(manager.encode()) > 128:
        wrong.append(too_long("fieldManager", 128))
    if not manager.isprintable():
        wrong.append(invalid("fieldManager", manager, "should only contain printable characters"))
    validation = first(query, "fieldValidation")
    if validation not in FIELD_VALIDATIONS:
        wrong.append(not_supported("fieldValidation", validation, FIELD_VALIDATIONS))
    if wrong:
        raise refuse(_options(kind), "", wrong)
    return WriteOptions(bool(dry), manager, validation, flag(query, "force"))


def patch_options(query: Query, *, apply: bool) -> WriteOptions:
    """As :func:`write_options`, and what only apply may or must have."""
    wrong: Errors = []
    if apply and not first(query, "fieldManager"):
        wrong.append(required("fieldManager", "is required for apply patch"))
    if not apply and "force" in query:
        wrong.append(forbidden("force", "may not be specified for non-apply patch"))
    if wrong:
        raise refuse(_options("PatchOptions"), "", wrong)
    return write_options(query, "PatchOptions")


class DeleteOptions(msgspec.Struct, frozen=True):
    """For delete and deletecollection; from the body where there is one, else from the query."""

    dry_run: bool = False
    grace_seconds: int | None = None
    propagation: str = ""
    orphan: bool | None = None
    uid: str = ""
    version: str = ""


def delete_options(query: Query, body: errors.Object | None) -> DeleteOptions:
    """``body`` is the decoded DeleteOptions, None if none was sent: then the query is asked."""
    if body is not None:
        preconditions = body.get("preconditions") or {}
        dry = body.get("dryRun") or []
        options = DeleteOptions(
            grace_seconds=body.get("gracePeriodSeconds"),
            propagation=body.get("propagationPolicy") or "",
            orphan=body.get("orphanDependents"),
            uid=preconditions.get("uid") or "",
            version=preconditions.get("resourceVersion") or "",
        )
    else:
        dry = query.get("dryRun", [])
        options = DeleteOptions(
            grace_seconds=integer(query, "gracePeriodSeconds"),
            propagation=first(query, "propagationPolicy"),
            orphan=flag(query, "orphanDependents") if "orphanDependents" in query else None,
        )
    wrong: Errors = []
    if options.orphan is not None and options.propagation:
        wrong.append(
            invalid(
                "propagationPolicy",
                options.propagation,
                "orphanDependents and deletionPropagation cannot be both set",
            )
        )
    elif options.propagation not in ("", "Foreground", "Background", "Orphan"):
        wrong.append(
            not_supported("propagationPolicy", options.propagation, ("Foreground", "Background", "Orphan", "nil"))
        )
    if set(dry) - {"All"}:
        wrong.append(not_supported("dryRun", dry, ("All",)))
    if wrong:
        raise refuse(_options("DeleteOptions"), "", wrong)
    return msgspec.structs.replace(options, dry_run=bool(dry))


def unsigned(text: str) -> int:
    """A resourceVersion as a number; ValueError with Go's sentence about one that is none."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"strconv.ParseUint: parsing {show(text)}: invalid syntax")
    number = int(text) if len(text) <= 20 else 2**64
    if number >= 2**64:
        raise ValueError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return number


def parse_version(text: str) -> int:
    """A resourceVersion in a read; 0 for none."""
    if not text:
        return 0
    try:
        return unsigned(text)
    except ValueError as error:
        sentence = f"Invalid value: {show(text)}: {error}"
        raise errors.BadRequest(f"invalid resource version: resourceVersion: {sentence}") from None
