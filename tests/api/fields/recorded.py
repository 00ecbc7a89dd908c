"""Recorded steps of a real control plane, for tests of single functions; tests/conformance replays the whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from conformance_files import API
from seamark.kinds.language import shapes
from seamark.kinds.language.shape import Shape

SHAPES = {
    "configmaps": "io.k8s.api.core.v1.ConfigMap",
    "deployments": "io.k8s.api.apps.v1.Deployment",
    "endpoints": "io.k8s.api.core.v1.Endpoints",
    "endpointslices": "io.k8s.api.discovery.v1.EndpointSlice",
    "events": "io.k8s.api.core.v1.Event",
    "leases": "io.k8s.api.coordination.v1.Lease",
    "namespaces": "io.k8s.api.core.v1.Namespace",
    "nodes": "io.k8s.api.core.v1.Node",
    "pods": "io.k8s.api.core.v1.Pod",
    "secrets": "io.k8s.api.core.v1.Secret",
    "serviceaccounts": "io.k8s.api.core.v1.ServiceAccount",
    "services": "io.k8s.api.core.v1.Service",
}


def cases(topic: str) -> list[dict[str, Any]]:
    recording: dict[str, Any] = msgspec.json.decode((API / f"{topic}.json").read_bytes())
    found: list[dict[str, Any]] = recording["cases"]
    return found


def case(name: str) -> list[dict[str, Any]]:
    """The steps of one case, by its full name."""
    topic = name.partition("/")[0]
    return next(case["steps"] for case in cases(topic) if case["name"] == name)


def place(path: str) -> tuple[str, str]:
    """The resource and subresource a path is about."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[0] == "namespaces" and len(parts) > 2:
        parts = parts[2:]
    return parts[0], parts[2] if len(parts) > 2 else ""


def shape_of(path: str) -> Shape:
    return shapes.of(SHAPES[place(path)[0]])


def patches(topics: list[str]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Every recorded ordinary patch with the object it was applied to: (name, step, object)."""
    for topic in topics:
        for recorded in cases(topic):
            current: dict[str, dict[str, Any]] = {}
            for number, step in enumerate(recorded["steps"]):
                if "method" not in step or "wait_until" in step:
                    continue
                body = step["expect"].get("body", {})
                path = step["path"].removesuffix("/status")
                if step["method"] == "PATCH" and path in current and "apply" not in step["content_type"]:
                    yield f"{recorded['name']}#{number}", step, current[path]
                if step["method"] == "POST":
                    path = f"{path}/{body.get('metadata', {}).get('name')}"
                if body.get("kind") not in (None, "Status"):
                    current[path] = body
                elif step["method"] != "GET" and step["expect"]["status"] < 400:
                    current.pop(path, None)
