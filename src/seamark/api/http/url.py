"""What a URL asks for: its path leads to a target, its query holds options.

/api/v1/nodes                                       all objects of a cluster-wide kind
/api/v1/nodes/NAME[/SUBRESOURCE]                    one of them
/api/v1/pods                                        all objects of a namespaced kind, in all namespaces
/api/v1/namespaces/NS/pods[/NAME[/SUBRESOURCE…]]    those of one namespace, one of them
/api/v1/watch/…                                     the same, as a watch (an old form kept for old clients)
/apis/GROUP/VERSION/…                               the same for the other groups
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

import msgspec

from seamark import errors
from seamark.api.authorization import Attributes
from seamark.api.call import DeleteOptions, ListOptions, Target, WriteOptions, not_found, target
from seamark.kinds.table import Kinds
from seamark.kinds.values.fields import show
from seamark.kinds.values.selectors import parse_fields

Query = dict[str, list[str]]


class Route(msgspec.Struct, frozen=True, gc=False):
    """What a path leads to; ``watch`` if the path itself says that it is a watch."""

    target: Target
    watch: bool = False


def parse(path: str, kinds: Kinds) -> Route | None:
    """The target of a path below a served group and version; None if Kubernetes knows nothing of the path.

    Raises NotFound for a resource that a served group does not have.
    """
    if path.startswith("//"):
        return None
    parts = path.strip("/").split("/")
    if parts[0] == "api":
        group, rest = "", parts[1:]
    elif parts[0] == "apis" and len(parts) > 1:
        group, rest = parts[1], parts[2:]
    else:
        return None
    if group and group not in kinds.groups:
        return None
    try:
        if len(rest) < 2:
            raise not_found()
        version, *rest = rest
        watch = rest[0] == "watch"
        return Route(_object(kinds, group, version, rest[1:] if watch else rest), watch)
    except errors.NotFound as error:
        if error.details or group in kinds.built_in_groups:
            raise
        return None  # of a group of custom resources, only what definitions define is known


def _object(kinds: Kinds, group: str, version: str, parts: list[str]) -> Target:
    namespace = ""
    # `namespaces/NS/pods` leads into a namespace; `namespaces/NS/status` is the Namespace's own subresource.
    if len(parts) >= 3 and parts[0] == "namespaces":
        inner = kinds.by_plural(group, version, parts[2])
        if inner is not None and inner.resource.namespaced:
            namespace, parts = parts[1], parts[2:]
    if not parts:
        raise not_found()
    plural, name, subresource = (*parts[:3], "", "")[:3]
    if len(parts) > 2 and not subresource:
        raise not_found()
    found = target(kinds.by_plural(group, version, plural), namespace, name, subresource)
    if len(parts) > 3 and not (found.subresource is not None and found.subresource.goes_on):
        raise not_found()
    return found


_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def asked(method: str, path: str, query: Query) -> Attributes:
    """What a request asks for by its path alone, whether that is served or not, as authorizers see it."""
    parts = path.strip("/").split("/")
    depth = {"api": 3, "apis": 4}.get(parts[0])
    if depth is None or len(parts) < depth:
        return Attributes(method.lower(), path=path)
    group, version, rest = parts[1] if depth == 4 else "", parts[depth - 2], parts[depth - 1 :]
    verb = _VERBS.get(method, "")
    if rest[0] in ("watch", "proxy") and len(rest) > 1:
        verb, *rest = rest
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in ("status", "finalize"):
            rest = rest[2:]
    resource, name, subresource = (*rest[:3], "", "")[:3]
    if not name:
        name = selected_name(query)
        if verb == "get":
            verb = "watch" if flag(query, "watch") else "list"
        elif verb == "delete":
            verb = "deletecollection"
    return Attributes(verb, group, version, resource, subresource, namespace, name)


def selected_name(query: Query) -> str:
    """The one name that a field selector chooses: a right on an object of that name is enough for such a list."""
    text = first(query, "fieldSelector")
    if "metadata.name" not in text:
        return ""
    try:
        return parse_fields(text).required("metadata.name") or ""
    except errors.BadRequest:
        return ""  # it is refused later


# --- queries ---------------------------------------------------------------------------------------


# Each takes time before it is known who asks.  To leave out the rest would change what is asked for.
MOST_PARAMETERS = 4096


def parse_query(text: str) -> Query:
    """Values by name; a name given twice keeps both values.  Raises BadRequest if there are too many."""
    if text.count("&") >= MOST_PARAMETERS:
        raise errors.BadRequest(f"the query has more than {MOST_PARAMETERS} parameters")
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


# Possessive (``++``), so that the time for a long text that does not match is linear: digits are never given back.
_NUMBER = r"(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)"
_duration = re.compile(rf"[-+]?(?:{_NUMBER}(?:ns|us|µs|μs|ms|s|m|h))++")
_number = re.compile(rf"[-+]?{_NUMBER}")


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
