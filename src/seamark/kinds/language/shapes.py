"""Shapes written as words, resolved one by one as they are asked for.

``shapes.json`` has those of the built-in kinds; it maps a shape's OpenAPI name to its fields::

    "ports": "[]io.k8s.api.core.v1.ServicePort drop #1 map=port,protocol patch=merge key=port"

The first word is the type (``[]`` a list of, ``{}`` a map to), the second the :class:`Zero` rule; then any of ``#``
and the protobuf numbers, ``required``, ``set`` or ``map=keys`` (how apply merges a list), ``atomic`` (maps, structs),
``patch=`` and ``key=`` (strategic merge patch), ``default=`` and ``go=`` (the Go type's name).  ``"*": "atomic"`` marks
a whole struct atomic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import get_args

import msgspec

from seamark.kinds.language.shape import Field, ListOf, MapOf, Scalar, ScalarName, Shape, Type, Zero

# Read as a file: importlib.resources would import zipfile, which takes longer than reading.
FACTS = Path(__file__).with_name("shapes.json")

_SCALARS: dict[str, Scalar] = {name: Scalar(name) for name in get_args(ScalarName)}
_ZEROS: dict[str, Zero] = {zero.value: zero for zero in Zero}


# The groups whose name is not their package's name and ".k8s.io".
_GROUPS = {
    "core": "",
    "meta": "",
    "apps": "apps",
    "autoscaling": "autoscaling",
    "batch": "batch",
    "flowcontrol": "flowcontrol.apiserver.k8s.io",
    "policy": "policy",
    "rbac": "rbac.authorization.k8s.io",
}


def group_version(name: str) -> tuple[str, str]:
    """The API group and version a shape's name belongs to: ``io.k8s.api.apps.v1.Deployment`` → ``apps``, ``v1``."""
    package, version, _ = name.rsplit(".", 2)
    word = package.rsplit(".", 1)[-1]
    return _GROUPS.get(word, f"{word}.k8s.io"), version


class Shapes(Mapping[str, Shape]):
    """Shapes by OpenAPI name; looking one up resolves it and those it refers to, once."""

    def __init__(self, facts: Mapping[str, Mapping[str, str]], others: Mapping[str, Shape] | None = None) -> None:
        """The shapes that ``facts`` describe; fields may refer to those in ``others`` as well."""
        self._facts = facts
        self._others = others or {}
        self._resolved: dict[str, Shape] = {}

    def __getitem__(self, name: str) -> Shape:
        shape = self._resolved.get(name)
        if shape is None:
            facts = self._facts[name]
            # Entered before its fields are resolved, because shapes may refer to each other in circles.
            shape = self._resolved[name] = Shape(name, {}, atomic="*" in facts)
            shape.fields.update({field: self._field(text) for field, text in facts.items() if field != "*"})
        return shape

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    @cached_property
    def kinds(self) -> Mapping[tuple[str, str], str]:
        """The names of the shapes that are whole objects, by apiVersion and kind."""
        found: dict[tuple[str, str], str] = {}
        for name, facts in self._facts.items():
            kind = name.rsplit(".", 1)[-1]
            if {"apiVersion", "kind", "metadata"} <= facts.keys() or kind == "DeleteOptions":
                group, version = group_version(name)
                found[f"{group}/{version}" if group else version, kind] = name
        return found

    def _field(self, text: str) -> Field:
        type_word, zero_word, *rest = text.split(" ")
        marks = dict(word.partition("=")[::2] for word in rest)
        return Field(
            type=self._type(type_word, marks),
            zero=_ZEROS[zero_word],
            required="required" in marks,
            patch_strategy=marks.get("patch", ""),
            merge_key=marks.get("key", ""),
            default=marks.get("default"),
            go_type=marks.get("go", ""),
            numbers=tuple(int(number) for word in rest if word[0] == "#" for number in word[1:].split(".")),
        )

    def _type(self, word: str, marks: Mapping[str, str]) -> Type:
        """``marks`` belong to the field's outermost type only."""
        if word.startswith("[]"):
            of = self._type(word[2:], {})
            if "map" in marks:
                return ListOf(of, "map", tuple(marks["map"].split(",")))
            return ListOf(of, "set" if "set" in marks else "atomic")
        if word.startswith("{}"):
            return MapOf(self._type(word[2:], {}), atomic="atomic" in marks)
        return _SCALARS.get(word) or (self if word in self._facts else self._others)[word]


@cache
def load() -> Shapes:
    """The shapes of the built-in kinds.  They are constants, like the code, so all servers of a process share them."""
    return Shapes(msgspec.json.decode(FACTS.read_bytes(), type=dict[str, dict[str, str]]))


def of(name: str) -> Shape:
    """The built-in shape with this OpenAPI name, e.g. ``io.k8s.api.core.v1.Service``; KeyError if there is none."""
    return load()[name]
