"""Objects from files: YAML or JSON, several documents in one, lists, directories, URLs, stdin."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from seamark.cli.failure import Refusal
from seamark.cli.targets import Target

if TYPE_CHECKING:
    from seamark.cli.server_kinds import ServerKind, ServerKinds

SUFFIXES = (".yaml", ".yml", ".json")
PATIENCE = 30.0  # seconds somebody else's server has
_NEXT_DOCUMENT = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)


class Manifest(msgspec.Struct, frozen=True):
    """One object, and the file it stands in."""

    source: str
    object: dict[str, Any]

    @property
    def name(self) -> str:
        return str((self.object.get("metadata") or {}).get("name") or "")

    @property
    def namespace(self) -> str:
        return str((self.object.get("metadata") or {}).get("namespace") or "")


def read_all(names: Sequence[str], *, recursive: bool) -> list[Manifest]:
    """Everything in these files and directories, in order; ``Refusal`` if that is nothing."""
    found: list[Manifest] = []
    for name in _separate(names):
        for source, text in _texts(name, recursive):
            found += parse(text, source)
    if not found:
        raise Refusal(f"there is no object in {', '.join(names)}")
    return found


def _separate(names: Sequence[str]) -> Iterator[str]:
    """``a.yaml,b.yaml`` and ``*.yaml`` are several, unless there is a file that is called so."""
    for given in names:
        for name in [given] if Path(given).exists() else given.split(","):
            found = sorted(glob(name)) if set(name) & set("*?[") and not Path(name).exists() else []
            yield from found or [name]


def _texts(name: str, recursive: bool) -> Iterator[tuple[str, str]]:
    if name == "-":
        yield "STDIN", sys.stdin.read()
        return
    if name.startswith(("http://", "https://")):
        yield name, _fetched(name)
        return
    path = Path(name)
    try:
        if path.is_dir():
            files: Iterable[Path] = sorted(path.rglob("*") if recursive else path.iterdir())
            files = [each for each in files if each.suffix in SUFFIXES and each.is_file()]
            if not files:
                raise Refusal(f"the directory {name} has no file that ends in {', '.join(SUFFIXES)}")
        else:
            files = [path]
        for each in files:
            yield str(each), each.read_text()
    except FileNotFoundError as error:
        raise Refusal(f'the path "{name}" does not exist') from error
    except OSError as error:
        raise Refusal(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Refusal(f"{name} is not text: {error}") from error


def _fetched(url: str) -> str:
    from urllib.error import HTTPError, URLError
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=PATIENCE) as answer:
            content: bytes = answer.read()
        return content.decode()
    except HTTPError as error:
        error.close()
        status = f"server reported {error.code} {error.reason}, status code={error.code}"
        raise Refusal(f'unable to read URL "{url}", {status}') from error
    except (URLError, OSError, UnicodeDecodeError) as error:
        raise Refusal(f'unable to read URL "{url}": {getattr(error, "reason", error)}') from error


def parse(text: str, source: str) -> Iterator[Manifest]:
    """The objects in a text."""
    from seamark.kinds.language.yaml_body import YamlFault, read

    for document in _NEXT_DOCUMENT.split(text):
        try:
            value, repeated = read(document.encode())
        except YamlFault as error:
            raise Refusal(f"{source}: {error}") from error
        if repeated:
            raise Refusal(f"{source}: {' '.join(repeated[0].split())}")
        if value is not None:
            yield from _objects(value, source)


def _objects(value: Any, source: str) -> Iterator[Manifest]:
    if not isinstance(value, dict):
        raise Refusal(f"{source}: an object is needed, not {type(value).__name__}")
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field), str) or not value[field]:
            raise Refusal(f"{source}: an object without {field}")
    if value["kind"].endswith("List") and isinstance(value.get("items"), list):
        for item in value["items"]:
            yield from _objects(item, source)
        return
    if not isinstance(value.get("metadata") or {}, dict):
        raise Refusal(f"{source}: metadata of a {value['kind']} must be a mapping")
    yield Manifest(source, value)


def kind_of(manifest: Manifest, kinds: ServerKinds) -> ServerKind:
    """The kind an object says it is; ``Refusal`` if this server does not have it, or if it has no name."""
    version, kind = manifest.object["apiVersion"], manifest.object["kind"]
    known = kinds.by_kind(version, kind)
    if known is None:
        raise Refusal(f'{manifest.source}: no matches for kind "{kind}" in version "{version}"')
    if not manifest.name:
        raise Refusal(f"{manifest.source}: a {kind} without metadata.name")
    return known


def namespace_of(manifest: Manifest, kind: ServerKind, *, asked: str | None, default: str) -> str:
    """Where the object belongs: where it says, else where the command says, else the context."""
    if not kind.resource.namespaced:
        return ""
    if asked and manifest.namespace and asked != manifest.namespace:
        raise Refusal(
            f'{manifest.source}: the namespace from the provided object "{manifest.namespace}" does not match '
            f"the namespace \"{asked}\". You must pass '--namespace={manifest.namespace}' to perform this operation."
        )
    return manifest.namespace or asked or default


def described(options: argparse.Namespace, kinds: ServerKinds, *, default: str) -> Iterator[tuple[Target, str]]:
    """What the files of ``-f`` describe, one after the other, and which file it was; ``default`` is the namespace."""
    for manifest in read_all(options.filename, recursive=options.recursive):
        kind = kind_of(manifest, kinds)
        namespace = namespace_of(manifest, kind, asked=options.namespace, default=default)
        yield Target(kind, manifest.name, namespace), manifest.source
