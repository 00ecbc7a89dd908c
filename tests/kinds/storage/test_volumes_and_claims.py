"""PersistentVolume and PersistentVolumeClaim, and the admission about them."""

from __future__ import annotations

from typing import Any

import pytest
from kind_rules import Recorded, check, recorded_creations
from neighbours import Neighbours, concerned, request
from refusing import change_refusals, made, patched, refusals

from seamark.errors import Forbidden, Object
from seamark.kinds.resource import STORAGE_CLASSES
from seamark.kinds.storage.persistentvolume import PERSISTENT_VOLUME
from seamark.kinds.storage.persistentvolumeclaim import CLASS_ANNOTATION, PERSISTENT_VOLUME_CLAIM
from seamark.kinds.storage.storageclass import DEFAULT_ANNOTATION


@pytest.mark.parametrize("recorded", recorded_creations("persistentvolumes", "persistentvolumeclaims"), ids=str)
def test_recorded(recorded: Recorded) -> None:
    check(recorded)


def claim(**spec: Any) -> Object:
    requests = {"requests": {"storage": "1Gi"}}
    return {"accessModes": ["ReadWriteOnce"], "resources": requests, "storageClassName": "c", **spec}


def volume(**spec: Any) -> Object:
    return {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, **spec}


# --- claims ---------------------------------------------------------------------------------------------------------


def test_the_two_data_sources_agree() -> None:
    snapshot = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}
    spec = made(PERSISTENT_VOLUME_CLAIM, spec=claim(dataSource=snapshot))["spec"]
    assert spec["dataSourceRef"] == snapshot
    other = {"apiGroup": "example.com", "kind": "Image", "name": "s"}
    spec = made(PERSISTENT_VOLUME_CLAIM, spec=claim(dataSourceRef=other))["spec"]
    assert spec["dataSource"] == other
    spec = made(PERSISTENT_VOLUME_CLAIM, spec=claim(dataSource=other))["spec"]
    assert "dataSource" not in spec, "the older field only knows claims and snapshots"
    assert "dataSourceRef" not in spec
    spec = made(PERSISTENT_VOLUME_CLAIM, spec=claim(dataSourceRef={**other, "namespace": "n"}))["spec"]
    assert "dataSourceRef" not in spec, "sources in other namespaces are off by default"
    assert refusals(PERSISTENT_VOLUME_CLAIM, spec=claim(dataSource=snapshot, dataSourceRef=other)) == [
        'spec: Invalid value: "spec.dataSource": must match dataSourceRef'
    ]
    sentence = "Invalid value: \"Image\": must be 'PersistentVolumeClaim' when referencing the default apiGroup"
    assert refusals(PERSISTENT_VOLUME_CLAIM, spec=claim(dataSourceRef={"kind": "Image", "name": "s"})) == [
        f"spec.dataSource: {sentence}",
        f"spec.dataSourceRef: {sentence}",
    ]


def test_a_bound_claim_grows() -> None:
    old = made(PERSISTENT_VOLUME_CLAIM, spec=claim(volumeName="v"))
    old["status"] = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    more = {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
    grown = patched(PERSISTENT_VOLUME_CLAIM, old, more)
    assert grown["spec"]["resources"]["requests"]["storage"] == "3Gi"
    less = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    assert patched(PERSISTENT_VOLUME_CLAIM, grown, less)["spec"]["resources"]["requests"]["storage"] == "2Gi"
    back = {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    assert change_refusals(PERSISTENT_VOLUME_CLAIM, grown, back) == [
        "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
    ]
    assert change_refusals(PERSISTENT_VOLUME_CLAIM, old, {"spec": {"volumeName": "w"}})[0].startswith(
        "spec: Forbidden: spec is immutable after creation except"
    )


def test_a_claim_without_a_class_may_get_one_later() -> None:
    spec = claim()
    del spec["storageClassName"]
    old = made(PERSISTENT_VOLUME_CLAIM, spec=spec)
    given = patched(PERSISTENT_VOLUME_CLAIM, old, {"spec": {"storageClassName": "c"}})
    assert given["spec"]["storageClassName"] == "c"
    annotated = made(PERSISTENT_VOLUME_CLAIM, metadata={"annotations": {CLASS_ANNOTATION: "old"}}, spec=spec)
    assert PERSISTENT_VOLUME_CLAIM.row(annotated, 0.0)[5] == "old"
    assert "deprecated since v1.8" in PERSISTENT_VOLUME_CLAIM.warnings(annotated, None)[0]
    patched(PERSISTENT_VOLUME_CLAIM, annotated, {"spec": {"storageClassName": "old"}})
    with_other = change_refusals(PERSISTENT_VOLUME_CLAIM, annotated, {"spec": {"storageClassName": "other"}})
    assert with_other[0].startswith("spec: Forbidden: spec is immutable")
    renamed = {"metadata": {"annotations": {CLASS_ANNOTATION: "new"}}}
    assert change_refusals(PERSISTENT_VOLUME_CLAIM, annotated, renamed) == [
        f'metadata.annotations.{CLASS_ANNOTATION}: Invalid value: "new": field is immutable'
    ]


def test_a_class_of_attributes_may_change_but_not_vanish() -> None:
    old = made(PERSISTENT_VOLUME_CLAIM, spec=claim(volumeAttributesClassName="a"))
    unbound = change_refusals(PERSISTENT_VOLUME_CLAIM, old, {"spec": {"volumeAttributesClassName": "b"}})
    assert unbound[0].startswith("spec: Forbidden: spec is immutable after creation")
    old["status"] = {"phase": "Bound"}
    patched(PERSISTENT_VOLUME_CLAIM, old, {"spec": {"volumeAttributesClassName": "b"}})
    patched(PERSISTENT_VOLUME_CLAIM, old, {"spec": {"volumeAttributesClassName": None}})
    old["status"]["currentVolumeAttributesClassName"] = "a"
    for value, word in ((None, "nil"), ("", "empty string")):
        assert change_refusals(PERSISTENT_VOLUME_CLAIM, old, {"spec": {"volumeAttributesClassName": value}}) == [
            f"spec.volumeAttributesClassName: Forbidden: update to {word} is forbidden when "
            "status.currentVolumeAttributesClassName is not nil"
        ]


def test_the_status_of_a_claim() -> None:
    old = made(PERSISTENT_VOLUME_CLAIM, spec=claim(volumeName="v"))
    assert change_refusals(PERSISTENT_VOLUME_CLAIM, old, {"status": {"capacity": {"storage": "-1"}}}, "status") == [
        "status.capacity[storage]: Invalid value: -1: must be a valid resource quantity"
    ]
    status = {"status": {"phase": "Bound", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteMany"]}}
    bound = patched(PERSISTENT_VOLUME_CLAIM, old, status, "status")
    assert PERSISTENT_VOLUME_CLAIM.row(bound, 0.0)[1:5] == ["Bound", "v", "2Gi", "RWX"]
    bound["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    assert PERSISTENT_VOLUME_CLAIM.row(bound, 0.0)[1] == "Terminating"


def test_what_a_claim_was_allocated() -> None:
    status = {"allocatedResourceStatuses": {"storage": "Growing", "a b": "NodeResizePending"},
              "allocatedResources": {"cpu": "1", "storage": "-1"}}  # fmt: skip
    old = made(PERSISTENT_VOLUME_CLAIM, spec=claim(volumeName="v"))
    wrong = change_refusals(PERSISTENT_VOLUME_CLAIM, old, {"status": status}, "status")
    assert wrong[0] == (
        'status.allocatedResourceStatuses: Unsupported value: "storage": supported values: '
        '"ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", '
        '"NodeResizeInfeasible", "NodeResizePending"'
    )
    assert wrong[1].startswith('status.allocatedResourceStatuses: Invalid value: "a b": name part must consist of')
    assert wrong[2:] == [
        'status.allocatedResources: Unsupported value: "cpu": supported values: "storage"',
        "status.allocatedResources[storage]: Invalid value: -1: must be a valid resource quantity",
    ]


def test_fractions_of_a_byte_are_warned_of() -> None:
    odd = made(PERSISTENT_VOLUME_CLAIM, spec=claim(resources={"requests": {"storage": "1500m"}}))
    assert PERSISTENT_VOLUME_CLAIM.warnings(odd, None) == [
        'spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer'
    ]
    assert PERSISTENT_VOLUME_CLAIM.fields(odd) == {"name": "x"}


# --- volumes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ({"local": {"path": "/x"}}, ["nodeAffinity: Required value: Local volume requires node affinity"]),
        (
            {"local": {}, "nodeAffinity": {}},
            [
                "nodeAffinity.required: Required value: must specify required node constraints",
                "local.path: Required value",
            ],
        ),
        (
            {"csi": {"driver": "D_", "controllerPublishSecretRef": {"name": "A"}}},
            [
                'csi.driver: Invalid value: "D_": a lowercase RFC 1123 subdomain',
                "csi.volumeHandle: Required value",
                "csi.controllerPublishSecretRef.namespace: Required value",
                'csi.name: Invalid value: "A": a lowercase RFC 1123 subdomain',
            ],
        ),
        ({"csi": {"driver": "d" * 64, "volumeHandle": "h"}}, ["csi.driver: Too long: may not be more than 63 bytes"]),
        (
            {"iscsi": {"targetPortal": "", "iqn": "x", "lun": 256, "chapAuthSession": True, "initiatorName": "y"}},
            [
                "iscsi.targetPortal: Required value",
                'iscsi.iqn: Invalid value: "x": must be valid format',
                "iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive",
                "iscsi.secretRef: Required value",
                'iscsi.initiatorname: Invalid value: "y": must be valid format',
            ],
        ),
        (
            {
                "iscsi": {
                    "targetPortal": "p" * 64,
                    "iqn": "iqn.2015-02.example.com:test",
                    "lun": 0,
                    "secretRef": {},
                    "initiatorName": "iqn.2015-02.example.com:init",
                }
            },
            ["iscsi.secretRef.name: Required value", "iscsi.targetportal: Invalid value"],
        ),
        (
            {"glusterfs": {"endpoints": "e", "path": "p", "endpointsNamespace": ""}},
            ["glusterfs.endpointsNamespace: Inv"],
        ),
        (
            {"glusterfs": {"endpoints": "e", "path": "p", "endpointsNamespace": "A"}},
            ["glusterfs.endpointsNamespace: Inv"],
        ),
        ({"cinder": {"volumeID": "v", "secretRef": {"name": "s"}}}, ["cinder.secretRef.namespace: Required value"]),
        ({"fc": {}}, ["fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both"]),
        (
            {"fc": {"targetWWNs": ["a"], "wwids": ["b"]}},
            ["fc.targetWWNs: Invalid value", "fc.lun: Required value: lun is required if targetWWNs is specified"],
        ),
        ({"fc": {"targetWWNs": ["a"], "lun": 300}}, ["fc.lun: Invalid value: 300"]),
        (
            {"flexVolume": {"driver": "a/b", "options": {"x.k8s.io/y": "z"}}},
            ["flexVolume.options[x.k8s.io/y]: Invalid value"],
        ),
        (
            {"azureFile": {"secretName": "s", "shareName": "h", "secretNamespace": ""}},
            ["azureFile.secretNamespace: Required value"],
        ),
        (
            {"azureDisk": {"diskName": "d", "diskURI": "x", "cachingMode": "Odd", "kind": "Odd"}},
            [
                'azureDisk.cachingMode: Unsupported value: "Odd": supported values: "None", "ReadOnly", "ReadWrite"',
                'azureDisk.kind: Unsupported value: "Odd": supported values: "Dedicated", "Managed", "Shared"',
                'azureDisk.diskURI: Unsupported value: "x"',
            ],
        ),
        (
            {"storageos": {"volumeName": "A_", "volumeNamespace": "B_", "secretRef": {"name": "s"}}},
            [
                'storageos.volumeName: Invalid value: "A_"',
                'storageos.volumeNamespace: Invalid value: "B_"',
                "storageos.secretRef.namespace: Required value",
            ],
        ),
        ({"storageos": {}}, ["storageos.volumeName: Required value"]),
        (
            {"hostPath": {"path": "/"}, "persistentVolumeReclaimPolicy": "Recycle"},
            ["persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"],
        ),
        (
            {"hostPath": {"path": "/x"}, "volumeAttributesClassName": ""},
            [
                "volumeAttributesClassName: Required value: an empty string is disallowed",
                "csi: Required value: has to be specified when using volumeAttributesClassName",
            ],
        ),
    ],
)
def test_sources(source: Object, wrong: list[str]) -> None:
    found = refusals(PERSISTENT_VOLUME, spec=volume(**source))
    assert len(found) == len(wrong), found
    for sentence, start in zip(found, wrong, strict=True):
        assert sentence.startswith(f"spec.{start}"), sentence


def test_what_of_a_volume_may_change() -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}
    old = made(PERSISTENT_VOLUME, spec=volume(csi={"driver": "d", "volumeHandle": "h"}))
    secret = {"controllerExpandSecretRef": {"name": "s", "namespace": "n"}}
    changed = patched(PERSISTENT_VOLUME, old, {"spec": {"csi": secret, "nodeAffinity": {"required": terms}}})
    assert changed["spec"]["csi"]["controllerExpandSecretRef"]["name"] == "s"
    other = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "l", "operator": "Exists"}]}]}}
    assert change_refusals(PERSISTENT_VOLUME, changed, {"spec": {"nodeAffinity": other}}) == [
        'nodeAffinity: Invalid value: {"Required":{"NodeSelectorTerms":[{"MatchExpressions":[{"Key":"l",'
        '"Operator":"Exists","Values":null}],"MatchFields":null}]}}: '
        "field is immutable, except for updating from beta label to GA"
    ]


def test_labels_in_the_affinity_of_a_volume_may_take_their_new_names() -> None:
    def near(*keys: str) -> Object:
        wanted = [{"key": key, "operator": "In", "values": ["a"]} for key in keys]
        return {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": wanted}]}}}}

    zone, os = "failure-domain.beta.kubernetes.io/zone", "beta.kubernetes.io/os"
    old = made(PERSISTENT_VOLUME, spec=volume(hostPath={"path": "/x"}, **near(zone, os)["spec"]))
    changed = patched(PERSISTENT_VOLUME, old, near("topology.kubernetes.io/zone", os))
    assert changed["spec"]["nodeAffinity"] == near("topology.kubernetes.io/zone", os)["spec"]["nodeAffinity"]
    for other in (near("topology.kubernetes.io/region", os), near(zone), {"spec": {"nodeAffinity": None}}):
        (said,) = change_refusals(PERSISTENT_VOLUME, old, other)
        assert said.endswith("except for updating from beta label to GA")


def test_warnings_about_a_volume() -> None:
    zone = "failure-domain.beta.kubernetes.io/zone"
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": zone, "operator": "Exists"}]}]}
    old = made(PERSISTENT_VOLUME, spec=volume(rbd={"monitors": ["m"], "image": "i"}, nodeAffinity={"required": terms}))
    assert [text.partition(":")[0] for text in PERSISTENT_VOLUME.warnings(old, None)] == [
        "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key",
        "spec.rbd",
    ]
    assert old["spec"]["rbd"]["pool"] == "rbd"
    options = {"annotations": {"volume.beta.kubernetes.io/mount-options": "soft"}}
    mounted = made(PERSISTENT_VOLUME, metadata=options, spec=volume(hostPath={"path": "/x"}))
    assert PERSISTENT_VOLUME.warnings(mounted, None) == [
        "metadata.annotations[volume.beta.kubernetes.io/mount-options]: deprecated since v1.31; use "
        '"mountOptions" attribute instead'
    ]


def test_the_row_of_a_volume() -> None:
    old = made(PERSISTENT_VOLUME, spec=volume(hostPath={"path": "/x"}, claimRef={"namespace": "n", "name": "c"}))
    assert PERSISTENT_VOLUME.row(old, 0.0)[1:9] == ["1Gi", "RWO", "Retain", "Pending", "n/c", "", "<unset>", ""]


def test_no_attributes_and_unset_attributes_differ_in_tables() -> None:
    none = made(PERSISTENT_VOLUME_CLAIM, spec=claim(volumeAttributesClassName=""))
    assert PERSISTENT_VOLUME_CLAIM.row(none, 0.0)[6] == ""
    assert PERSISTENT_VOLUME_CLAIM.row(made(PERSISTENT_VOLUME_CLAIM, spec=claim()), 0.0)[6] == "<unset>"


# --- admission ------------------------------------------------------------------------------------------------------


def storage_class(name: str, when: str, **more: Any) -> Object:
    annotations = {DEFAULT_ANNOTATION: "true"}
    return {"metadata": {"name": name, "creationTimestamp": when, "annotations": annotations}, **more}


def test_the_default_class() -> None:
    classes = [storage_class("a", "2030-01-01T00:00:00Z"), storage_class("b", "2031-01-01T00:00:00Z")]

    def admitted(obj: Object) -> Object:
        asked = request(PERSISTENT_VOLUME_CLAIM, obj, neighbours=Neighbours({STORAGE_CLASSES: classes}))
        for plugin in concerned(asked):
            plugin.mutate(asked)
        return obj

    given = admitted({"metadata": {"name": "x"}, "spec": {}})
    assert given["spec"]["storageClassName"] == "b", "of two the newer"
    assert given["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    none: Object = {
        "metadata": {"name": "x", "finalizers": ["kubernetes.io/pvc-protection"]},
        "spec": {"storageClassName": ""},
    }
    assert admitted(none)["spec"] == {"storageClassName": ""}
    assert none["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]


def test_who_may_grow_a_claim() -> None:
    old = made(PERSISTENT_VOLUME_CLAIM, spec=claim())
    new = made(PERSISTENT_VOLUME_CLAIM, spec=claim(resources={"requests": {"storage": "2Gi"}}))

    def judged(*classes: Object) -> None:
        asked = request(PERSISTENT_VOLUME_CLAIM, new, old, neighbours=Neighbours({STORAGE_CLASSES: list(classes)}))
        for plugin in concerned(asked):
            plugin.validate(asked)

    with pytest.raises(Forbidden, match="Only bound persistent volume claims can be expanded"):
        judged()
    old["status"]["phase"] = "Bound"
    with pytest.raises(Forbidden, match="only dynamically provisioned pvc can be resized"):
        judged(storage_class("c", "2030-01-01T00:00:00Z"))
    judged(storage_class("c", "2030-01-01T00:00:00Z", allowVolumeExpansion=True))


def test_a_volume_is_told_when_its_phase_changed() -> None:
    old = made(PERSISTENT_VOLUME, spec=volume(hostPath={"path": "/x"}))
    old["status"]["lastPhaseTransitionTime"] = "2020-01-01T00:00:00Z"
    status = {"status": {"phase": "Available", "lastPhaseTransitionTime": "2020-01-01T00:00:00Z"}}
    available = patched(PERSISTENT_VOLUME, old, status, "status")
    assert available["status"] == {"phase": "Available", "lastPhaseTransitionTime": "2038-01-19T03:14:07Z"}
