"""Acting as another user by the ``Impersonate-*`` headers, with the rights that Kubernetes asks for.

There are two ways.  By *legacy* impersonation, the verb ``impersonate`` on users, groups, ServiceAccounts, uids and
extras lets the sender do all that the other user may do.  By *constrained* impersonation, the verb
``impersonate:MODE`` says whom the sender may be, and ``impersonate-on:MODE:VERB`` what he may do as such a user.  The
mode follows from the user: the sender's own node, any node, a ServiceAccount, or anyone else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote

import msgspec

from seamark import errors
from seamark.api.authorization import ANONYMOUS, AUTHENTICATED, MASTERS, Attributes, Authorizer, User, check
from seamark.kinds.values.fields import show
from seamark.kinds.values.metadata import dns_subdomain

HEADERS = "impersonate-"
_LINE = f"\n{HEADERS}"
BETWEEN = "\n"  # between the values of a header that came several times
AUTHENTICATION = "authentication.k8s.io"
NODE_OF_POD = "authentication.kubernetes.io/node-name"
MODES = ("associated-node", "arbitrary-node", "serviceaccount", "user-info", "legacy")
LEGACY = len(MODES) - 1
MOST_SENDERS = 10_000

_SERVICE_ACCOUNT = re.compile("system:serviceaccount:(?P<namespace>[^:]+):(?P<name>[^:]+)")
_NODE = "system:node:"


def impersonates(headers: Mapping[str, str]) -> bool:
    """Whether there is any of these headers."""
    # Every request asks this, and one search through all names takes less than half the time of looking at each.
    return _LINE in "\n".join(("", *headers))


class Acting(NamedTuple):
    """Whom a sender acts as, and the verb of the constrained right to it; empty where it is the legacy one."""

    user: User
    constraint: str = ""


class Impersonation:
    """Decides whom the sender of a request acts as."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        # The mode that worked last for a sender: it is tried first, and if none works, its refusal is the answer.
        self._worked: dict[str, int] = {}

    def acting(self, sender: User, headers: Mapping[str, str], asked: Attributes) -> Acting | None:
        """The user that the headers name, None if they name none; raises if that is not allowed."""
        wanted = wanted_user(headers)
        if wanted is None:
            return None
        first = self._worked.get(sender.name)
        order = range(len(MODES)) if first is None else (first, *(i for i in range(len(MODES)) if i != first))
        refusal: errors.ApiError | None = None
        for mode in order:
            if mode != LEGACY and not applies(MODES[mode], wanted, sender):
                continue
            try:
                acting = self._as(sender, wanted, mode, asked)
            except errors.Forbidden as error:
                refusal = refusal or error
                continue
            if len(self._worked) >= MOST_SENDERS:
                self._worked.clear()
            self._worked[sender.name] = mode
            return acting
        assert refusal is not None, "the last mode is for every user"
        raise refusal

    def _as(self, sender: User, wanted: User, mode: int, asked: Attributes) -> Acting:
        constrained = mode != LEGACY
        if constrained:
            verb = f"impersonate-on:{MODES[mode]}:{asked.verb}"
            check(self._authorizer, sender, msgspec.structs.replace(asked, verb=verb))
        verb = f"impersonate:{MODES[mode]}" if constrained else "impersonate"
        for attributes in _needed(wanted, verb, constrained=constrained):
            check(self._authorizer, sender, attributes)
        if constrained:
            _check_sane(wanted, sender, verb)
        return Acting(acting_user(wanted, constrained=constrained), verb if constrained else "")


def wanted_user(headers: Mapping[str, str]) -> User | None:
    """The user as the headers describe it; None if they name none."""
    name = headers.get(f"{HEADERS}user", "").split(BETWEEN)[0]
    uid = headers.get(f"{HEADERS}uid", "").split(BETWEEN)[0]
    given = headers.get(f"{HEADERS}group")
    groups = tuple(given.split(BETWEEN)) if given is not None else ()
    prefix = f"{HEADERS}extra-"
    extra = tuple(
        sorted(
            (unquote(header.removeprefix(prefix)), tuple(values.split(BETWEEN)))
            for header, values in headers.items()
            if header.startswith(prefix)
        )
    )
    wanted = User(name, groups, uid, extra)
    if name:
        return wanted
    if uid or groups or extra:
        raise errors.BadRequest(f"requested {_in_go(wanted)} without impersonating a user name")
    return None


def applies(mode: str, wanted: User, sender: User) -> bool:
    """Whether a constrained mode is for such a user."""
    alone = not (wanted.uid or wanted.groups or wanted.extra)
    node = node_of(wanted.name)
    account = _SERVICE_ACCOUNT.fullmatch(wanted.name)
    if mode == "associated-node":
        own = dict(sender.extra).get(NODE_OF_POD)
        return alone and bool(node) and own == (node,) and _SERVICE_ACCOUNT.fullmatch(sender.name) is not None
    if mode == "arbitrary-node":
        return alone and bool(node)
    if mode == "serviceaccount":
        return alone and account is not None
    return not node and account is None


def node_of(name: str) -> str:
    """The node whose user has this name; empty for other users."""
    node = name.removeprefix(_NODE) if name.startswith(_NODE) else ""
    return "" if dns_subdomain(node) else node


def _needed(wanted: User, verb: str, *, constrained: bool) -> Iterator[Attributes]:
    """The rights that acting as this user needs, one for each thing said about it."""
    group = AUTHENTICATION if constrained else ""
    account = _SERVICE_ACCOUNT.fullmatch(wanted.name)
    if account:
        place, name = account["namespace"], account["name"]
        yield Attributes(verb, group, "v1", "serviceaccounts", namespace=place, name=name)
    elif constrained and (node := node_of(wanted.name)):
        name = "*" if verb.endswith("associated-node") else node
        yield Attributes(verb, group, "v1", "nodes", name=name)
    else:
        yield Attributes(verb, group, "v1", "users", name=wanted.name)
    if wanted.uid:
        yield Attributes(verb, AUTHENTICATION, "v1", "uids", name=wanted.uid)
    for each in wanted.groups:
        yield Attributes(verb, group, "v1", "groups", name=each)
    for key, values in wanted.extra:
        for value in values:
            yield Attributes(verb, AUTHENTICATION, "v1", "userextras", key, name=value)


def _check_sane(wanted: User, sender: User, verb: str) -> None:
    """Raise for groups and extras that constrained impersonation never gives."""
    wrong = ""
    if "" in wanted.groups:
        wrong = "impersonating the empty string group is not allowed"
    elif MASTERS in wanted.groups:
        wrong = "impersonating the system:masters group is not allowed"
    elif any("/" not in key or dns_subdomain(key.partition("/")[0]) for key, _ in wanted.extra):
        wrong = "impersonating an invalid key in extra is not allowed"
    elif any("" in values for _, values in wanted.extra):
        wrong = "impersonating the empty string value in extra is not allowed"
    if wrong:
        raise errors.Forbidden(f'User "{sender.name}" cannot {verb}: {wrong}', details={})


def acting_user(wanted: User, *, constrained: bool) -> User:
    """The wanted user with the groups that such a user always has."""
    groups = list(wanted.groups)
    if constrained and node_of(wanted.name):
        groups = ["system:nodes"]
    elif not groups and (account := _SERVICE_ACCOUNT.fullmatch(wanted.name)):
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{account['namespace']}"]
    unauthenticated = ANONYMOUS.groups[0]
    if wanted.name == ANONYMOUS.name:
        implied = unauthenticated
    else:
        implied = unauthenticated if unauthenticated in groups else AUTHENTICATED
    if implied not in groups:
        groups.append(implied)
    return User(wanted.name, tuple(groups), wanted.uid, wanted.extra)


def _in_go(user: User) -> str:
    """The user as Go prints the struct."""

    def words(values: tuple[str, ...]) -> str:
        return "[]string{" + ", ".join(map(show, values)) + "}" if values else "[]string(nil)"

    extra = ", ".join(f"{show(key)}:{words(values)}" for key, values in user.extra)
    shown = "map[string][]string{" + extra + "}" if extra else "map[string][]string(nil)"
    return (
        f"&user.DefaultInfo{{Name:{show(user.name)}, UID:{show(user.uid)}, Groups:{words(user.groups)}, Extra:{shown}}}"
    )
