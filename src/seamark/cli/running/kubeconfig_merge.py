"""``--merge-kubeconfig``: add a context to the user's kubeconfig without changing a byte of the rest.

kubectl reads such a file and writes it anew, without its comments and with numbers where texts were.  Here entries are
put into the text where they belong, as one line of JSON each, which YAML is happy with.  The result is read again
before it is written: whatever is not exactly the old content with the new entries is refused.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from seamark.cli.failure import Failure
from seamark.private_files import write_private

LISTS = {"clusters": "cluster", "users": "user", "contexts": "context"}
LOCK_PATIENCE = 5.0  # seconds that kubectl may take for its own change
LOOK_AGAIN = 0.05

Entries = Mapping[str, tuple[str, Mapping[str, Any]]]  # list → name and content of the entry


class _AsWritten(yaml.SafeLoader):
    """Keeps scalars as text, so that ``0123`` stays as it is; only null is recognised."""


_AsWritten.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag == "tag:yaml.org,2002:null"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def merge_for_user(kubeconfig: Path, context: str) -> Path:
    """Add the only context of ``kubeconfig``, under that name, to the user's kubeconfig; returns its path."""
    target = users_kubeconfig(os.environ, Path.home())
    try:
        entries = entries_of(yaml.safe_load(kubeconfig.read_text(encoding="utf-8")), context)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(target):
            text = target.read_text(encoding="utf-8") if target.exists() else ""
            write_private(target, merged(text, entries, context, source=str(target)).encode())
    except OSError as error:
        raise Failure(f"cannot merge into {target}: {error.strerror or error}") from error
    return target


def users_kubeconfig(environ: Mapping[str, str], home: Path) -> Path:
    """The file that kubectl would write to, with links resolved."""
    listed = [each for each in environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    return Path(os.path.realpath(listed[0] if listed else home / ".kube" / "config"))


def entries_of(config: Mapping[str, Any], name: str) -> Entries:
    """The entries of a kubeconfig with one context, renamed."""
    user = f"{name}-admin"
    context = {**config["contexts"][0]["context"], "cluster": name, "user": user}
    return {
        "clusters": (name, config["clusters"][0]["cluster"]),
        "users": (user, config["users"][0]["user"]),
        "contexts": (name, context),
    }


# --- the text --------------------------------------------------------------------------------------


def merged(text: str, entries: Entries, context: str, *, source: str) -> str:
    """The text with these entries; ``current-context`` becomes ``context`` if there was none."""
    try:
        before = yaml.load(text, _AsWritten)
        if yaml.compose(text, _AsWritten) is None:
            # Nothing, or comments.
            return (f"{text.rstrip()}\n" if text.strip() else "") + _whole(entries, context)
        if not _is_kubeconfig(before):
            raise Failure(f"{source} is not a kubeconfig: it is left as it is")
        result = text
        for name, (entry, content) in entries.items():
            result = _with_entry(result, name, entry, content)
        if not before.get("current-context"):
            result = _with_value(result, "current-context", json.dumps(context))
        after = yaml.load(result, _AsWritten)
    except yaml.YAMLError as error:
        raise Failure(f"{source} is not YAML, and is left as it is: {' '.join(str(error).split())}") from error
    if after != _expected(before, entries, context):
        raise Failure(f"{source} is written in a way that cannot be added to safely: it is left as it is")
    return result


def _is_kubeconfig(value: Any) -> bool:
    """Whether the lists we are about to change are lists of mappings."""
    if not isinstance(value, dict):
        return False
    lists = [value.get(name) or [] for name in LISTS]
    return all(isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries) for entries in lists)


def _whole(entries: Entries, context: str) -> str:
    config: dict[str, Any] = {"apiVersion": "v1", "kind": "Config"}
    for name, (entry, content) in entries.items():
        config[name] = [{"name": entry, LISTS[name]: dict(content)}]
    return yaml.safe_dump({**config, "current-context": context}, sort_keys=False)


def _expected(before: Mapping[str, Any], entries: Entries, context: str) -> dict[str, Any]:
    """The content that the merged text must have."""
    after = dict(before)
    for name, (entry, content) in entries.items():
        listed = before.get(name) or []
        new = {"name": entry, LISTS[name]: dict(content)}
        if any(each.get("name") == entry for each in listed):
            after[name] = [{**each, **new} if each.get("name") == entry else each for each in listed]
        else:
            after[name] = [new, *listed]
    after["current-context"] = before.get("current-context") or context
    return after


def _with_entry(text: str, name: str, entry: str, content: Mapping[str, Any]) -> str:
    """Change the entry of that name, or put a new one first."""
    found = _value(_top(text), name)
    line = json.dumps({"name": entry, LISTS[name]: content})
    if not isinstance(found, yaml.SequenceNode) or not found.value:
        return _with_value(text, name, f"[{line}]")
    for each in found.value:
        known = _value(each, "name")
        if known is not None and known.value == entry:
            old = _value(each, LISTS[name])
            if old is not None:
                return text[: old.start_mark.index] + json.dumps(content) + text[_end(old) :]
            return _with_key(text, each, LISTS[name], json.dumps(content))
    if found.flow_style:
        return _inserted(text, found.start_mark.index + 1, f"{line}, ")
    mark = found.start_mark
    return _inserted(text, mark.index, f"- {line}\n{' ' * mark.column}")


def _with_value(text: str, key: str, value: str) -> str:
    """Set a key at the top of the file, replacing its value."""
    top = _top(text)
    old = _value(top, key)
    if old is None:
        return _with_key(text, top, key, value)
    empty = isinstance(old, yaml.ScalarNode) and old.start_mark.index == old.end_mark.index
    return text[: old.start_mark.index] + (f" {value}" if empty else value) + text[_end(old) :]


def _with_key(text: str, mapping: yaml.Node, key: str, value: str) -> str:
    """Put a new key first in a mapping."""
    mark = mapping.start_mark
    if getattr(mapping, "flow_style", False):
        return _inserted(text, mark.index + 1, f'"{key}": {value}, ')
    return _inserted(text, mark.index, f"{key}: {value}\n{' ' * mark.column}")


def _inserted(text: str, where: int, what: str) -> str:
    return text[:where] + what + text[where:]


def _top(text: str) -> yaml.Node:
    """All of the file, which is a mapping: :func:`merged` has looked."""
    node = yaml.compose(text, _AsWritten)
    assert node is not None
    return node


def _value(mapping: yaml.Node, key: str) -> yaml.Node | None:
    if not isinstance(mapping, yaml.MappingNode):
        return None
    return next((value for name, value in mapping.value if name.value == key), None)


def _end(node: yaml.Node) -> int:
    """Where a node really ends: PyYAML counts what follows a block, comments included, as part of it."""
    if not isinstance(node, yaml.CollectionNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(node, yaml.MappingNode) else last)


# --- the file --------------------------------------------------------------------------------------


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep kubectl out while the file changes, by its own convention: a file of that name plus ``.lock``."""
    lock = path.with_name(f"{path.name}.lock")
    until = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0o600))
            break
        except FileExistsError:
            if time.monotonic() > until:
                raise Failure(f"{path} is being changed by another process: {lock} is there") from None
            time.sleep(LOOK_AGAIN)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
