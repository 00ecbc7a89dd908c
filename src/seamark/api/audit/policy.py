"""How much of a request is logged: the policy file of Kubernetes (``audit.k8s.io/v1``, kind ``Policy``).

The first rule that matches a request decides; a request that no rule matches is not logged.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import Literal

import msgspec

from seamark.api.authorization import Attributes, User

API_VERSION = "audit.k8s.io/v1"

Stage = Literal["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"]


class Level(IntEnum):
    """How much is logged; each level includes those before it."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3


WORDS = {
    "None": Level.NONE,
    "Metadata": Level.METADATA,
    "Request": Level.REQUEST,
    "RequestResponse": Level.REQUEST_RESPONSE,
}


class PolicyError(ValueError):
    """The policy file cannot be used; one line: which file, what is wrong."""


class _Part(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A part of the file.  A field that is not known is refused: a typing error must not silently log less."""


class GroupResources(_Part, frozen=True):
    """Resources of one API group; no resources mean all of them.

    ``pods/log``, ``*/status`` and ``pods/*`` work; the last is about Pods themselves, too, as in Kubernetes.
    """

    group: str = ""
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()

    def matches(self, asked: Attributes) -> bool:
        if self.group not in (asked.group, "*"):
            return False
        if self.resource_names and asked.name not in self.resource_names:
            return False
        return not self.resources or any(_names(word, asked) for word in self.resources)


def _names(word: str, asked: Attributes) -> bool:
    resource, slash, part = word.partition("/")
    if not slash:
        return word == "*" or (word == asked.resource and not asked.subresource)
    if resource == asked.resource:
        return part in (asked.subresource, "*")
    return resource == "*" and part in (asked.subresource, "*") and bool(asked.subresource)


class Rule(_Part, frozen=True):
    """What it matches, and how much is then logged; an empty field matches everything."""

    level: Literal["None", "Metadata", "Request", "RequestResponse"]
    users: tuple[str, ...] = ()
    user_groups: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resources: tuple[GroupResources, ...] = ()
    namespaces: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(name="nonResourceURLs", default=())
    omit_stages: tuple[Stage, ...] = ()
    omit_managed_fields: bool | None = None

    def matches(self, user: User, asked: Attributes) -> bool:
        if self.users and user.name not in self.users:
            return False
        if self.user_groups and not set(self.user_groups) & set(user.groups):
            return False
        if self.verbs and asked.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            return self._matches_resource(asked)
        if self.non_resource_urls:
            return bool(asked.path) and any(_is_path(word, asked.path) for word in self.non_resource_urls)
        return True

    def _matches_resource(self, asked: Attributes) -> bool:
        if asked.path:
            return False
        if self.namespaces and asked.namespace not in self.namespaces:
            return False
        return not self.resources or any(each.matches(asked) for each in self.resources)


def _is_path(word: str, path: str) -> bool:
    return path.startswith(word[:-1]) if word.endswith("*") else path == word


class Extent(msgspec.Struct, frozen=True):
    """How much is logged of one request, and when."""

    level: Level
    omit_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False


NOTHING = Extent(Level.NONE)


class Policy(_Part, frozen=True):
    """A policy file."""

    api_version: str
    kind: str
    rules: tuple[Rule, ...]
    metadata: dict[str, object] = {}
    omit_stages: tuple[Stage, ...] = ()
    omit_managed_fields: bool = False

    def judge(self, user: User, asked: Attributes) -> Extent:
        for rule in self.rules:
            if rule.matches(user, asked):
                omit = self.omit_managed_fields if rule.omit_managed_fields is None else rule.omit_managed_fields
                return Extent(WORDS[rule.level], frozenset(self.omit_stages + rule.omit_stages), omit)
        return NOTHING


# Without a file: who did what, once per request, and no contents, which may be secrets.
DEFAULT = Policy(API_VERSION, "Policy", (Rule("Metadata"),), omit_stages=("RequestReceived",))


def read(file: Path) -> Policy:
    """The policy in a YAML or JSON file; ``PolicyError`` if it is not one."""
    import yaml

    try:
        policy = msgspec.convert(yaml.safe_load(file.read_text(encoding="utf-8")), Policy)
    except OSError as error:
        raise PolicyError(f"cannot read the audit policy {file}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date that is none, or brackets without end
        raise PolicyError(f"{file} is not an audit policy: {' '.join(str(error).split())}") from error
    if (wrong := _first_fault(policy)) is not None:
        raise PolicyError(f"{file} is not an audit policy: {wrong}")
    return policy


def _first_fault(policy: Policy) -> str | None:
    if (policy.api_version, policy.kind) != (API_VERSION, "Policy"):
        return f"it is {policy.api_version} {policy.kind}, not {API_VERSION} Policy"
    if not policy.rules:
        return "it has no rules"
    return next((fault for rule in policy.rules for fault in _faults(rule)), None)


def _faults(rule: Rule) -> Sequence[str]:
    if rule.non_resource_urls and (rule.resources or rule.namespaces):
        return ["a rule with nonResourceURLs cannot have resources or namespaces"]
    if any(each.resource_names and not each.resources for each in rule.resources):
        return ["resourceNames need resources"]
    if any(word != "*" and not word.startswith("/") for word in rule.non_resource_urls):
        return ["nonResourceURLs begin with /, or are *"]
    if any("*" in word.removesuffix("*") for word in rule.non_resource_urls):
        return ["in nonResourceURLs, * may only be the last character"]
    return []
