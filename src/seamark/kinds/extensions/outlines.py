"""A definition whose schemas are still text.

A server may have hundreds of definitions, most of them unused: their schemas, nearly all of their size, are
decoded when the first instance or the first reader of OpenAPI needs them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from seamark.errors import Object


class _Schema(msgspec.Struct, omit_defaults=True):
    openAPIV3Schema: msgspec.Raw = msgspec.Raw(b"null")  # noqa: N815  # the field's name


class _Version(msgspec.Struct, omit_defaults=True):
    name: str
    served: bool = False
    storage: bool = False
    deprecated: bool = False
    deprecationWarning: str | None = None  # noqa: N815
    schema: _Schema | None = None
    subresources: Any = None
    additionalPrinterColumns: Any = None  # noqa: N815
    selectableFields: Any = None  # noqa: N815


class _Spec(msgspec.Struct, omit_defaults=True):
    group: str
    names: Any
    scope: str
    versions: list[_Version]
    conversion: Any = None


class _Definition(msgspec.Struct):
    metadata: Any
    spec: _Spec
    status: Any = None


class _Top(msgspec.Struct):
    properties: dict[str, msgspec.Raw] | None = None


_definition = msgspec.json.Decoder(_Definition)
_top = msgspec.json.Decoder(_Top | None)


def outline(text: bytes) -> Object:
    """A stored definition as a dict, in which the schema of each version is ``msgspec.Raw``."""
    found = _definition.decode(text)
    spec = found.spec
    versions = [
        {name: value for name in version.__struct_fields__ if (value := getattr(version, name)) is not None}
        for version in spec.versions
    ]
    for version in versions:
        if "schema" in version:
            version["schema"] = {"openAPIV3Schema": version["schema"].openAPIV3Schema}
    return {
        "metadata": found.metadata,
        "spec": {
            "group": spec.group,
            "names": spec.names,
            "scope": spec.scope,
            "versions": versions,
            "conversion": spec.conversion or {"strategy": "None"},
        },
        **({} if found.status is None else {"status": found.status}),
    }


def schema_of(version: Object) -> Object:
    """The schema of a version, decoded."""
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if isinstance(schema, msgspec.Raw):
        schema = msgspec.json.decode(schema)
    return schema or {"type": "object"}


def schema_text(version: Object) -> bytes:
    """The schema of a version as JSON."""
    return msgspec.json.encode((version.get("schema") or {}).get("openAPIV3Schema"))


def top_fields(version: Object) -> list[str]:
    """The names of the fields at the top of a version's schema; the rest is not decoded."""
    found = _top.decode(schema_text(version))
    return list((found and found.properties) or ())
