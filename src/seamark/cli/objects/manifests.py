"""The objects in the files of ``-f``: YAML or JSON, several documents in one file, lists, directories, stdin."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from seamark.cli.failure import Failure

if TYPE_CHECKING:
    from seamark.cli.objects.kinds import ServerKind, ServerKinds

SUFFIXES = (".yaml", ".yml", ".json")
_NEXT_DOCUMENT = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)


class Manifest(msgspec.Struct, frozen=True):
    """One object, and the file it was read from."""

    source: str
    object: dict[str, Any]

    @property
    def name(self) -> str:
        return str((self.object.get("metadata") or {}).get("name") or "")

    @property
    def namespace(self) -> str:
        return str((self.object.get("metadata") or {}).get("namespace") or "")

    def kind_among(self, kinds: ServerKinds) -> ServerKind:
        """The server's kind for this object; ``Failure`` if the server lacks it, or the object has no name."""
        version, kind = self.object["apiVersion"], self.object["kind"]
        known = kinds.by_kind(version, kind)
        if known is None:
            hint = kinds.instead_of(version, kind)
            raise Failure(f'{self.source}: no matches for kind "{kind}" in version "{version}"; {hint}')
        if not self.name:
            raise Failure(f"{self.source}: a {kind} without metadata.name")
        return known

    def namespace_for(self, kind: ServerKind, *, asked: str | None, default: str) -> str:
        """The namespace of the object itself, else that of the command line, else that of the context."""
        if not kind.resource.namespaced:
            return ""
        if asked and self.namespace and asked != self.namespace:
            raise Failure(
                f"{self.source}: {kind.label}/{self.name} is of the namespace {self.namespace}, not of {asked}: "
                f"leave out --namespace, or give --namespace={self.namespace}"
            )
        return self.namespace or asked or default


def read_all(names: Sequence[str]) -> list[Manifest]:
    """Everything in these files and directories, in order; ``Failure`` if that is nothing."""
    found = [manifest for name in names for source, text in _texts(name) for manifest in parse(text, source)]
    if not found:
        raise Failure(f"there is no object in {', '.join(names)}")
    return found


def _texts(name: str) -> Iterator[tuple[str, str]]:
    if name == "-":
        if isinstance(sys.stdin, io.TextIOWrapper):  # another in tests
            sys.stdin.reconfigure(encoding="utf-8")  # as YAML and JSON are, whatever the locale
        yield "STDIN", sys.stdin.read()
        return
    path = Path(name)
    try:
        files = [path]
        if path.is_dir():
            files = [each for each in sorted(path.iterdir()) if each.suffix in SUFFIXES and each.is_file()]
            if not files:
                raise Failure(f"the directory {name} has no file that ends in {', '.join(SUFFIXES)}")
        for each in files:
            yield str(each), each.read_text(encoding="utf-8")
    except OSError as error:
        raise Failure(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Failure(f"{name} is not text: {error}") from error


def parse(text: str, source: str) -> Iterator[Manifest]:
    """The objects in a text."""
    from seamark.kinds.language.yaml_body import YamlFault, read

    for document in _NEXT_DOCUMENT.split(text):
        try:
            value, repeated = read(document.encode())
        except YamlFault as error:
            raise Failure(f"{source}: {error}") from error
        if repeated:
            raise Failure(f"{source}: {' '.join(repeated[0].split())}")
        if value is not None:
            yield from _objects(value, source)


def _objects(value: Any, source: str) -> Iterator[Manifest]:
    if not isinstance(value, dict):
        raise Failure(f"{source}: an object is needed, not {type(value).__name__}")
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field), str) or not value[field]:
            raise Failure(f"{source}: an object without {field}")
    if value["kind"].endswith("List") and isinstance(value.get("items"), list):
        for item in value["items"]:
            yield from _objects(item, source)
        return
    if not isinstance(value.get("metadata") or {}, dict):
        raise Failure(f"{source}: metadata of a {value['kind']} must be a mapping")
    yield Manifest(source, value)
