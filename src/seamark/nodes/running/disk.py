"""The disk that Pods use: a Pod that uses more than it may is evicted, or the largest when the disk is nearly full.

Images that no Pod uses are removed first: after a week, or at once when the disk is nearly full.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from seamark.clock import Clock
from seamark.kinds.values.quantity import measure
from seamark.nodes.running.preparing import unpacking
from seamark.nodes.running.preparing.volumes import MEMORY
from seamark.nodes.running.spec import PodToRun

if TYPE_CHECKING:
    from seamark.nodes.running.life import PodLife

log = logging.getLogger(__name__)

PERIOD = 10.0
UNUSED_SECONDS = 7 * 86400.0  # after which an image that no Pod uses is removed
WORTH = 1 << 20  # bytes that a Pod uses at least if it is evicted to make room
_STORAGE = "ephemeral-storage"


class DiskUsage(msgspec.Struct, frozen=True):
    """Bytes on disk of a Pod's volumes and of what its containers wrote, by name."""

    volumes: Mapping[str, int]
    containers: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.volumes.values()) + sum(self.containers.values())


def limited(pod: PodToRun) -> bool:
    """Whether the Pod may only use so much."""
    return any(_size_limit(volume) for volume in pod.spec.volumes) or any(
        _STORAGE in each.resources.limits for each in pod.spec.containers
    )


def _size_limit(volume: Mapping[str, object]) -> str:
    source = volume.get("emptyDir")
    if not isinstance(source, Mapping) or source.get("medium") == MEMORY:
        return ""  # one in memory is full when it is full
    return str(source.get("sizeLimit") or "")


def excess(pod: PodToRun, used: DiskUsage) -> str:
    """Why a Pod is evicted, in a kubelet's words; "" if it may stay."""
    for volume in pod.spec.volumes:
        name = volume["name"]
        if (limit := _size_limit(volume)) and used.volumes.get(name, 0) > measure(limit):
            return f'Usage of EmptyDir volume "{name}" exceeds the limit "{limit}". '
    limits = {each.name: str(each.resources.limits.get(_STORAGE) or "") for each in pod.spec.containers}
    if all(limits.values()) and limits:
        whole = sum(measure(each) for each in limits.values())
        if used.total > whole:
            words = "Pod ephemeral local storage usage exceeds the total limit of containers"
            return f"{words} {int(whole) if len(limits) > 1 else next(iter(limits.values()))}. "
    for name, limit in limits.items():
        if limit and used.containers.get(name, 0) > measure(limit):
            return f'Container {name} exceeded its local ephemeral storage limit "{limit}". '
    return ""


def shortage(used: Mapping[str, int], *, free: int, least: int) -> str:
    """Why the Pod that uses most is evicted: the disk is nearly full."""
    name = max(used, key=lambda each: used[each], default="")
    return (
        f"The node was low on resource: {_STORAGE}. Threshold quantity: {least}, available: {free}. "
        f"Container {name} was using {used.get(name, 0)}, request is 0, has larger consumption of {_STORAGE}. "
    )


def measured(life: PodLife) -> DiskUsage:
    volumes = {
        volume["name"]: size_of(life.folder / "volumes" / volume["name"])
        for volume in life.pod.spec.volumes
        if "emptyDir" in volume
    }
    containers = {
        each.name: size_of(life.folder / "containers" / each.name) + size_of(life.folder / "logs" / each.name)
        for each in life.pod.spec.containers
    }
    return DiskUsage(volumes, containers)


def size_of(path: Path) -> int:
    """Bytes of all that is below a directory; what goes away meanwhile does not count."""
    total, folders = 0, [os.fspath(path)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:
            continue
    return total


def free_space(path: Path) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


class DiskWatch:
    """Looks after the disk while ``run`` runs: ``least`` bytes are to stay free in ``folder``."""

    def __init__(
        self,
        lives: Mapping[str, PodLife],
        folder: Path,
        clock: Clock,
        *,
        least: int,
        free: Callable[[Path], int] = free_space,
    ) -> None:
        self._lives, self._folder, self._clock, self._least, self._free = lives, folder, clock, least, free

    async def run(self) -> None:
        while True:
            if self._lives:
                await self.look()
            await self._clock.sleep(PERIOD)

    async def look(self) -> None:
        for life in [each for each in self._lives.values() if each.doomed is None and limited(each.pod)]:
            if words := excess(life.pod, await asyncio.to_thread(measured, life)):
                life.evict(words)
        free = self._free(self._folder)
        low = free < self._least
        await asyncio.to_thread(self._drop_images, 0.0 if low else UNUSED_SECONDS)
        leaving = any(each.doomed is not None and not each.over for each in self._lives.values())
        if low and not leaving and (free := self._free(self._folder)) < self._least:
            await self._make_room(free)

    def _drop_images(self, after: float) -> None:
        used = {each.image for life in tuple(self._lives.values()) for each in tuple(life.open.values())}
        for name in unpacking.drop_unused(self._folder / "images", used, before=self._clock.time() - after):
            log.info("removed the image %s, which no Pod uses", name)

    async def _make_room(self, free: int) -> None:
        found = [
            (await asyncio.to_thread(measured, each), each) for each in tuple(self._lives.values()) if not each.doomed
        ]
        used, largest = max(found, key=lambda each: each[0].total, default=(None, None))
        if used is not None and largest is not None and used.total >= WORTH:
            largest.evict(shortage(used.containers, free=free, least=self._least))
