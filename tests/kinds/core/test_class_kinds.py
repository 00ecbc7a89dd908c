"""RuntimeClass, PodTemplate and ComponentStatus."""

from __future__ import annotations

import pytest
from kind_rules import Recorded, check, recorded_creations
from refusing import made, patched, refusals

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
    assert wrong[-1] == 'scheduling.tolerations[1]: Duplicate value: {"key":"k","operator":"Exists"}'
    assert wrong[0].startswith("scheduling.tolerations.tolerations[2].operator: Unsupported value")


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
