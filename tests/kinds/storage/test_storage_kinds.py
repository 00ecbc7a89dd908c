"""StorageClass, VolumeAttributesClass, CSIDriver, CSINode, CSIStorageCapacity and VolumeAttachment."""

from __future__ import annotations

import pytest
from kind_rules import Recorded, check, recorded_creations
from refusing import change_refusals, made, patched, refusals

from seamark.errors import Object
from seamark.kinds.storage.csidriver import CSI_DRIVER
from seamark.kinds.storage.csinode import CSI_NODE
from seamark.kinds.storage.csistoragecapacity import CSI_CAPACITY
from seamark.kinds.storage.storageclass import DEFAULT_ANNOTATION, STORAGE_CLASS
from seamark.kinds.storage.volumeattachment import VOLUME_ATTACHMENT
from seamark.kinds.storage.volumeattributesclass import VOLUME_ATTRIBUTES_CLASS

PLURALS = ("storageclasses", "csidrivers", "csinodes", "csistoragecapacities", "volumeattachments")


@pytest.mark.parametrize("recorded", recorded_creations(*PLURALS), ids=str)
def test_recorded(recorded: Recorded) -> None:
    check(recorded)


# --- classes --------------------------------------------------------------------------------------------------------


def test_parameters_have_limits() -> None:
    many = {str(i): "" for i in range(513)}
    assert refusals(STORAGE_CLASS, provisioner="p", parameters=many) == [
        "parameters: Too long: may not be more than 512 bytes"
    ]
    assert refusals(STORAGE_CLASS, provisioner="p", parameters={"a": "b" * 256 * 1024}) == [
        "parameters: Too long: may not be more than 262144 bytes"
    ]


def test_topologies() -> None:
    twice = {"matchLabelExpressions": [{"key": "a", "values": ["1", "1"]}, {"key": "a", "values": ["2"]}]}
    other = {"matchLabelExpressions": [{"key": "b b", "values": ["1"]}]}
    wrong = refusals(STORAGE_CLASS, provisioner="p", allowedTopologies=[twice, other, other])
    assert wrong[:2] == [
        'allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "1"',
        'allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: "a"',
    ]
    assert wrong[2].startswith('allowedTopologies[1].matchLabelExpressions[0].key: Invalid value: "b b": name part')
    assert wrong[-1] == 'allowedTopologies[2].matchLabelExpressions: Duplicate value: ""'


@pytest.mark.parametrize("term", [{}, {"matchLabelExpressions": []}])
def test_a_topology_without_labels_is_refused(term: Object) -> None:
    assert refusals(STORAGE_CLASS, provisioner="p", allowedTopologies=[term]) == [
        'allowedTopologies[0].matchLabelExpressions: Duplicate value: ""'
    ]


def test_an_old_label_in_a_topology_is_warned_of() -> None:
    zone = "failure-domain.beta.kubernetes.io/zone"
    terms = [{"matchLabelExpressions": [{"key": zone, "values": ["a"]}]}]
    made_class = made(STORAGE_CLASS, provisioner="p", allowedTopologies=terms)
    assert STORAGE_CLASS.warnings(made_class, None) == [
        "allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.17; use "
        '"topology.kubernetes.io/zone" instead'
    ]
    topology = {"matchExpressions": [{"key": zone, "operator": "Exists"}], "matchLabels": {zone: "a", "b": "c"}}
    capacity = made(CSI_CAPACITY, storageClassName="a", nodeTopology=topology)
    assert CSI_CAPACITY.warnings(capacity, None) == [
        f"nodeTopology.matchExpressions[0].key: {zone} is deprecated since v1.17; use "
        '"topology.kubernetes.io/zone" instead',
        f'nodeTopology.matchLabels.{zone}: deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    ]
    assert CSI_CAPACITY.warnings(made(CSI_CAPACITY, storageClassName="a"), None) == []


def test_the_default_class_is_marked_in_tables() -> None:
    default = made(STORAGE_CLASS, metadata={"annotations": {DEFAULT_ANNOTATION: "true"}}, provisioner="p")
    assert STORAGE_CLASS.row(default, 0.0)[0] == "x (default)"


def test_attributes_classes() -> None:
    assert refusals(VOLUME_ATTRIBUTES_CLASS) == [
        "driverName: Required value",
        "parameters: Required value: must contain at least one key/value pair",
    ]
    old = made(VOLUME_ATTRIBUTES_CLASS, driverName="d.example.com", parameters={"a": "b"})
    assert change_refusals(VOLUME_ATTRIBUTES_CLASS, old, {"driverName": "e.com", "parameters": {"a": "c"}}) == [
        'driverName: Invalid value: "e.com": field is immutable',
        "parameters: Forbidden: updates to parameters are forbidden.",
    ]
    assert VOLUME_ATTRIBUTES_CLASS.row(old, 0.0)[:2] == ["x", "d.example.com"]
    marked = {"annotations": {"volumeattributesclass.alpha.kubernetes.io/is-default-class": "true"}}
    default = made(VOLUME_ATTRIBUTES_CLASS, metadata=marked, driverName="d.example.com", parameters={"a": "b"})
    assert VOLUME_ATTRIBUTES_CLASS.row(default, 0.0)[0] == "x (default)"


# --- drivers --------------------------------------------------------------------------------------------------------


def test_tokens_of_a_driver() -> None:
    tokens = [
        {"audience": "a", "expirationSeconds": 599},
        {"audience": "a"},
        {"audience": "b", "expirationSeconds": 2**32 + 1},
    ]
    at = "spec.tokenRequests"
    assert refusals(CSI_DRIVER, spec={"tokenRequests": tokens, "nodeAllocatableUpdatePeriodSeconds": 9}) == [
        f"{at}[0].expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes",
        f'{at}[1].audience: Duplicate value: "a"',
        f"{at}[2].expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds",
        "spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal to 10 seconds",
    ]
    assert refusals(CSI_DRIVER, spec={"serviceAccountTokenInSecrets": True}) == [
        "spec.serviceAccountTokenInSecrets: Invalid value: true: serviceAccountTokenInSecrets is set but no "
        "tokenRequests are specified"
    ]


def test_what_of_a_driver_may_change() -> None:
    old = made(CSI_DRIVER, spec={"tokenRequests": [{"audience": "a"}, {"audience": ""}]})
    assert CSI_DRIVER.row(old, 0.0)[4] == "a,"
    assert "generation" not in old["metadata"]
    changed = patched(CSI_DRIVER, old, {"spec": {"podInfoOnMount": True}})
    assert changed["metadata"]["generation"] == 1
    assert change_refusals(CSI_DRIVER, old, {"spec": {"volumeLifecycleModes": ["Ephemeral"]}}) == [
        'spec.volumeLifecycleModes: Invalid value: ["Ephemeral"]: field is immutable'
    ]


def test_the_drivers_of_a_node() -> None:
    at = "spec.drivers[0]"
    drivers = [
        {"name": "", "nodeID": "", "topologyKeys": ["a", "a", ""]},
        {"name": "d", "nodeID": "x" * 193, "allocatable": {"count": -1}},
        {"name": "d", "nodeID": "y"},
    ]
    wrong = refusals(CSI_NODE, spec={"drivers": drivers})
    assert wrong[:4] == [
        f"{at}.name: Required value",
        f"{at}.nodeID: Required value",
        f'{at}: Duplicate value: "a"',
        f"{at}: Required value",
    ]
    assert wrong[-3:] == [
        f'spec.drivers[1].nodeID: Invalid value: "{"x" * 193}": must be 192 characters or less',
        "spec.drivers[1].allocatable.count: Invalid value: -1: must be greater than or equal to 0",
        'spec.drivers[2].name: Duplicate value: "d"',
    ]
    old = made(CSI_NODE, spec={"drivers": [{"name": "d", "nodeID": "y"}]})
    changed = {"spec": {"drivers": [{"name": "d", "nodeID": "z"}]}}
    assert change_refusals(CSI_NODE, old, changed) == [
        'spec.drivers: Invalid value: {"Name":"d","NodeID":"z","TopologyKeys":null,"Allocatable":null}: field is '
        "immutable"
    ]
    grown = {"spec": {"drivers": [{"name": "d", "nodeID": "y", "allocatable": {"count": 4}}]}}
    assert patched(CSI_NODE, old, grown)["spec"]["drivers"][0]["allocatable"] == {"count": 4}
    assert CSI_NODE.row(old, 0.0)[1] == 1


def test_capacities() -> None:
    wrong = refusals(CSI_CAPACITY, storageClassName="A", capacity="-1", maximumVolumeSize="-1")
    assert wrong[1:] == [
        'capacity: Invalid value: "-1": must be greater than or equal to 0',
        'maximumVolumeSize: Invalid value: "-1": must be greater than or equal to 0',
    ]
    old = made(CSI_CAPACITY, storageClassName="a", nodeTopology={"matchLabels": {"a": "b"}})
    assert change_refusals(
        CSI_CAPACITY, old, {"storageClassName": "b", "nodeTopology": {"matchLabels": {"a": "c"}}}
    ) == [
        'nodeTopology: Invalid value: {"matchLabels":{"a":"c"}}: field is immutable',
        'storageClassName: Invalid value: "b": field is immutable',
    ]
    assert [column.name for column in CSI_CAPACITY.columns] == ["Name", "Created At"]


# --- attachments ----------------------------------------------------------------------------------------------------

SPEC = {"attacher": "d.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}


def test_what_is_attached() -> None:
    at = "spec.source"
    both = {**SPEC, "source": {"persistentVolumeName": "v", "inlineVolumeSpec": {}}}
    assert refusals(VOLUME_ATTACHMENT, spec=both) == [
        f"{at}: Forbidden: must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    ]
    empty = {**SPEC, "source": {"persistentVolumeName": ""}}
    assert refusals(VOLUME_ATTACHMENT, spec=empty) == [
        f"{at}.persistentVolumeName: Required value: must specify non empty persistentVolumeName"
    ]
    inline = {
        "claimRef": {"name": "c"},
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/x"},
        "persistentVolumeReclaimPolicy": "Delete",
        "nodeAffinity": {},
        "storageClassName": "s",
        "volumeMode": "Block",
    }
    said = [
        text.partition(":")[0]
        for text in refusals(VOLUME_ATTACHMENT, spec={**SPEC, "source": {"inlineVolumeSpec": inline}})
    ]
    assert said == [
        f"{at}.inlineVolumeSpec.{field}"
        for field in (
            "claimRef",
            "capacity",
            "csi",
            "accessModes",
            "persistentVolumeReclaimPolicy",
            "nodeAffinity",
            "storageClassName",
            "volumeMode",
        )
    ]


def test_an_attachment_only_changes_its_status() -> None:
    old = made(VOLUME_ATTACHMENT, spec=SPEC)
    assert change_refusals(VOLUME_ATTACHMENT, old, {"spec": {"nodeName": "m"}}) == [
        "spec: Invalid value: null: field is immutable"
    ]
    long = {"status": {"attachError": {"message": "x" * 1025}, "attachmentMetadata": {"a": "b" * 256 * 1024}}}
    assert change_refusals(VOLUME_ATTACHMENT, old, long, "status") == [
        "status.attachmentMetadata: Too long: may not be more than 262144 bytes",
        "status.attachError.message: Too long: may not be more than 262144 bytes",
    ]
    negative = {"status": {"detachError": {"errorCode": -1}}}
    assert change_refusals(VOLUME_ATTACHMENT, old, negative, "status") == [
        "status.detachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive"
    ]
    labelled = {"metadata": {"labels": {"a": "b"}}, "status": {"attached": True}}
    assert "labels" not in patched(VOLUME_ATTACHMENT, old, labelled, "status")["metadata"]
