"""A Pod as the checks read it, and the words in which they say what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from seamark.errors import Object
from seamark.kinds.pod.security import each_container


class Violation(NamedTuple):
    """Why a Pod does not comply: briefly, and with the names and values it is about."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})"


class Part(NamedTuple):
    """A container, init container or ephemeral container, and its security context."""

    name: str
    container: Object
    context: Object


class Subject(NamedTuple):
    """The Pod, or what a template says that Pods will be: its spec, its security context, and its containers."""

    annotations: Mapping[str, str]
    spec: Object
    context: Object
    parts: tuple[Part, ...]

    @property
    def windows(self) -> bool:
        return (self.spec.get("os") or {}).get("name") == "windows"

    @property
    def own_users(self) -> bool:
        """Whether the Pod has a user namespace of its own, in which root has no rights on the node."""
        return self.spec.get("hostUsers") is False


Check = Callable[[Subject], Violation | None]


def subject(metadata: Object, spec: Object) -> Subject:
    parts = tuple(
        Part(container.get("name", ""), container, container.get("securityContext") or {})
        for container, _ in each_container(spec, "")
    )
    return Subject(metadata.get("annotations") or {}, spec, spec.get("securityContext") or {}, parts)


def contexts(pod: Subject, field: str) -> Iterator[tuple[str, Any]]:
    """The value of ``field`` in every security context that has it, with the container's name; the Pod's is ""."""
    if (whole := pod.context.get(field)) is not None:
        yield "", whole
    for part in pod.parts:
        if (own := part.context.get(field)) is not None:
            yield part.name, own


def gathered(pod: Subject, find: Callable[[Part], set[str]]) -> tuple[list[str], set[str]]:
    """The containers in which something is found, by name, and all that is found in any of them."""
    by_part = [(part.name, found) for part in pod.parts if (found := find(part))]
    return [name for name, _ in by_part], set().union(*(found for _, found in by_part))


# --- words -------------------------------------------------------------------------------------------


def quoted(values: Iterable[str]) -> str:
    return ", ".join(f'"{value}"' for value in values)


def plural(word: str, many: Collection[object]) -> str:
    return word if len(many) == 1 else f"{word}s"


def containers(names: Collection[str]) -> str:
    return f"{plural('container', names)} {quoted(names)}"


def use(names: Collection[str]) -> str:
    return "uses" if len(names) == 1 else "use"


def setters(names: Iterable[str]) -> str:
    """Who set something: containers by their names, and the Pod, whose name is ""."""
    among = list(names)
    own = [name for name in among if name]
    whole = ["pod"] if len(own) < len(among) else []
    return " and ".join([*whole, *([containers(own)] if own else [])])
