"""Definitions that were accepted once stay usable, whatever later rules say of their schemas."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from seamark.kinds.extensions.versions import mistakes


def version(rule: str, **more: Any) -> dict[str, Any]:
    size = {"type": "integer", "x-kubernetes-validations": [{"rule": rule}]}
    schema = {"type": "object", "properties": {"size": size}}
    return {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **more}


def test_a_schema_that_stays_is_not_judged_again() -> None:
    stored = version("self.nothing > 1")
    assert "compilation failed" in str(mistakes([stored]))
    column = {"name": "Size", "type": "integer", "jsonPath": ".size"}
    assert mistakes([{**deepcopy(stored), "additionalPrinterColumns": [column]}], [stored]) == []


def test_a_schema_that_changes_is_judged() -> None:
    stored = version("self.nothing > 1")
    assert "compilation failed" in str(mistakes([version("self.nothing > 2")], [stored]))
    assert "compilation failed" in str(mistakes([{**stored, "name": "v2"}], [stored]))
    assert mistakes([version("self > 2")], [stored]) == []
