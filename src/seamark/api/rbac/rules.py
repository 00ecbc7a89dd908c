"""What one rule of a role allows, whether rights cover others, and how rules are written in messages.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import msgspec

from seamark.errors import Object
from seamark.kinds.values.fields import show

ANY = "*"

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

    def covers(self, single: Rule) -> bool:
        """Whether this allows all that a rule with one verb, group, resource, name or URL allows."""
        if not _has(self.verbs, single.verbs[0]):
            return False
        if single.urls:
            return self.covers_url(single.urls[0])
        if not single.resources or not _has(self.api_groups, single.api_groups[0]):
            return False
        if not any(map(self.resources.__contains__, names_of(single.resources[0]))):
            return False
        return not self.resource_names or any(name in self.resource_names for name in single.resource_names)


def url_covers(pattern: str, url: str) -> bool:
    """``*`` stands for everything, at the end of a pattern for everything that begins so."""
    return pattern in (ANY, url) or (pattern.endswith(ANY) and url.startswith(pattern.rstrip(ANY)))


def names_of(resource: str) -> Words:
    """The words of a rule that mean a resource: ``pods/log`` is also meant by ``*/log`` and by ``*``."""
    _, _, part = resource.partition("/")
    return (resource, f"{ANY}/{part}", ANY) if part else (resource, ANY)


def _has(words: Words, word: str) -> bool:
    return ANY in words or word in words


def singles(rule: Rule) -> Iterator[Rule]:
    """The rule as rules with one word in each field."""
    for group, resource, verb in product(rule.api_groups, rule.resources, rule.verbs):
        for name in rule.resource_names or (None,):
            yield Rule((verb,), (group,), (resource,), () if name is None else (name,))
    for url, verb in product(rule.urls, rule.verbs):
        yield Rule((verb,), urls=(url,))


def uncovered(owned: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """What is wanted and not owned, as rules with one word in each field."""
    return [single for rule in wanted for single in singles(rule) if not any(held.covers(single) for held in owned)]


def texts(missing: Iterable[Rule]) -> list[str]:
    """Single rules as messages list them: those that differ only in their verb together, sorted."""
    together: dict[tuple[Words, Words, Words], list[str]] = {}
    lines: set[str] = set()
    for rule in missing:
        if rule.urls:
            lines.add(text(rule))
            continue
        verbs = together.setdefault((rule.api_groups, rule.resources, rule.resource_names), [])
        verbs += [verb for verb in rule.verbs if verb not in verbs]
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
