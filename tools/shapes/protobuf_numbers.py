"""Reads the protobuf field numbers of shapes from compiled descriptors (``generated_pb2.py`` files).

JSON flattens embedded structs, protobuf does not: a Volume's ``emptyDir`` is field 2 of its field 2.  So a number is a
path of numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from zipfile import ZipFile

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

Numbers = Mapping[str, tuple[int, ...]]


def messages(wheel: ZipFile) -> dict[str, DescriptorProto]:
    """Every message in a wheel's ``generated_pb2.py`` files by OpenAPI name (``io.k8s.api.core.v1.Pod``)."""
    found: dict[str, DescriptorProto] = {}
    for file in sorted(name for name in wheel.namelist() if name.endswith("/generated_pb2.py")):
        for descriptor in _descriptors(wheel.read(file).decode()):
            # k8s.io.api.core.v1 → io.k8s.api.core.v1
            prefix = "io.k8s." + descriptor.package.removeprefix("k8s.io.")
            for message in descriptor.message_type:
                found[f"{prefix}.{message.name}"] = message
    return found


def _descriptors(source: str) -> Iterator[FileDescriptorProto]:
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "AddSerializedFile"
        ):
            argument = node.args[0]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, bytes):
                yield FileDescriptorProto.FromString(argument.value)


def numbers(name: str, properties: Mapping[str, object], known: Mapping[str, DescriptorProto]) -> Numbers:
    """The numbers of a shape's fields; a message field that its JSON lacks is an embedded struct, so look inside it."""
    found: dict[str, tuple[int, ...]] = {}
    if name not in known:
        return found
    for field in known[name].field:
        if field.name in properties:
            found[field.name] = (field.number,)
        elif field.type == FieldDescriptorProto.TYPE_MESSAGE:
            inner = "io.k8s." + field.type_name.removeprefix(".k8s.io.")
            found |= {sub: (field.number, *path) for sub, path in numbers(inner, properties, known).items()}
    return found
