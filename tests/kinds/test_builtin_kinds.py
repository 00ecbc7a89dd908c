"""The table of kinds: complete, in order, and true to what discovery was recorded to say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kind_rules import KINDS

from conformance_files import API
from seamark.errors import Object
from seamark.kinds import resource
from seamark.kinds.kind import Kind
from seamark.kinds.language import shapes
from seamark.kinds.pod.pod import POD
from seamark.kinds.resource import Resource
from seamark.kinds.subresource import Part
from seamark.kinds.table import KINDS as ROWS
from seamark.kinds.table import Kinds


def test_every_row_has_its_resource() -> None:
    known = {value for value in vars(resource).values() if isinstance(value, Resource)}
    assert {kind.resource for kind in ROWS} <= known


def test_every_resource_has_a_shape() -> None:
    for value in vars(resource).values():
        if isinstance(value, Resource):
            assert (value.api_version, value.kind) in shapes.load().kinds


def test_lookups() -> None:
    kinds = Kinds()
    assert kinds.by_plural("", "v1", "pods") is POD
    assert kinds.by_kind("v1", "Pod") is POD
    assert kinds.by_plural("", "v2", "pods") is None
    assert kinds.by_kind("v1", "Pot") is None
    assert len(kinds) == len(ROWS) == len(list(kinds))


def test_kinds_may_arrive_later() -> None:
    class PotKind(Kind):
        resource = Resource("example.com", "v1", "pots", "Pot")
        singular = "pot"

    kinds, pot = Kinds(), PotKind()
    kinds.add(pot)
    assert kinds.by_plural("example.com", "v1", "pots") is pot
    assert list(kinds)[-1] is pot
    assert Kinds().by_plural("example.com", "v1", "pots") is None, "each table is its own"


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.resource.qualified)
def test_rows_are_consistent(kind: Kind) -> None:
    shape = kind.shape
    assert shape.go_name == kind.resource.kind
    names = [sub.name for sub in kind.subresources]
    assert names == sorted(names)
    assert ("status" in names) <= ("status" in shape.fields)
    assert kind.columns[0].format == "name" or "Name" in [column.name for column in kind.columns]
    if kind.stored_as is not None:
        assert kind.stored_as in {other.resource for other in ROWS}


# In the order in which discovery lists them.
GROUPS = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "resource.k8s.io",
    "storagemigration.k8s.io",
)


def test_kinds_are_in_the_order_of_discovery() -> None:
    order: dict[str, list[str]] = {}
    for kind in ROWS:
        order.setdefault(kind.resource.group, []).append(kind.resource.plural)
    assert all(plurals == sorted(plurals) for plurals in order.values())
    assert list(order) == [group for group in GROUPS if group in order]
    assert set(order) <= set(GROUPS)


def _aggregated() -> list[tuple[str, Object]]:
    """The resources that the recorded aggregated discovery lists, with their groups."""
    found: list[tuple[str, Object]] = []

    def walk(value: Any, group: str) -> None:
        if isinstance(value, list):
            for item in value:
                walk(item, group)
        elif isinstance(value, dict):
            if "resource" in value:
                found.append((group, value))
            else:
                for item in value.values():
                    walk(item, value.get("metadata", {}).get("name", group))

    for case in json.loads((API / "discovery.json").read_text())["cases"]:
        for step in case["steps"]:
            paths = (step.get("expect") or {}).get("paths") or {}
            for path, value in paths.items():
                group = path.partition("metadata.name=")[2].partition("]")[0]
                walk(value, group)
    return found


@pytest.mark.parametrize(("group", "recorded"), _aggregated(), ids=lambda part: part if isinstance(part, str) else "")
def test_discovery_as_recorded(group: str, recorded: Object) -> None:
    kind = KINDS.by_plural(group, "v1", recorded["resource"])
    assert kind is not None
    assert list(kind.verbs) == recorded["verbs"]
    assert list(kind.short_names) == recorded.get("shortNames", [])
    assert list(kind.categories) == recorded.get("categories", [])
    assert kind.singular == recorded["singularResource"]
    assert kind.resource.namespaced == (recorded["scope"] == "Namespaced")
    said = [
        {
            "subresource": sub.name,
            "responseKind": {"group": sub.group or "", "version": sub.version or "", "kind": sub.kind},
            "verbs": list(sub.verbs),
        }
        for sub in kind.subresources
    ]
    assert said == recorded.get("subresources", [])


# What the registries of Kubernetes say of their kinds; all others do the opposite.
ANSWER_WITH_THE_DELETED = {
    "csidrivers",
    "csinodes",
    "deviceclasses",
    "namespaces",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "resourceclaims",
    "resourceclaimtemplates",
    "resourcequotas",
    "resourceslices",
    "serviceaccounts",
    "services",
    "storageclasses",
    "volumeattachments",
    "volumeattributesclasses",
}
MADE_BY_PUT = {
    "clusterrolebindings",
    "clusterroles",
    "endpoints",
    "events",
    "leases",
    "limitranges",
    "rolebindings",
    "roles",
    "runtimeclasses",
    "services",
}
NEED_A_VERSION = {
    "apiservices",
    "clustertrustbundles",
    "csidrivers",
    "csinodes",
    "csistoragecapacities",
    "customresourcedefinitions",
    "devicetaintrules",
    "leases",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "podcertificaterequests",
    "poddisruptionbudgets",
    "runtimeclasses",
    "storageversionmigrations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
    "volumeattachments",
}
KEEP_METADATA_IN_STATUS_WRITES = {
    "apiservices",
    "devicetaintrules",
    "flowschemas",
    "podcertificaterequests",
    "prioritylevelconfigurations",
    "resourceclaims",
    "servicecidrs",
    "storageversionmigrations",
    "validatingadmissionpolicies",
    "volumeattachments",
}


def test_what_a_put_and_a_deletion_do() -> None:
    stored = [kind for kind in ROWS if kind.stored]
    assert {kind.resource.plural for kind in stored if kind.delete_answers_object} == ANSWER_WITH_THE_DELETED
    assert {kind.resource.plural for kind in stored if kind.create_on_update} == MADE_BY_PUT
    assert {kind.resource.plural for kind in stored if not kind.unconditional_update} == NEED_A_VERSION


def test_whose_annotations_a_status_write_cannot_change() -> None:
    kept = set()
    for kind in ROWS:
        if isinstance(status := kind.subresource("status"), Part):
            old: Object = {"metadata": {"name": "a"}, "spec": {}, "status": {}}
            obj: Object = {"metadata": {"name": "a", "annotations": {"a": "b"}}, "spec": {}, "status": {}}
            status.prepare(kind, obj, old)
            if "annotations" not in obj["metadata"]:
                kept.add(kind.resource.plural)
    assert kept == KEEP_METADATA_IN_STATUS_WRITES
