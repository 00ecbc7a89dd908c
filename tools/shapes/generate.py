"""Makes ``shapes.json``: every field of every kind served, as facts without prose.

    make shapes        writes it
    make check         fails if the file differs from what would be written

README.md names the inputs.  ``seamark.kinds.language.shapes`` describes the output.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import newer
from go_types import META, GoField, Structs, kept
from protobuf_numbers import Numbers, messages, numbers

Schema = dict[str, Any]

ROOT = Path(__file__).parents[2]
SHAPES = ROOT / "src" / "seamark" / "kinds" / "language" / "shapes.json"
SCHEMAS = "kubernetes_validate/kubernetes-json-schema/v1.37.0-local/_definitions.json"

EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

KINDS = {
    "io.k8s.api.core.v1.": "Namespace Node Pod Service Endpoints Event ConfigMap Secret ServiceAccount "
    "ReplicationController Binding PersistentVolume PersistentVolumeClaim ResourceQuota LimitRange PodTemplate "
    "ComponentStatus",
    "io.k8s.api.events.v1.": "Event",
    "io.k8s.api.discovery.v1.": "EndpointSlice",
    "io.k8s.api.coordination.v1.": "Lease",
    "io.k8s.api.apps.v1.": "Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision",
    "io.k8s.api.batch.v1.": "Job CronJob",
    "io.k8s.api.networking.v1.": "IPAddress ServiceCIDR Ingress IngressClass NetworkPolicy",
    "io.k8s.api.policy.v1.": "Eviction PodDisruptionBudget",
    "io.k8s.api.autoscaling.v1.": "Scale HorizontalPodAutoscaler",
    "io.k8s.api.autoscaling.v2.": "HorizontalPodAutoscaler",
    "io.k8s.api.storage.v1.": "StorageClass CSIDriver CSINode CSIStorageCapacity VolumeAttachment "
    "VolumeAttributesClass",
    "io.k8s.api.storagemigration.v1.": "StorageVersionMigration",
    "io.k8s.api.scheduling.v1.": "PriorityClass",
    "io.k8s.api.node.v1.": "RuntimeClass",
    "io.k8s.api.certificates.v1.": "CertificateSigningRequest ClusterTrustBundle PodCertificateRequest",
    "io.k8s.api.rbac.v1.": "Role RoleBinding ClusterRole ClusterRoleBinding",
    "io.k8s.api.admissionregistration.v1.": "ValidatingWebhookConfiguration MutatingWebhookConfiguration "
    "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
    "io.k8s.api.flowcontrol.v1.": "FlowSchema PriorityLevelConfiguration",
    "io.k8s.api.resource.v1.": "DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceSlice",
    "io.k8s.api.authentication.v1.": "TokenReview TokenRequest SelfSubjectReview",
    "io.k8s.api.authorization.v1.": "SubjectAccessReview SelfSubjectAccessReview LocalSubjectAccessReview "
    "SelfSubjectRulesReview",
    EXTENSIONS: "CustomResourceDefinition",
    "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.": "APIService",
    META: "DeleteOptions Status",
}

SCALARS = {
    META + "Time": "time",
    META + "MicroTime": "microtime",
    META + "FieldsV1": "any",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "any",
    EXTENSIONS + "JSON": "any",
    EXTENSIONS + "JSONSchemaPropsOrArray": "any",
    EXTENSIONS + "JSONSchemaPropsOrBool": "any",
    EXTENSIONS + "JSONSchemaPropsOrStringArray": "any",
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
}

# Scalars whose Go type encodes itself, so that omitempty never leaves out a plain one.
ENCODE_THEMSELVES = {"time", "microtime", "any", "quantity", "int-or-string"}


def wanted(schemas: dict[str, Schema]) -> list[str]:
    """The kinds, their lists, and every shape they reach."""
    found: dict[str, None] = {}

    def visit(name: str) -> None:
        if name in found or name in SCALARS:
            return
        found[name] = None
        for reference in references(schemas[name]):
            visit(reference)

    for prefix, kinds in KINDS.items():
        for kind in kinds.split():
            visit(prefix + kind)
            if prefix + kind + "List" in schemas:
                visit(prefix + kind + "List")
    return sorted(found)


def references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):  # a JSON schema has a property of this name
            yield target(schema)
        for part in schema.values():
            yield from references(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from references(part)


def target(schema: Schema) -> str:
    return str(schema["$ref"]).rsplit("/", 1)[-1]


def type_text(schema: Schema) -> str:
    """A type as ``seamark.kinds.language.shapes`` writes it: ``int32``, ``[]string``, ``{}quantity``, a shape name."""
    if "$ref" in schema:
        return SCALARS.get(target(schema), target(schema))
    kind = schema["type"][0] if isinstance(schema["type"], list) else schema["type"]
    if kind == "array":
        return "[]" + type_text(schema["items"])
    if kind == "object":
        return "{}" + type_text(schema["additionalProperties"])
    if kind == "integer":
        return str(schema["format"])
    if kind == "number":
        return "float64"
    if kind == "boolean":
        return "bool"
    return "bytes" if schema.get("format") == "byte" else "string"


def category(text: str) -> str:
    if text.startswith("[]"):
        return "list"
    if text.startswith("{}"):
        return "map"
    return "struct" if text.startswith("io.") else text


def zero(field: str, text: str, go: GoField | None, *, required: bool) -> str:
    """What becomes of the empty value: see ``seamark.kinds.language.shape.Zero``."""
    if field in newer.EXCEPTIONS:
        return newer.EXCEPTIONS[field]
    kind = category(text)
    if go is None:
        return newer.by_convention(field, kind, required=required)
    if go.pointer:
        return "keep" if go.omitempty else "null"
    if kind == "struct" or kind in ENCODE_THEMSELVES:
        return "fill"
    return "drop" if go.omitempty else "fill"


def go_type(text: str) -> str:
    """The Go type a reader would guess from the notation; only others are written down."""
    if text.startswith("[]"):
        return "[]" + go_type(text[2:])
    if text.startswith("{}"):
        return "map[string]" + go_type(text[2:])
    if text.startswith("io."):
        return ".".join(text.rsplit(".", 2)[1:])
    special = {"time": "v1.Time", "microtime": "v1.MicroTime", "quantity": "resource.Quantity", "bytes": "[]uint8"}
    return special.get(text, "intstr.IntOrString" if text == "int-or-string" else text)


def field_text(field: str, schema: Schema, go: GoField | None, number: tuple[int, ...], *, required: bool) -> str:
    text = type_text(schema)
    words = [text, zero(field, text, go, required=required)]
    if number:
        words.append("#" + ".".join(map(str, number)))
    if required:
        words.append("required")
    list_type = schema.get("x-kubernetes-list-type", "atomic")
    if list_type == "map":
        words.append("map=" + ",".join(schema["x-kubernetes-list-map-keys"]))
    elif list_type == "set":
        words.append("set")
    if schema.get("x-kubernetes-map-type") == "atomic":
        words.append("atomic")
    if strategy := schema.get("x-kubernetes-patch-strategy"):
        words.append("patch=" + strategy)
    if merge_key := schema.get("x-kubernetes-patch-merge-key"):
        words.append("key=" + merge_key)
    if field in newer.DEFAULTS:
        words.append("default=" + newer.DEFAULTS[field])
    named = newer.GO_TYPES.get(field, go.type if go else "")
    if named and named != go_type(text) and category(text) not in ("struct", *ENCODE_THEMSELVES):
        words.append("go=" + named)
    return " ".join(words)


def shape_facts(name: str, schema: Schema, go: Structs, compiled: Numbers) -> dict[str, str]:
    required = schema.get("required", ())
    facts = {}
    for field, part in schema.get("properties", {}).items():
        known = go.get(name, {}).get(field)
        number = newer.NUMBERS.get(f"{name}.{field}") or compiled.get(field) or (known.numbers if known else ())
        if any(each.startswith(EXTENSIONS + "JSONSchemaPropsOr") for each in references(part)):
            # In protobuf, a field of several types is a message of its own, which ``protobuf`` knows by heart.
            number = ()
        facts[field] = field_text(f"{name}.{field}", part, known, number, required=field in required)
    if schema.get("x-kubernetes-map-type") == "atomic":
        facts["*"] = "atomic"
    return facts


def generated(wheels: Path) -> str:
    with ZipFile(next(wheels.glob("kubernetes_validate-*.whl"))) as wheel:
        schemas = json.loads(wheel.read(SCHEMAS))["$defs"]
    with ZipFile(next(wheels.glob("armada_client-*.whl"))) as wheel:
        known = messages(wheel)
    go = kept()
    lines = []
    for name in wanted(schemas):
        facts = shape_facts(name, schemas[name], go, numbers(name, schemas[name].get("properties", {}), known))
        lines.append(f"{json.dumps(name)}:{json.dumps(facts, separators=(',', ':'))}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", type=Path, help="the folder with the packages of requirements.txt")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args()
    text = generated(options.wheels)
    if not options.check:
        SHAPES.write_text(text)
    elif text != SHAPES.read_text():
        raise SystemExit(f"{SHAPES.relative_to(ROOT)} is not what tools/shapes makes; `make shapes` writes it anew")


if __name__ == "__main__":
    main()
