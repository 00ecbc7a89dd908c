"""Reads from Go type declarations what OpenAPI lacks: pointer or plain value, ``omitempty``, the type's name in Go.

    python tools/shapes/go_types.py k8s.io

writes ``go_fields.json``, so that making shapes does not need the Go sources: see README.md.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

META = "io.k8s.apimachinery.pkg.apis.meta.v1."

# Directory below k8s.io → OpenAPI name prefix.  Some kinds graduated to v1 after the release whose sources are read;
# their earlier types have the same fields, and a later line overrides an earlier one.
PACKAGES = {
    "api/admissionregistration/v1alpha1": "io.k8s.api.admissionregistration.v1.",
    "api/admissionregistration/v1": "io.k8s.api.admissionregistration.v1.",
    "api/apps/v1": "io.k8s.api.apps.v1.",
    "api/authentication/v1": "io.k8s.api.authentication.v1.",
    "api/authorization/v1": "io.k8s.api.authorization.v1.",
    "api/autoscaling/v1": "io.k8s.api.autoscaling.v1.",
    "api/autoscaling/v2": "io.k8s.api.autoscaling.v2.",
    "api/batch/v1": "io.k8s.api.batch.v1.",
    "api/certificates/v1beta1": "io.k8s.api.certificates.v1.",
    "api/certificates/v1": "io.k8s.api.certificates.v1.",
    "api/coordination/v1": "io.k8s.api.coordination.v1.",
    "api/core/v1": "io.k8s.api.core.v1.",
    "api/discovery/v1": "io.k8s.api.discovery.v1.",
    "api/events/v1": "io.k8s.api.events.v1.",
    "api/flowcontrol/v1": "io.k8s.api.flowcontrol.v1.",
    "api/networking/v1": "io.k8s.api.networking.v1.",
    "api/node/v1": "io.k8s.api.node.v1.",
    "api/policy/v1": "io.k8s.api.policy.v1.",
    "api/rbac/v1": "io.k8s.api.rbac.v1.",
    "api/resource/v1alpha3": "io.k8s.api.resource.v1.",
    "api/resource/v1beta2": "io.k8s.api.resource.v1.",
    "api/scheduling/v1": "io.k8s.api.scheduling.v1.",
    "api/storage/v1beta1": "io.k8s.api.storage.v1.",
    "api/storage/v1": "io.k8s.api.storage.v1.",
    "api/storagemigration/v1alpha1": "io.k8s.api.storagemigration.v1.",
    "apimachinery/pkg/apis/meta/v1": META,
    "apiextensions-apiserver/pkg/apis/apiextensions/v1": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.",
    "kube-aggregator/pkg/apis/apiregistration/v1": "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.",
}

FACTS = Path(__file__).with_name("go_fields.json")

BUILT_IN = {"string", "bool", "int", "int32", "int64", "float64", "byte"}

_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'^\s*(?:\w+\s+)?([*\[\]\w.]+)\s+`(.*?json:"([^"]*)".*)`', re.MULTILINE)
_NUMBER = re.compile(r'protobuf:"\w+,(\d+),')


class GoField(NamedTuple):
    pointer: bool
    omitempty: bool
    type: str  # as error messages print it: ``int32``, ``v1.Protocol``, ``[]v1.ServicePort``
    numbers: tuple[int, ...]  # in protobuf, see protobuf_numbers.py

    @classmethod
    def parse(cls, text: str) -> GoField:
        """Reads the notation of ``go_fields.json``: ``*v1.PodSpec omitempty #2.3``."""
        printed, *words = text.split()
        numbers = next((word[1:].split(".") for word in words if word.startswith("#")), [])
        return cls(printed.startswith("*"), "omitempty" in words, printed.lstrip("*"), tuple(map(int, numbers)))

    def __str__(self) -> str:
        omitempty = " omitempty" if self.omitempty else ""
        numbers = " #" + ".".join(map(str, self.numbers)) if self.numbers else ""
        return f"{'*' * self.pointer}{self.type}{omitempty}{numbers}"


Structs = Mapping[str, Mapping[str, GoField]]
Declared = tuple[str, str, tuple[int, ...]]  # type, JSON tag, number


def _declared(source: str) -> Iterator[tuple[str, list[Declared]]]:
    without_comments = re.sub(r"^\s*//.*$", "", source, flags=re.MULTILINE)
    for struct in _STRUCT.finditer(without_comments):
        yield struct[1], [(field[1], field[3], _numbers(field[2])) for field in _FIELD.finditer(struct[2])]


def _numbers(tags: str) -> tuple[int, ...]:
    match = _NUMBER.search(tags)
    return (int(match[1]),) if match else ()


def _printed(go_type: str, version: str) -> str:
    """A type as Go's ``reflect`` prints it: with its package's name, which for every API package is its version."""

    def qualify(match: re.Match[str]) -> str:
        package, name = match[1], match[2]
        if package:
            return f"v1.{name}" if package in ("metav1.", "v1.", "corev1.") else f"{package}{name}"
        if name == "byte":
            return "uint8"
        return name if name in BUILT_IN or name == "map" else f"{version}.{name}"

    return re.sub(r"(\w+\.)?(\w+)", qualify, go_type.lstrip("*"))


def read(root: Path) -> Structs:
    """Every struct's JSON fields, embedded structs flattened, by OpenAPI name; ``root`` is the folder ``k8s.io``."""
    declared: dict[str, list[Declared]] = {}
    for package, prefix in PACKAGES.items():
        for source in sorted((root / package).glob("types*.go")):
            if source.name != "types_swagger_doc_generated.go":
                for name, fields in _declared(source.read_text()):
                    declared[prefix + name] = fields

    def flatten(name: str) -> dict[str, GoField]:
        fields: dict[str, GoField] = {}
        version = name.rsplit(".", 2)[1]
        for go_type, tag, number in declared.get(name, ()):
            json_name, _, options = tag.partition(",")
            if "inline" in options:
                embedded = go_type.lstrip("*")
                owner = META if embedded.startswith("metav1.") else name.rsplit(".", 1)[0] + "."
                # TypeMeta is embedded without a number: it does not travel in protobuf.
                fields |= {
                    sub: field._replace(numbers=number + field.numbers if number else ())
                    for sub, field in flatten(owner + embedded.rsplit(".", 1)[-1]).items()
                }
            else:
                pointer = go_type.startswith("*")
                fields[json_name] = GoField(pointer, "omitempty" in options, _printed(go_type, version), number)
        return fields

    return {name: flatten(name) for name in declared}


def kept() -> Structs:
    """The structs as ``go_fields.json`` has them."""
    facts = json.loads(FACTS.read_text())
    return {name: {field: GoField.parse(text) for field, text in fields.items()} for name, fields in facts.items()}


def keep(structs: Structs) -> None:
    lines = [
        f"{json.dumps(name)}:{json.dumps({field: str(go) for field, go in fields.items()}, separators=(',', ':'))}"
        for name, fields in sorted(structs.items())
    ]
    FACTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    keep(read(Path(sys.argv[1])))
