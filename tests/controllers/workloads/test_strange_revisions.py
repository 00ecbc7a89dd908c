"""ControllerRevisions that users wrote: their data may be anything, and a StatefulSet gets its Pods nevertheless."""

import msgspec
import pytest

from seamark.controllers.workloads.history import Revision, recorded, restored


@pytest.mark.parametrize(
    "data",
    [None, "text", 7, [], {}, {"spec": None}, {"spec": []}, {"spec": {"template": "text"}}, {"spec": {"template": {}}}],
)
def test_a_revision_without_a_template(data):
    revision = msgspec.convert({"metadata": {"name": "a"}, "data": data}, Revision)
    assert restored(revision) == {}


@pytest.mark.parametrize(
    "template",
    [
        {"spec": {"containers": []}, "metadata": 5},
        {"spec": {"containers": []}, "metadata": {"labels": []}},
        {"spec": {"containers": []}, "metadata": {"finalizers": {"a": 1}}},
        {"spec": {"containers": 5}},
        {"spec": {"containers": [], "volumes": "x"}},
        {"spec": {"containers": [{"name": 5}]}},
    ],
)
def test_a_revision_with_a_template_of_wrong_types(template):
    revision = msgspec.convert({"metadata": {"name": "a"}, "data": recorded(template)}, Revision)
    assert restored(revision) == {}


def test_a_revision_with_a_template():
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
    assert restored(msgspec.convert({"metadata": {"name": "a"}, "data": recorded(template)}, Revision)) == template
