"""The volumes of a Pod as directories of this machine: prepared when it starts, and kept up to date while it runs.

Content from ConfigMaps, Secrets, tokens and the Pod itself is written as a kubelet does it: into a new directory that
``..data`` is then pointed to, so that a reader sees all of the old content or all of the new.
"""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from seamark.nodes.running.preparing.environment import Around, Unmakeable, field, resource
from seamark.nodes.running.spec import FieldRef, PodToRun, ResourceFieldRef
from seamark.rules.objects.metadata import View

DEFAULT_MODE = 0o644
DEFAULT_TOKEN_SECONDS = 3600


class File(msgspec.Struct, frozen=True):
    content: bytes
    mode: int = DEFAULT_MODE


class TokenWanted(msgspec.Struct, frozen=True):
    audience: str
    seconds: int


class Sources(msgspec.Struct, frozen=True):
    """Where content comes from: objects of the Pod's namespace as dicts (None if there is none), and tokens."""

    config_map: Callable[[str], Awaitable[dict[str, Any] | None]]
    secret: Callable[[str], Awaitable[dict[str, Any] | None]]
    token: Callable[[TokenWanted], Awaitable[str]]
    claim: Callable[[str], Awaitable[str]]  # the directory of a PersistentVolumeClaim


class _Item(View, frozen=True):
    key: str = ""
    path: str = ""
    mode: int | None = None
    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None


class _Source(View, frozen=True):
    """What ConfigMap, Secret, downward API and projected volumes have in common."""

    name: str = ""
    secret_name: str = ""
    items: tuple[_Item, ...] = ()
    optional: bool = False
    default_mode: int | None = None


CONTENT = ("configMap", "secret", "downwardAPI", "projected")  # volumes that containers can only read


def references(pod: PodToRun) -> set[tuple[str, str]]:
    """The ConfigMaps and Secrets that its volumes are made of: ``("configMap", name)`` and its like."""
    found = set()
    for volume in pod.spec.volumes:
        for each in (volume, *((volume.get("projected") or {}).get("sources") or ())):
            for kind in ("configMap", "secret"):
                if source := each.get(kind):
                    found.add((kind, source.get("name") or source.get("secretName") or ""))
    return found


def read_only(pod: PodToRun) -> set[str]:
    """The names of volumes that containers can only read."""
    return {volume["name"] for volume in pod.spec.volumes if any(kind in volume for kind in CONTENT)}


def below(volume: str, path: str) -> str:
    """A path inside of a volume, made a directory if it is not there; raises ``Unmakeable`` if it leads out."""
    top = os.path.realpath(volume)
    found = os.path.realpath(os.path.join(top, path))
    if ".." in path.split("/") or os.path.isabs(path) or os.path.commonpath((top, found)) != top:
        raise Unmakeable(f"failed to create subPath directory for volumeMount: {path} leads out of the volume")
    if not os.path.lexists(found):
        os.makedirs(found)
    return found


async def prepare(pod: PodToRun, folder: Path, around: Around, sources: Sources) -> dict[str, str]:
    """The directory, or file, of each volume; raises ``Unmakeable`` if one cannot be prepared."""
    found = {}
    for volume in pod.spec.volumes:
        name = volume["name"]
        path = folder / "volumes" / name
        if "hostPath" in volume:
            found[name] = _host_path(name, volume["hostPath"] or {})
            continue
        if "persistentVolumeClaim" in volume:
            found[name] = await sources.claim(volume["persistentVolumeClaim"].get("claimName", ""))
            continue
        if "ephemeral" in volume:
            found[name] = await sources.claim(f"{pod.metadata.name}-{name}")
            continue
        path.mkdir(parents=True, exist_ok=True)
        if "emptyDir" in volume:
            path.chmod(0o777)
        elif (files := await content(pod, volume, around, sources)) is not None:
            write(path, files)
        else:
            kinds = ", ".join(sorted(set(volume) - {"name"}))
            raise Unmakeable(f'volume "{name}": {kinds or "nothing"} cannot be mounted on this machine')
        found[name] = str(path)
    return found


def _host_path(name: str, source: Mapping[str, Any]) -> str:
    path, kind = str(source.get("path", "")), source.get("type") or ""
    if kind == "DirectoryOrCreate":
        os.makedirs(path, exist_ok=True)
    elif kind == "FileOrCreate" and not os.path.exists(path):
        Path(path).touch()
    checks = {"Directory": os.path.isdir, "File": os.path.isfile}
    if not checks.get(kind, os.path.exists)(path):
        raise Unmakeable(
            f'MountVolume.SetUp failed for volume "{name}" : hostPath type check failed: {path} is not there'
        )
    return path


async def content(pod: PodToRun, volume: Mapping[str, Any], around: Around, sources: Sources) -> dict[str, File] | None:
    """The files of a volume that is made of content; None if it is of another kind."""
    for kind in ("configMap", "secret", "downwardAPI"):
        if kind in volume:
            source = msgspec.convert(volume[kind] or {}, _Source)
            mode = DEFAULT_MODE if source.default_mode is None else source.default_mode
            return await _files(pod, kind, source, mode, around, sources)
    if "projected" not in volume:
        return None
    found: dict[str, File] = {}
    mode = volume["projected"].get("defaultMode") or DEFAULT_MODE
    for each in volume["projected"].get("sources") or ():
        if (token := each.get("serviceAccountToken")) is not None:
            wanted = TokenWanted(token.get("audience") or "", token.get("expirationSeconds") or DEFAULT_TOKEN_SECONDS)
            found[token["path"]] = File((await sources.token(wanted)).encode(), mode)
            continue
        for kind in ("configMap", "secret", "downwardAPI"):
            if kind in each:
                found |= await _files(pod, kind, msgspec.convert(each[kind] or {}, _Source), mode, around, sources)
    return found


async def _files(
    pod: PodToRun, kind: str, source: _Source, mode: int, around: Around, sources: Sources
) -> dict[str, File]:
    if kind == "downwardAPI":
        return {
            item.path: File(_downward(pod, item, around), mode if item.mode is None else item.mode)
            for item in source.items
        }
    name = source.name or source.secret_name
    obj = await (sources.config_map if kind == "configMap" else sources.secret)(name)
    if obj is None:
        if source.optional:
            return {}
        raise Unmakeable(f'MountVolume.SetUp failed for volume : {kind.lower()} "{name}" not found')
    known = _bytes_of(kind, obj)
    if not source.items:
        return {key: File(value, mode) for key, value in known.items()}
    found = {}
    for item in source.items:
        if item.key in known:
            found[item.path] = File(known[item.key], mode if item.mode is None else item.mode)
        elif not source.optional:
            raise Unmakeable(
                f"MountVolume.SetUp failed for volume : references non-existent {kind.lower()} key: {item.key}"
            )
    return found


def _bytes_of(kind: str, obj: Mapping[str, Any]) -> dict[str, bytes]:
    if kind == "secret":
        return {key: base64.b64decode(value) for key, value in (obj.get("data") or {}).items()}
    plain = {key: value.encode() for key, value in (obj.get("data") or {}).items()}
    return plain | {key: base64.b64decode(value) for key, value in (obj.get("binaryData") or {}).items()}


def _downward(pod: PodToRun, item: _Item, around: Around) -> bytes:
    if item.field_ref is not None:
        return field(pod, item.field_ref, around).encode()
    if item.resource_field_ref is not None:
        return resource(pod, pod.spec.containers[0], item.resource_field_ref, around.allocatable).encode()
    return b""


def write(path: Path, files: Mapping[str, File]) -> None:
    """Put this content in place as a whole; nothing happens if it is there already."""
    current = path / "..data"
    if current.is_symlink() and _same(current, files):
        return
    new = path / f"..{uuid4().hex}"
    for name, file in files.items():
        place = new / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.content)
        place.chmod(file.mode)
    new.mkdir(exist_ok=True)
    old = current.resolve() if current.is_symlink() else None
    pointer = path / f"..tmp{uuid4().hex}"
    pointer.symlink_to(new.name)
    pointer.replace(current)
    wanted = {name.split("/")[0] for name in files}
    for name in wanted:
        link = path / name
        if not link.is_symlink():
            link.symlink_to(f"..data/{name}")
    for entry in path.iterdir():
        if not entry.name.startswith("..") and entry.name not in wanted:
            entry.unlink()
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _same(current: Path, files: Mapping[str, File]) -> bool:
    there = {str(each.relative_to(current)): each for each in current.rglob("*") if each.is_file()}
    return set(there) == set(files) and all(there[name].read_bytes() == file.content for name, file in files.items())
