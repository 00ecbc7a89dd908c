"""A definition for tests, and where it and its instances are."""

from __future__ import annotations

from typing import Any

from served import Served

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = "widgets.example.com"
BASE = "/apis/example.com/v1/namespaces/default/widgets"
SIZE = {"type": "object", "properties": {"size": {"type": "integer", "maximum": 10}}}


def version(name: str = "v1", spec: Any = None, *, storage: bool = True, **more: Any) -> Any:
    schema = {"type": "object", "properties": {"spec": spec or SIZE, "status": {"type": "object"}}}
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def definition(*versions: Any, plural: str = "widgets", kind: str = "Widget", **names: Any) -> Any:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, **names},
            "versions": list(versions) or [version()],
        },
    }


def widget(name: str, version: str = "v1", **spec: Any) -> Any:
    return {"apiVersion": f"example.com/{version}", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


async def established(api: Served, name: str = NAME) -> None:
    lines = await api.watch(f"{DEFINITIONS}?watch=1&fieldSelector=metadata.name={name}")
    for count in range(1, 10):
        conditions = (await lines.wait_for(count))[-1]["object"]["status"].get("conditions") or ()
        if any(found["type"] == "Established" and found["status"] == "True" for found in conditions):
            return


async def defined(api: Served, *versions: Any, **names: Any) -> None:
    """Define widgets, and wait until they are served."""
    await api.post(DEFINITIONS, definition(*versions, **names))
    await established(api)
