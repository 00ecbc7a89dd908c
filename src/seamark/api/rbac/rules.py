"""What one rule of a role allows, whether rights cover others, and how rules are written in messages.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

import msgspec

from seamark.errors import Object
from seamark.kinds.values.fields import show

ANY = "*"
MOST_STEPS = 500_000  # for one comparison of rights; about half a second

Words = tuple[str, ...]


class Rule(msgspec.Struct, frozen=True, rename="camel"):
    """A rule as objects have it: about resources, or about URLs that are none."""

    verbs: Words = ()
    api_groups: Words = ()
    resources: Words = ()
    resource_names: Words = ()
    urls: Words = msgspec.field(default=(), name="nonResourceURLs")

    @classmethod
    def of(cls, rule: Object) -> Rule:
        """The rule of an object, in which each field may be absent or null."""
        fields = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
        return cls(*(tuple(rule.get(field) or ()) for field in fields))

    def plain(self) -> Object:
        """The rule as an object has it, without empty fields."""
        fields = {
            "verbs": self.verbs,
            "apiGroups": self.api_groups,
            "resources": self.resources,
            "resourceNames": self.resource_names,
            "nonResourceURLs": self.urls,
        }
        return {name: list(words) for name, words in fields.items() if words}

    def covers_url(self, url: str) -> bool:
        return any(url_covers(pattern, url) for pattern in self.urls)


def url_covers(pattern: str, url: str) -> bool:
    """``*`` stands for everything, at the end of a pattern for everything that begins so."""
    return pattern in (ANY, url) or (pattern.endswith(ANY) and url.startswith(pattern.rstrip(ANY)))


def names_of(resource: str) -> Words:
    """The words of a rule that mean a resource: ``pods/log`` is also meant by ``*/log`` and by ``*``."""
    _, _, part = resource.partition("/")
    return (resource, f"{ANY}/{part}", ANY) if part else (resource, ANY)


class Held:
    """A rule that a user has, its words as sets: however many there are, each is looked up in one step."""

    def __init__(self, rule: Rule) -> None:
        self._verbs, self._groups = frozenset(rule.verbs), frozenset(rule.api_groups)
        self._resources, self._names = frozenset(rule.resources), frozenset(rule.resource_names)
        self._rule = rule

    def covers(self, rule: Rule) -> bool:
        """Whether this alone allows all that another rule does."""
        if not _have(self._verbs, rule.verbs):
            return False
        if rule.urls:
            return not rule.resources and all(map(self._rule.covers_url, rule.urls))
        if not rule.resources or not _have(self._groups, rule.api_groups):
            return False
        if not all(any(map(self._resources.__contains__, names_of(resource))) for resource in rule.resources):
            return False
        return not self._names or (bool(rule.resource_names) and self._names.issuperset(rule.resource_names))


def _have(words: frozenset[str], asked: Words) -> bool:
    return ANY in words or words.issuperset(asked)


def combinations(rule: Rule) -> int:
    """How many :func:`singles` a rule has."""
    resources = len(rule.api_groups) * len(rule.resources) * max(1, len(rule.resource_names))
    return len(rule.verbs) * (resources + len(rule.urls))


def singles(rule: Rule) -> Iterator[Rule]:
    """The rule as rules with one word in each field."""
    for group, resource, verb in product(rule.api_groups, rule.resources, rule.verbs):
        for name in rule.resource_names or (None,):
            yield Rule((verb,), (group,), (resource,), () if name is None else (name,))
    for url, verb in product(rule.urls, rule.verbs):
        yield Rule((verb,), urls=(url,))


def uncovered(owned: Iterable[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """What is wanted and not owned, as rules with one word in each field.

    A short rule may have billions of combinations.  What is beyond :data:`MOST_STEPS` counts as not owned, and is
    listed as it was asked for.
    """
    held = [Held(rule) for rule in dict.fromkeys(owned)]
    missing: list[Rule] = []
    left = MOST_STEPS
    for asked in dict.fromkeys(wanted):
        rule = Rule(*(tuple(dict.fromkeys(words)) for words in msgspec.structs.astuple(asked)))
        left -= len(held) * (1 + sum(map(len, msgspec.structs.astuple(rule))) // 10)
        if left >= 0 and any(each.covers(rule) for each in held):
            continue
        # What is missing is put into a message, which takes time, too.
        left -= (len(held) + 10) * combinations(rule)
        if left < 0:
            missing.append(rule)
        else:
            missing += [single for single in singles(rule) if not any(each.covers(single) for each in held)]
    return missing


def texts(missing: Iterable[Rule]) -> list[str]:
    """Single rules as messages list them: those that differ only in their verb together, sorted."""
    together: dict[tuple[Words, Words, Words], dict[str, None]] = {}
    lines: set[str] = set()
    for rule in missing:
        if rule.urls:
            lines.add(text(rule))
            continue
        verbs = together.setdefault((rule.api_groups, rule.resources, rule.resource_names), {})
        verbs.update(dict.fromkeys(rule.verbs))
    for (groups, resources, names), verbs in together.items():
        lines.add(text(Rule(tuple(verbs), groups, resources, names)))
    return sorted(lines)


def text(rule: Rule) -> str:
    """A rule in one line, as Kubernetes writes it."""
    parts = {
        "APIGroups": rule.api_groups,
        "Resources": rule.resources,
        "NonResourceURLs": rule.urls,
        "ResourceNames": rule.resource_names,
        "Verbs": rule.verbs,
    }
    shown = (f"{name}:{quoted(words)}" for name, words in parts.items() if words)
    return "{" + ", ".join(shown) + "}"


def quoted(words: Iterable[str]) -> str:
    """A list of words as Go prints it: quoted, with spaces between."""
    return f"[{' '.join(map(show, words))}]"
