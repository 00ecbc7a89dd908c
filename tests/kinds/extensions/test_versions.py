"""What the parts of a definition must satisfy."""

from __future__ import annotations

from typing import Any

import pytest

from seamark.errors import Object
from seamark.kinds.extensions.definition import DEFINITION
from seamark.kinds.extensions.versions import mistakes

_TEXTS = {f"t{i}": {"type": "string"} for i in range(9)}


def told(schema: Object | None = None, **more: Any) -> list[str]:
    whole = {"type": "object", "properties": _TEXTS, **(schema or {})}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}, **more}
    return [f"{error.field}: {error.message}" for error in mistakes([version])]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "must not be an empty string"),
        ("x" * 257, "must be <= 256 characters long"),
        ("é\n", "must only contain printable UTF-8 characters; non-printable character found at index 2"),
    ],
)
def test_warnings_of_deprecation(text: str, mistake: str) -> None:
    assert told(deprecated=True, deprecationWarning="use v2") == []
    (sentence,) = told(deprecated=True, deprecationWarning=text)
    assert sentence.startswith("spec.versions[0].deprecationWarning: Invalid value: ")
    assert sentence.endswith(mistake)


def test_how_many_fields_can_be_selected_by() -> None:
    fields = [{"jsonPath": f".{name}"} for name in _TEXTS]
    assert told(selectableFields=fields[:8]) == []
    assert told(selectableFields=fields) == ["spec.selectableFields: Too many: 9: must have at most 8 items"]


def test_a_column_may_have_a_path_that_cannot_be_read() -> None:
    assert told(additionalPrinterColumns=[{"name": "a", "type": "string", "jsonPath": ".spec["}]) == []


def test_the_root_of_a_schema() -> None:
    assert told({"nullable": True}) == [
        "spec.validation.openAPIV3Schema.nullable: Forbidden: nullable cannot be true at the root"
    ]
    either: Object = {"anyOf": [{"required": ["t0"]}], "description": "d"}
    assert told(either) == []
    (sentence,) = told(either, subresources={"status": {}})
    assert sentence.startswith("spec.validation.openAPIV3Schema: Invalid value: ")
    assert "only [Description Type Format" in sentence
    assert sentence.endswith(
        "XValidations] fields are allowed at the root of the schema if the status subresource is enabled"
    )


def test_versions_of_the_reviews_that_a_webhook_converts_by() -> None:
    hook = {"clientConfig": {"url": "https://a"}, "conversionReviewVersions": ["v1", "v1", "V_"]}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
        "conversion": {"strategy": "Webhook", "webhook": hook},
    }
    obj, _ = DEFINITION.conform({"metadata": {"name": "widgets.example.com"}, "spec": spec})
    DEFINITION.default(obj)
    DEFINITION.prepare_create(obj)
    first, second = (f"{error.field}: {error.message}" for error in DEFINITION.validate(obj))
    assert first == 'spec.conversion.conversionReviewVersions[1]: Invalid value: "v1": duplicate version'
    assert second.startswith('spec.conversion.conversionReviewVersions[2]: Invalid value: "V_": a DNS-1035 label')


def test_names_that_a_status_accepts() -> None:
    def told_of(**names: Any) -> list[str]:
        found = DEFINITION.validate_status({"status": {"acceptedNames": names}}, {})
        return [f"{error.field}: {error.message}"[:60] for error in found]

    assert told_of(plural="", kind="") == []
    assert told_of(plural="A_", kind="A", listKind="A", shortNames=["a"]) == [
        'status.acceptedNames.plural: Invalid value: "A_": a DNS-1035 label must consist'[:60],
        'status.acceptedNames.listKind: Invalid value: "A": kind and listKind'[:60],
    ]
