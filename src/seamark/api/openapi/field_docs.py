"""What every field is for, for ``kubectl explain``.

Shapes that are added while the server runs describe themselves.  The words about built-in ones are Kubernetes' own,
from the docstrings of the package ``lightkube-models``.  It cannot be imported without the client it belongs to, so its
source is read as text, when first asked for.  Without the package the built-in shapes have no descriptions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from importlib import metadata

import msgspec

from seamark.kinds.language.shape import Shape

_PACKAGE = "lightkube-models"
_PARAMETER = re.compile(r"^\* \*\*(\w+)\*\* ``.*?`` - ?", re.MULTILINE)


class Words(msgspec.Struct, frozen=True):
    """The description of a shape and of its fields."""

    text: str = ""
    fields: Mapping[str, str] = {}


_NONE = Words()
_BUILT_IN = "io.k8s."


def describe(shape: Shape) -> Words:
    """The words about a shape; empty if there are none."""
    if not shape.name.startswith(_BUILT_IN):
        return Words(shape.description, {name: field.description for name, field in shape.fields.items()})
    package, version, kind = shape.name.rsplit(".", 2)
    return _module(f"{package.rsplit('.', 1)[-1]}_{version}").get(kind, _NONE)


def edition() -> str:
    """Which edition of the words is installed."""
    try:
        return metadata.version(_PACKAGE)
    except metadata.PackageNotFoundError:
        return ""


@cache
def _module(name: str) -> Mapping[str, Words]:
    source = _source(f"lightkube/models/{name}.py")
    found: dict[str, Words] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and (docstring := ast.get_docstring(node)):
            found[node.name] = _words(docstring)
    return found


def _source(path: str) -> str:
    try:
        files = metadata.files(_PACKAGE) or ()
        return next((file.read_text() for file in files if str(file) == path), "")
    except (metadata.PackageNotFoundError, OSError):
        return ""


def _words(docstring: str) -> Words:
    about, _, parameters = docstring.partition("**parameters**")
    # Splitting by a pattern with one group gives: what comes before, name, text, name, text …
    _, *pieces = _PARAMETER.split(parameters)
    return Words(
        text=_unwrapped(about),
        fields={_json_name(name): _unwrapped(text) for name, text in zip(pieces[::2], pieces[1::2], strict=True)},
    )


def _json_name(name: str) -> str:
    """The field's own name, where Python cannot use it: ``from``, ``$ref``, ``x-kubernetes-list-type``."""
    if name.startswith("x_kubernetes_"):
        return name.replace("_", "-")
    return name.removesuffix("_") if not name.startswith("d_") else f"${name[2:]}"


def _unwrapped(text: str) -> str:
    """Lines cut at 80 columns become paragraphs again; bullets and empty lines stay."""
    out: list[str] = []
    for line in (line.strip() for line in text.strip().splitlines()):
        if out and out[-1] and line and not line.startswith(("* ", "- ")):
            out[-1] += f" {line}"
        else:
            out.append(line)
    return "\n".join(out)
