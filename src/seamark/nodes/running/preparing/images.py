"""What an image name stands for on this machine.  No registry is ever asked.  Pure but for reading what is on disk.

The settings map patterns of image names to what runs: ``host`` is this machine's own file system, a program of it is an
image with an entry point, a directory is used as a root file system, an OCI layout or archive on disk is unpacked once.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from seamark.kinds.wellknown import THIS_MACHINE

HOST = "host"
PAUSE = "pause"


class ImageConfig(msgspec.Struct, frozen=True, rename="pascal"):
    """What an image says about its containers; a container's own fields come first."""

    entrypoint: tuple[str, ...] | None = msgspec.field(name="Entrypoint", default=None)
    cmd: tuple[str, ...] | None = msgspec.field(name="Cmd", default=None)
    env: tuple[str, ...] | None = msgspec.field(name="Env", default=None)
    working_dir: str = msgspec.field(name="WorkingDir", default="")
    user: str = msgspec.field(name="User", default="")
    stop_signal: str = msgspec.field(name="StopSignal", default="")


class Image(msgspec.Struct, frozen=True):
    """An image that can run: its root directory, or None for this machine's own file system."""

    name: str
    root: str | None
    config: ImageConfig = ImageConfig()
    digest: str = ""
    program: str = ""  # of this machine, which containers have directly below /

    @property
    def entry(self) -> str:
        """Where containers have the program: at the top, as in images that are made for it."""
        return f"/{os.path.basename(self.program)}"

    @classmethod
    def of_program(cls, name: str, program: str, words: tuple[str, ...]) -> Image:
        """This machine's own file system with a program as its entry point."""
        image = cls(name, None, program=program)
        return msgspec.structs.replace(image, config=ImageConfig(entrypoint=(image.entry,), cmd=words))


class NoImage(Exception):
    """There is nothing to run for this image: a reason and a message in a kubelet's words."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Rule(msgspec.Struct, frozen=True):
    """Images whose name matches the pattern are what stands at the place; ``words`` are a program's usual arguments."""

    pattern: str
    place: str
    words: tuple[str, ...] = ()


def parse(rules: Mapping[str, str] | Iterable[str]) -> tuple[Rule, ...]:
    """``PATTERN=WHAT`` each, or a table; raises ``ValueError`` for what cannot be meant."""
    pairs = rules.items() if isinstance(rules, Mapping) else [_split(each) for each in rules]
    return tuple(_rule(pattern, place) for pattern, place in pairs)


def _rule(pattern: str, place: str) -> Rule:
    if place == HOST:
        return Rule(pattern, HOST)
    if not os.path.exists(place) and len(words := shlex.split(place)) > 1:
        return Rule(pattern, os.path.abspath(words[0]), tuple(words[1:]))
    return Rule(pattern, os.path.abspath(place))


def _split(text: str) -> tuple[str, str]:
    pattern, equals, place = text.partition("=")
    if not equals or not pattern or not place:
        raise ValueError(f"{text!r} is not PATTERN=WHAT, such as 'python*=host' or 'web:*=/srv/web-root'")
    return pattern, place


def rule_of(image: str, rules: Iterable[Rule]) -> Rule:
    """What the image is; raises ``NoImage``.  The first pattern that matches decides."""
    if image == THIS_MACHINE:
        return Rule(image, HOST)
    for rule in rules:
        if any(fnmatchcase(name, rule.pattern) for name in names(image)):
            return rule
    # Kubernetes' image that only waits is in many examples and tests, and what it does is known.
    if PAUSE in names(image) and (waiting := shutil.which("sleep")):
        return Rule(PAUSE, waiting, ("infinity",))
    raise NoImage(
        "ErrImagePull",
        f'no rule says what image "{image}" is on this machine; start seamark with '
        f"--image '{image}=host' to run its command here, or --image '{image}=DIRECTORY'",
    )


def names(image: str) -> tuple[str, ...]:
    """The ways to write an image that a pattern may mean: with and without its tag, and without its registry."""
    plain = image.partition("@")[0]
    head, slash, short = plain.rpartition("/")
    untagged = short.partition(":")[0]
    tagged = short if ":" in short or plain != image else f"{short}:latest"
    ways = (image, plain, head + slash + untagged, head + slash + tagged, short, untagged, tagged)
    return tuple(dict.fromkeys(ways))


def kind_of(place: str) -> str:
    """``host``, ``directory``, ``layout``, ``program`` or ``archive``; raises ``NoImage`` for what is not there."""
    if place == HOST:
        return HOST
    path = Path(place)
    if path.is_dir():
        return "layout" if (path / "oci-layout").is_file() else "directory"
    if path.is_file():
        return "program" if os.access(path, os.X_OK) else "archive"
    raise NoImage("ErrImagePull", f"{place} is neither a directory nor a file on this machine")
