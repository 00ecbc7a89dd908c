"""Control groups, version 2: limits for groups of processes, in a part of the tree that was given to this process.

    the group we were started in
      ├── seamark        this process moves here, because a group with limited children has no processes of its own
      └── pods           the groups that are made from here on

Whether the group is ours to divide is found out by trying: systemd gives it to us with ``Delegate=yes``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

WANTED = ("cpu", "memory", "pids")
_OURS, _PODS = "seamark", "pods"


class NotDelegated(Exception):
    """Why no groups can be made."""


class Cgroups:
    """Groups below ``top``; ``controllers`` are those that can limit them."""

    def __init__(self, top: Path, controllers: frozenset[str]) -> None:
        self._top = top
        self.controllers = controllers

    @classmethod
    def take(cls, process: Path = Path("/proc/self")) -> Cgroups:
        """Make the group of this process ours; raises ``NotDelegated``."""
        own = own_group((process / "mountinfo").read_text(), (process / "cgroup").read_text())
        if own.name == _OURS:  # we moved here before, or the one who started us did
            own = own.parent
        try:
            return cls._divide(own)
        except OSError as error:
            raise NotDelegated(f"{own}: {error.strerror}") from error

    @classmethod
    def _divide(cls, own: Path) -> Cgroups:
        offered = (own / "cgroup.controllers").read_text().split()
        given = frozenset(offered) & frozenset(WANTED)
        if lacking := [each for each in WANTED if each not in given]:
            raise NotDelegated(f"{own} has no controller for {', '.join(lacking)}")
        others = set((own / "cgroup.procs").read_text().split()) - {str(os.getpid())}
        if others and (own / "cgroup.type").exists():  # the root of the tree has no type, and no such rule
            raise NotDelegated(f"{own} has other processes too")
        ours = own / _OURS
        ours.mkdir(exist_ok=True)
        (ours / "cgroup.procs").write_text(str(os.getpid()))
        found = cls(own / _PODS, given)
        for group in (own, found._top):
            group.mkdir(exist_ok=True)
            found._share(group)
        found._sweep()
        return found

    def _share(self, group: Path) -> None:
        """Let the children of this group be limited."""
        (group / "cgroup.subtree_control").write_text(" ".join(f"+{each}" for each in sorted(self.controllers)))

    def _sweep(self) -> None:
        """Remove the groups of a process that was here before us."""
        for group in self._top.iterdir():
            if group.is_dir():
                self.remove(group.name)

    def make(self, pod: str, container: str, limits: Mapping[str, str]) -> str:
        """The path of a container's group in its Pod's, with these files written."""
        group = self._top / pod
        if not group.is_dir():
            group.mkdir()
            self._share(group)
        own = group / container
        own.mkdir(exist_ok=True)
        self.limit(str(own), limits)
        return str(own)

    @staticmethod
    def limit(group: str, limits: Mapping[str, str]) -> None:
        for name, value in limits.items():
            Path(group, name).write_text(value)

    def remove(self, pod: str) -> None:
        """The processes of the Pod have ended.  The kernel may need a moment; then ``_sweep`` removes what is left."""
        group = self._top / pod
        with suppress(OSError):
            for each in (*(child for child in group.iterdir() if child.is_dir()), group):
                each.rmdir()


def events(group: str, file: str) -> dict[str, int]:
    """What happened in a group: ``oom_kill`` in ``memory.events``, ``max`` in ``pids.events``."""
    try:
        lines = Path(group, file).read_text().splitlines()
    except OSError:
        return {}
    return {name: int(count) for name, _, count in (line.partition(" ") for line in lines) if count.isdecimal()}


def own_group(mounts: str, groups: str) -> Path:
    """The directory of a process's group, from its ``mountinfo`` and ``cgroup`` files."""
    path = next((line[3:] for line in groups.splitlines() if line.startswith("0::")), None)
    place = _mounted(mounts.splitlines())
    if path is None or place is None:
        raise NotDelegated("control groups of version 2 are not mounted")
    root, point = place
    if path.startswith("/.."):
        raise NotDelegated(f"the group {path} is outside of what is mounted at {point}")
    inner = os.path.relpath(path, root) if root != "/" else path.lstrip("/")
    return Path(point, inner)


def _mounted(lines: Iterable[str]) -> tuple[str, str] | None:
    """What part of the tree is mounted where."""
    for line in lines:
        fields, _, kind = line.partition(" - ")
        if kind.startswith("cgroup2 "):
            root, point = fields.split()[3:5]
            return root, point
    return None
