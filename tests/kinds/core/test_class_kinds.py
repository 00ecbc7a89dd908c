"""RuntimeClass, PodTemplate and ComponentStatus."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest
from kind_rules import Recorded, check, recorded_creations
from refusing import made, patched, refusals

from seamark.errors import Object
from seamark.kinds.core import runtimeclass
from seamark.kinds.core.componentstatus import COMPONENT_STATUS
from seamark.kinds.core.runtimeclass import RUNTIME_CLASS
from seamark.kinds.workloads.podtemplate import POD_TEMPLATE


@pytest.mark.parametrize("recorded", recorded_creations("runtimeclasses", "podtemplates"), ids=str)
def test_recorded(recorded: Recorded) -> None:
    check(recorded)


def test_tolerations_of_a_class() -> None:
    twice = {"key": "k", "operator": "Exists"}
    odd = {"key": "k", "operator": "Odd"}
    wrong = refusals(RUNTIME_CLASS, handler="h", scheduling={"tolerations": [twice, twice, odd]})
    shown = '{"Key":"k","Operator":"Exists","Value":"","Effect":"","TolerationSeconds":null}'
    assert wrong[-1] == f"scheduling.tolerations[1]: Duplicate value: {shown}"
    assert wrong[0].startswith("scheduling.tolerations.tolerations[2].operator: Unsupported value")


def test_an_old_label_in_a_class_is_warned_of() -> None:
    selector = {"beta.kubernetes.io/os": "linux", "a": "b"}
    found = made(RUNTIME_CLASS, handler="h", scheduling={"nodeSelector": selector})
    assert RUNTIME_CLASS.warnings(found, None) == [
        'scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/os" instead'
    ]


class _Counted(str):
    """A text that counts how often one is compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        _Counted.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_tolerations_are_merged_without_comparing_each_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(msgspec.json, "encode", partial(msgspec.json.encode, enc_hook=str))
    many = [{"key": _Counted(f"k{i}"), "operator": "Equal", "value": "v"} for i in range(300)]
    assert runtimeclass._merged(many) == many
    assert _Counted.comparisons < 10 * len(many)


@pytest.mark.parametrize(
    ("narrow", "wide", "covered"),
    [
        ({"key": "k", "value": "v"}, {"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "value": "v"}, {"operator": "Exists"}, True),
        ({"key": "k", "value": "v"}, {"key": "other", "operator": "Exists"}, False),
        ({"key": "k", "value": "v"}, {"key": "k", "operator": "Exists", "effect": "NoSchedule"}, False),
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "k", "value": "v"}, True),
        ({"key": "k", "operator": "Exists"}, {"key": "k", "value": "v"}, False),
        ({"key": "k", "operator": "Lt", "value": "1"}, {"key": "k", "operator": "Lt", "value": "1"}, True),
        (
            {"key": "k", "effect": "NoExecute", "tolerationSeconds": 5},
            {"key": "k", "effect": "NoExecute", "tolerationSeconds": 4},
            False,
        ),
        ({"key": "k", "effect": "NoExecute", "tolerationSeconds": 5}, {"key": "k", "effect": "NoExecute"}, True),
        ({"key": "k", "effect": "NoExecute"}, {"key": "k", "effect": "NoExecute", "tolerationSeconds": 4}, False),
    ],
)
def test_a_toleration_that_a_later_one_covers_is_left_out(narrow: Object, wide: Object, covered: bool) -> None:
    assert runtimeclass._merged([narrow, wide]) == ([wide] if covered else [narrow, wide])


def test_warnings_about_a_template_come_with_its_changes() -> None:
    container = {"name": "c", "image": "i"}
    spec = {"containers": [container], "nodeSelector": {"beta.kubernetes.io/os": "linux"}}
    old = made(POD_TEMPLATE, template={"spec": spec})
    assert len(POD_TEMPLATE.warnings(old, None)) == 1
    labelled = patched(POD_TEMPLATE, old, {"metadata": {"labels": {"a": "b"}}})
    assert POD_TEMPLATE.warnings(labelled, old) == []


def test_the_row_of_a_component() -> None:
    for status, shown in (("True", "Healthy"), ("False", "Unhealthy"), ("Odd", "Unknown")):
        obj = {"metadata": {"name": "x"}, "conditions": [{"type": "Healthy", "status": status, "message": "ok"}]}
        assert COMPONENT_STATUS.row(obj, 0.0) == ["x", shown, "ok", ""]
