"""A Pod with all that is known of it, the trouble it may be in, and words that describe both."""

from __future__ import annotations

import msgspec

from seamark.kinds.values import times
from seamark.rules.objects.node import Node
from seamark.why import evidence
from seamark.why.codes import Code
from seamark.why.evidence import Evidence, Search
from seamark.why.finding import Command, look
from seamark.why.views import Event, Pod

_LONGEST = 200  # letters of a component's message


class Trouble(msgspec.Struct, frozen=True):
    """Why one Pod does not serve: ``detail`` is the cause, ``fix`` what to do, ``look`` a command that shows more."""

    code: Code
    detail: str
    fix: str
    evidence: tuple[Evidence, ...]
    look: Command | None = None
    commands: tuple[Command, ...] = ()


class Patient(msgspec.Struct, frozen=True):
    """A Pod, its node (None: there is none), the time (None: not known), and the warning Events about it.

    ``absent`` is the search that did not find the node that the Pod names; ``claims`` are the newest Events about the
    PersistentVolumeClaims that it uses.
    """

    pod: Pod
    node: Node | None
    now: float | None
    events: tuple[Event, ...] = ()
    absent: Search | None = None
    claims: tuple[Event, ...] = ()

    def event(self, reason: str, beginning: str = "", container: str = "", since: str | None = None) -> Event | None:
        """The newest Event of that reason, about that container and not from before ``since``."""
        for each in self.events:
            where = each.involved_object.field_path
            if (
                each.reason == reason
                and each.message.startswith(beginning)
                and (not container or not where or where.endswith(f"{{{container}}}"))
                and (since is None or not each.time or times.parse(each.time) >= times.parse(since))
            ):
                return each
        return None


def describe(pod: Pod) -> Command:
    return look("describe", "pod", pod.metadata.name, namespace=pod.metadata.namespace)


def logs(pod: Pod, container: str, *, previous: bool = False) -> Command:
    words = ("logs", pod.metadata.name, "-c", container, *(["--previous"] if previous else []))
    return look(*words, namespace=pod.metadata.namespace)


def since(pod: Pod, path: str, now: float | None, *, word: str = "running") -> tuple[str, tuple[Evidence, ...]]:
    """How long ago a moment is, in words, and the reading of the clock that says so."""
    moment = evidence.read(pod, path)
    if moment is None or now is None:
        return "", ()
    took = times.duration(now - times.parse(moment))
    text = f" ({word} for {took})" if word == "running" else f" ({word} {took} ago)"
    return text, (evidence.reading(pod, path, now),)


def with_message(text: str, message: str) -> str:
    """The text with the component's own message, cut to a readable length."""
    message = " ".join(message.split()).rstrip(".")
    if not message:
        return text
    return f"{text}: {message[:_LONGEST]}…" if len(message) > _LONGEST else f"{text}: {message}"
