"""The volumes of a Pod as directories of this machine: prepared when it starts, and kept up to date while it runs.

Content from ConfigMaps, Secrets, tokens and the Pod itself is written as a kubelet does it: into a new directory that
``..data`` is then pointed to, so that a reader sees all of the old content or all of the new.
"""

from __future__ import annotations

import base64
import os
import shutil
import stat
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from seamark.kinds.values.quantity import measure
from seamark.nodes.running.preparing.environment import Around, Unmakeable, field, resource
from seamark.nodes.running.spec import FieldRef, PodToRun, ResourceFieldRef
from seamark.rules.objects.metadata import View

DEFAULT_MODE = 0o644
TOKEN_MODE = 0o600  # of a token that belongs to a user or a group
DEFAULT_TOKEN_SECONDS = 3600
MEMORY = "Memory"


class Unmountable(Unmakeable):
    """A volume cannot be prepared, in a kubelet's words."""

    def __init__(self, volume: str, why: str) -> None:
        super().__init__(f'MountVolume.SetUp failed for volume "{volume}" : {why}')


class File(msgspec.Struct, frozen=True):
    content: bytes
    mode: int = DEFAULT_MODE
    user: int = -1  # its owner; -1 for the one who writes it


class TokenWanted(msgspec.Struct, frozen=True):
    audience: str
    seconds: int


class Sources(msgspec.Struct, frozen=True):
    """Where content comes from: objects of the Pod's namespace as dicts, None if there is none; tokens; directories."""

    config_map: Callable[[str], Awaitable[dict[str, Any] | None]]
    secret: Callable[[str], Awaitable[dict[str, Any] | None]]
    token: Callable[[TokenWanted], Awaitable[str]]
    claim: Callable[[str], Awaitable[str]]  # the directory of a PersistentVolumeClaim
    memory: Callable[[str, int, int], Awaitable[None]]  # mounts a file system, once: where, its size, its group
    image: Callable[[str], Awaitable[str]]  # the directory of an image
    owners: bool = False  # whether files may be given to any user and group


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


CONTENT = ("configMap", "secret", "downwardAPI", "projected", "image")  # volumes that containers can only read


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
    return {
        volume["name"]
        for volume in pod.spec.volumes
        if any(kind in volume for kind in CONTENT) or (volume.get("persistentVolumeClaim") or {}).get("readOnly")
    }


async def prepare(pod: PodToRun, folder: Path, around: Around, sources: Sources) -> dict[str, str]:
    """The directory, or file, of each volume; raises ``Unmakeable`` if one cannot be prepared."""
    group = pod.spec.security_context.fs_group if sources.owners else None
    found = {}
    for volume in pod.spec.volumes:
        name = volume["name"]
        try:
            found[name] = await _prepare(pod, volume, folder / "volumes" / name, around, sources, group)
        except OSError as error:
            raise Unmountable(name, f"{error.strerror}: {error.filename}") from error
    return found


async def _prepare(
    pod: PodToRun, volume: Mapping[str, Any], path: Path, around: Around, sources: Sources, group: int | None
) -> str:
    name = volume["name"]
    if "hostPath" in volume:
        return _host_path(name, volume["hostPath"] or {})
    if "image" in volume:
        return await sources.image((volume["image"] or {}).get("reference", ""))
    if "persistentVolumeClaim" in volume or "ephemeral" in volume:
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName") or f"{pod.metadata.name}-{name}"
        directory = await sources.claim(claim)
        if group is not None and not _belongs(Path(directory), group):
            give(Path(directory), group)
        return directory
    if "emptyDir" in volume:
        source = volume["emptyDir"] or {}
        _make_empty(path, group)
        if source.get("medium") == MEMORY:
            await sources.memory(str(path), size_in_memory(pod, source), group or 0)
    elif (files := await content(pod, volume, around, sources)) is not None:
        write(path, files, group)
    else:
        kinds = ", ".join(sorted(set(volume) - {"name"}))
        raise Unmountable(name, f"{kinds or 'nothing'} cannot be mounted on this machine")
    return str(path)


# --- directories -----------------------------------------------------------------------------------


def _make_empty(path: Path, group: int | None) -> None:
    """A directory that every user may write to; one that is there stays as it is."""
    if not path.is_dir():
        path.mkdir(parents=True)
        path.chmod(0o777)
        if group is not None:
            give(path, group)


def size_in_memory(pod: PodToRun, source: Mapping[str, Any]) -> int:
    """In bytes, at most what the Pod's containers may use together; 0 for what the kernel allows."""
    limits = [each.resources.limits.get("memory") for each in pod.spec.containers]
    bounds = [sum(measure(str(each)) for each in limits)] if None not in limits else []
    if source.get("sizeLimit"):
        bounds.append(measure(str(source["sizeLimit"])))
    return int(min((each for each in bounds if each), default=0))


def _belongs(path: Path, group: int) -> bool:
    """Whether a volume was given to the group before."""
    found = path.stat()
    return found.st_gid == group and bool(found.st_mode & stat.S_ISGID)


def give(path: Path, group: int, *, write: bool = True) -> None:
    """Let a group read, and write, all that is there, and have what is created from now on."""
    for folder, _, files in os.walk(path):
        os.chown(folder, -1, group)
        os.chmod(folder, stat.S_IMODE(os.stat(folder).st_mode) | stat.S_ISGID | (0o770 if write else 0o550))
        for name in files:
            file = os.path.join(folder, name)
            os.chown(file, -1, group, follow_symlinks=False)
            if not os.path.islink(file):
                os.chmod(file, stat.S_IMODE(os.stat(file).st_mode) | (0o660 if write else 0o440))


_KINDS: dict[str, tuple[Callable[[int], bool], str]] = {
    "Directory": (stat.S_ISDIR, "directory"),
    "File": (stat.S_ISREG, "file"),
    "Socket": (stat.S_ISSOCK, "socket file"),
    "CharDevice": (stat.S_ISCHR, "character device"),
    "BlockDevice": (stat.S_ISBLK, "block device"),
}


def _host_path(name: str, source: Mapping[str, Any]) -> str:
    path, kind = str(source.get("path", "")), source.get("type") or ""
    if kind in ("", "DirectoryOrCreate") and not os.path.exists(path):
        os.makedirs(path)
    elif kind == "FileOrCreate" and not os.path.exists(path):
        Path(path).touch()
    if (wanted := _KINDS.get(kind.removesuffix("OrCreate"))) is not None:
        fits, what = wanted
        if not os.path.exists(path) or not fits(os.stat(path).st_mode):
            raise Unmountable(name, f"hostPath type check failed: {path} is not a {what}")
    return path


# --- content ---------------------------------------------------------------------------------------


async def content(pod: PodToRun, volume: Mapping[str, Any], around: Around, sources: Sources) -> dict[str, File] | None:
    """The files of a volume that is made of content; None if it is of another kind."""
    name = volume["name"]
    for kind in ("configMap", "secret", "downwardAPI"):
        if kind in volume:
            source = msgspec.convert(volume[kind] or {}, _Source)
            mode = DEFAULT_MODE if source.default_mode is None else source.default_mode
            return await _files(pod, name, kind, source, mode, around, sources)
    if "projected" not in volume:
        return None
    found: dict[str, File] = {}
    mode = volume["projected"].get("defaultMode")
    mode = DEFAULT_MODE if mode is None else mode
    for each in volume["projected"].get("sources") or ():
        if (token := each.get("serviceAccountToken")) is not None:
            wanted = TokenWanted(token.get("audience") or "", token.get("expirationSeconds") or DEFAULT_TOKEN_SECONDS)
            found[token["path"]] = _token_file(pod, (await sources.token(wanted)).encode(), mode, sources)
            continue
        for kind in ("configMap", "secret", "downwardAPI"):
            if kind in each:
                source = msgspec.convert(each[kind] or {}, _Source)
                found |= await _files(pod, name, kind, source, mode, around, sources)
    return found


def _token_file(pod: PodToRun, token: bytes, mode: int, sources: Sources) -> File:
    """A token belongs to the Pod's group, or to the user that all its containers run as, and to no other."""
    if not sources.owners:
        return File(token, mode)
    common = pod.spec.security_context
    users = {
        common.run_as_user if each.security_context.run_as_user is None else each.security_context.run_as_user
        for each in (*pod.spec.init_containers, *pod.spec.containers)
    }
    user = users.pop() if len(users) == 1 else None
    if user is None and common.fs_group is None:
        return File(token, mode)
    return File(token, TOKEN_MODE, -1 if user is None else user)


async def _files(
    pod: PodToRun, volume: str, kind: str, source: _Source, mode: int, around: Around, sources: Sources
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
        raise Unmountable(volume, f'{kind.lower()} "{name}" not found')
    known = _bytes_of(kind, obj)
    if not source.items:
        return {key: File(value, mode) for key, value in known.items()}
    found = {}
    for item in source.items:
        if item.key in known:
            found[item.path] = File(known[item.key], mode if item.mode is None else item.mode)
        elif not source.optional:
            words = (
                "configmap references non-existent config" if kind == "configMap" else "references non-existent secret"
            )
            raise Unmountable(volume, f"{words} key: {item.key}")
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


def write(path: Path, files: Mapping[str, File], group: int | None = None) -> None:
    """Put this content in place as a whole, for this group to read; nothing happens if it is there already."""
    current = path / "..data"
    old = os.readlink(current) if current.is_symlink() else None
    if old is None:
        path.mkdir(parents=True, exist_ok=True)
    elif _same(current, files):
        return
    new = f"{path}/..{uuid4().hex}"
    os.mkdir(new)
    for name, file in files.items():
        _put(f"{new}/{name}", file)
    if group is not None:
        give(Path(new), group, write=False)
    os.symlink(os.path.basename(new), f"{new}.tmp")
    os.replace(f"{new}.tmp", current)
    wanted = {name.split("/")[0] for name in files}
    there = {name for name in os.listdir(path) if not name.startswith("..")}
    for name in wanted - there:
        os.symlink(f"..data/{name}", path / name)
    for name in there - wanted:
        os.unlink(path / name)
    if old is not None:
        shutil.rmtree(path / old, ignore_errors=True)


def _put(place: str, file: File) -> None:
    try:
        opened = os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, file.mode)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(place))
        opened = os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, file.mode)
    with open(opened, "wb") as writing:
        writing.write(file.content)
        os.fchmod(opened, file.mode)
        if file.user >= 0:
            os.fchown(opened, file.user, -1)


def _same(current: Path, files: Mapping[str, File]) -> bool:
    there = {str(each.relative_to(current)): each for each in current.rglob("*") if each.is_file()}
    return set(there) == set(files) and all(there[name].read_bytes() == file.content for name, file in files.items())
