"""Definitions as large as real ones: the schema of a built-in kind, written out in full as generators of CRDs do."""

from __future__ import annotations

from typing import Any

from seamark.api.openapi.field_docs import describe
from seamark.kinds.language import shapes
from seamark.kinds.language.shape import Field, ListOf, MapOf, Scalar, Shape, Type

DEPLOYMENT = "io.k8s.api.apps.v1.Deployment"
POD_TEMPLATE = "io.k8s.api.core.v1.PodTemplate"
GROUP = "bench.example.com"

_PLAIN: dict[str, Any] = {
    "string": {"type": "string"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "int-or-string": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    "quantity": {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)"
        r"|(\.[0-9]+))))?$",
    },
}


def structural(shape: Shape, keys: tuple[str, ...] = ()) -> Any:
    """The schema of a shape with everything that it refers to, inline; elements of lists need their keys."""
    words = describe(shape)
    needed = [name for name, field in shape.fields.items() if field.required or name in keys]
    schema = {
        "type": "object",
        **({"description": words.text} if words.text else {}),
        "properties": {name: _field(field, words.fields.get(name, "")) for name, field in shape.fields.items()},
    }
    return schema | ({"required": needed} if needed else {})


def _field(field: Field, text: str) -> Any:
    schema = {**_schema(field.type), **({"description": text} if text else {})}
    if field.default is not None:
        schema["default"] = field.default
    return schema


def _schema(type_: Type, keys: tuple[str, ...] = ()) -> Any:
    match type_:
        case Scalar():
            return dict(_PLAIN[type_.name])
        case MapOf():
            return {"type": "object", "additionalProperties": _schema(type_.of)}
        case ListOf():
            schema = {"type": "array", "items": _schema(type_.of, type_.keys), "x-kubernetes-list-type": type_.type}
            return schema | ({"x-kubernetes-list-map-keys": list(type_.keys)} if type_.keys else {})
        case _:
            return structural(type_, keys)


def like(shape_name: str, schema_bytes: int = 0) -> Any:
    """The schema of a built-in kind; its first field is repeated until there are ``schema_bytes``."""
    fields = shapes.of(shape_name).fields
    common = ("apiVersion", "kind", "metadata")
    properties = {name: _field(field, "") for name, field in fields.items() if name not in common}
    largest, copies = next(iter(properties.values())), 0
    while len(str(largest)) * (copies + 1) < schema_bytes:
        copies += 1
        properties[f"more{copies}"] = largest
    return {"type": "object", "properties": properties}


def definition(plural: str, kind: str, schema: Any, group: str = GROUP, **version: Any) -> Any:
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [served],
        },
    }


def deployment(name: str) -> Any:
    """An instance: a Deployment as people write them, without its apiVersion and kind."""
    container = {
        "name": "app",
        "image": "example/app:1",
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    labels = {"app": "web", "tier": "front"}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]},
            },
        },
    }
