"""Deployments, ReplicaSets, StatefulSets, DaemonSets, ReplicationControllers, ControllerRevisions and scale."""

from __future__ import annotations

from typing import Any

import pytest
from kind_rules import NOW, Recorded, change, check, create, recorded_creations, sentences
from merge_patch import merged

from seamark.errors import Invalid, Object
from seamark.kinds.kind import Kind
from seamark.kinds.values.times import parse
from seamark.kinds.workloads import scale
from seamark.kinds.workloads.controllerrevision import CONTROLLER_REVISION
from seamark.kinds.workloads.daemonset import DAEMON_SET, TEMPLATE_GENERATION
from seamark.kinds.workloads.deployment import DEPLOYMENT
from seamark.kinds.workloads.replicaset import REPLICA_SET, REPLICATION_CONTROLLER
from seamark.kinds.workloads.statefulset import STATEFUL_SET

TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "example/app:1"}]}}
SELECTOR = {"matchLabels": {"app": "a"}}
SELECTED = (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, DAEMON_SET)
REPLICATED = (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER)


@pytest.mark.parametrize(
    "recorded", recorded_creations("deployments", "replicasets", "statefulsets", "daemonsets"), ids=str
)
def test_recorded(recorded: Recorded) -> None:
    check(recorded)


def body(kind: Kind, **spec: Any) -> Object:
    given: Object = {"template": TEMPLATE, **spec}
    if kind is not REPLICATION_CONTROLLER:
        given.setdefault("selector", SELECTOR)
    return {"metadata": {"name": "w"}, "spec": given}


def made(kind: Kind, **spec: Any) -> Object:
    return create(kind, body(kind, **spec))


def refusals(kind: Kind, **spec: Any) -> list[str]:
    with pytest.raises(Invalid) as refused:
        made(kind, **spec)
    return sentences(refused.value)


def change_refusals(kind: Kind, old: Object, patch: Object, subresource: str = "") -> list[str]:
    with pytest.raises(Invalid) as refused:
        change(kind, old, merged(old, patch), subresource)
    return sentences(refused.value)


# --- all of them -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*SELECTED, REPLICATION_CONTROLLER], ids=lambda kind: kind.singular)
def test_life(kind: Kind) -> None:
    old = made(kind)
    assert old["metadata"]["generation"] == 1
    assert old["spec"]["template"]["spec"]["restartPolicy"] == "Always"
    assert "tolerations" not in old["spec"]["template"]["spec"], "templates stay as their authors wrote them"
    assert change(kind, old, old) == old
    labelled = change(kind, old, merged(old, {"metadata": {"labels": {"x": "y"}}}))
    assert labelled["metadata"]["generation"] == 1
    slower = change(kind, old, merged(old, {"spec": {"minReadySeconds": 3}, "status": {"observedGeneration": 9}}))
    assert slower["metadata"]["generation"] == 2
    assert slower["status"] == old["status"]
    told = change(
        kind, old, merged(old, {"spec": {"minReadySeconds": 3}, "status": {"observedGeneration": 9}}), "status"
    )
    assert told["spec"] == old["spec"]
    assert told["status"]["observedGeneration"] == 9
    assert len(list(kind.row(old, parse(NOW)))) == len(kind.columns)


@pytest.mark.parametrize("kind", SELECTED, ids=lambda kind: kind.singular)
def test_the_selector_stays(kind: Kind) -> None:
    patch = {"spec": {"selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}}}}
    assert change_refusals(kind, made(kind), patch) == [
        'spec.selector: Invalid value: {"matchLabels":{"app":"a","x":"y"}}: field is immutable'
    ]


@pytest.mark.parametrize("kind", SELECTED, ids=lambda kind: kind.singular)
def test_selectors_must_select_the_template(kind: Kind) -> None:
    assert refusals(kind, selector={"matchLabels": {"app": "b"}}) == [
        'spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labels`'
    ]
    name = "deployment" if kind is REPLICA_SET else kind.singular
    assert refusals(kind, selector={}) == [f"spec.selector: Invalid value: {{}}: empty selector is invalid for {name}"]
    broken = {"matchExpressions": [{"key": "app", "operator": "Near"}]}
    assert 'spec.selector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator' in (
        refusals(kind, selector=broken)
    )


@pytest.mark.parametrize("kind", [*SELECTED, REPLICATION_CONTROLLER], ids=lambda kind: kind.singular)
def test_pods_of_workloads_last(kind: Kind) -> None:
    spec = {**TEMPLATE["spec"], "restartPolicy": "Never", "activeDeadlineSeconds": 5}
    owner = "ReplicaSet" if kind is DEPLOYMENT else kind.resource.kind
    assert refusals(kind, template={**TEMPLATE, "spec": spec}) == [
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
        f"spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in {owner} is not Supported",
    ]


@pytest.mark.parametrize("kind", REPLICATED, ids=lambda kind: kind.singular)
def test_no_negative_numbers(kind: Kind) -> None:
    sentence = "must be greater than or equal to 0"
    assert refusals(kind, replicas=-1) == [f"spec.replicas: Invalid value: -1: {sentence}"]
    old = made(kind)
    assert f"status.replicas: Invalid value: -1: {sentence}" in change_refusals(
        kind, old, {"status": {"replicas": -1}}, "status"
    )


def test_template_warnings() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 80}]
    spec = {"containers": [{"name": "c", "image": "x", "ports": ports}]}
    new = made(DEPLOYMENT, template={**TEMPLATE, "spec": spec})
    first = "spec.template.spec.containers[0].ports"
    assert DEPLOYMENT.warnings(new, None) == [f"{first}[1]: duplicate port definition with {first}[0]"]
    assert DEPLOYMENT.warnings(new, new) == [], "who changes nothing is not warned again"
    scaled = change(DEPLOYMENT, new, merged(new, {"spec": {"replicas": 2}}))
    assert len(DEPLOYMENT.warnings(scaled, new)) == 1


def test_names_end_up_in_pods() -> None:
    dotted = {"metadata": {"name": "a.b"}}
    (warning,) = REPLICA_SET.warnings(create(REPLICA_SET, merged(body(REPLICA_SET), dotted)), None)
    assert warning == (
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label "
        "is recommended: [must not contain dots]"
    )
    assert DAEMON_SET.warnings(create(DAEMON_SET, merged(body(DAEMON_SET), dotted)), None) == []
    assert STATEFUL_SET.warnings(made(STATEFUL_SET, revisionHistoryLimit=-1), None) == [
        "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
    ]


# --- one by one --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"strategy": {"type": "Recreate", "rollingUpdate": {}}},
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}},
            'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0',
        ),
        (
            {"strategy": {"rollingUpdate": {"maxUnavailable": "101%"}}},
            'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
        ),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": "much"}}},
            'spec.strategy.rollingUpdate.maxSurge: Invalid value: "much": a valid percent string must be a numeric '
            "string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
        ),
        (
            {"minReadySeconds": 600},
            "spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds",
        ),
    ],
)
def test_deployments_refused(spec: Object, expected: str) -> None:
    assert refusals(DEPLOYMENT, **spec) == [expected]


def test_messages_quote_what_go_holds() -> None:
    assert refusals(DEPLOYMENT, strategy={"type": "Fast"}) == [
        'spec.strategy: Unsupported value: {"Type":"Fast","RollingUpdate":null}: supported values: "Recreate", '
        '"RollingUpdate"'
    ]
    expressions = [{"values": ["b"], "operator": "In", "key": "a"}]
    old = made(DEPLOYMENT)
    patch = {"spec": {"selector": {"matchExpressions": expressions}, "template": {"metadata": {"labels": {"a": "b"}}}}}
    assert change_refusals(DEPLOYMENT, old, patch) == [
        'spec.selector: Invalid value: {"matchLabels":{"app":"a"},"matchExpressions":[{"key":"a","operator":"In",'
        '"values":["b"]}]}: field is immutable'
    ]


def test_labels_of_a_deployment_do_not_change_with_its_status() -> None:
    old = create(DEPLOYMENT, merged(body(DEPLOYMENT), {"metadata": {"labels": {"a": "b"}}}))
    patch = {"metadata": {"labels": {"c": "d"}, "annotations": {"e": "f"}}}
    new = change(DEPLOYMENT, old, merged(old, patch), "status")
    assert new["metadata"]["labels"] == {"a": "b"}
    assert new["metadata"]["annotations"] == {"e": "f"}
    assert change(REPLICA_SET, made(REPLICA_SET), merged(made(REPLICA_SET), patch), "status")["metadata"]["labels"]


def test_statuses_that_do_not_add_up() -> None:
    old = made(REPLICA_SET)
    assert change_refusals(
        REPLICA_SET, old, {"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 2}}, "status"
    ) == [
        "status.availableReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas",
    ]
    counted = change(
        STATEFUL_SET, made(STATEFUL_SET), {"metadata": {"name": "w"}, "status": {"collisionCount": 2}}, "status"
    )
    assert change_refusals(STATEFUL_SET, counted, {"status": {"collisionCount": 1}}, "status") == [
        "status.collisionCount: Invalid value: 1: cannot be decremented"
    ]


CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def test_claims_that_may_not_change_are_shown_as_go_prints_them() -> None:
    old = made(STATEFUL_SET, volumeClaimTemplates=[CLAIM])
    larger = {**CLAIM["spec"], "resources": {"requests": {"storage": "2Gi"}}}
    (said,) = change_refusals(STATEFUL_SET, old, {"spec": {"volumeClaimTemplates": [{**CLAIM, "spec": larger}]}})
    spec = (
        '{"AccessModes":["ReadWriteOnce"],"Selector":null,"Resources":{"Limits":null,"Requests":{"storage":"2Gi"}},'
        '"VolumeName":"","StorageClassName":null,"VolumeMode":"Filesystem","DataSource":null,"DataSourceRef":null,'
        '"VolumeAttributesClassName":null}'
    )
    assert said.startswith(
        f'spec.volumeClaimTemplates: Invalid value: [{{"name":"data","Spec":{spec},"Status":{{"Phase":"Pending",'
    )


def test_stateful_sets_mount_their_claims() -> None:
    container = {"name": "c", "image": "x", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    template = {**TEMPLATE, "spec": {"containers": [container]}}
    (claim,) = made(STATEFUL_SET, template=template, volumeClaimTemplates=[CLAIM])["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["volumeMode"] == "Filesystem"
    assert claim["status"] == {"phase": "Pending"}
    assert (claim["apiVersion"], claim["kind"]) == ("v1", "PersistentVolumeClaim")
    assert refusals(STATEFUL_SET, template=template) == [
        'spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"'
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"podManagementPolicy": "X"},
            "podManagementPolicy: Invalid value: \"X\": must be 'OrderedReady' or 'Parallel'",
        ),
        ({"serviceName": "Bad"}, 'serviceName: Invalid value: "Bad": a lowercase RFC 1123 label must'),
        (
            {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {}}},
            "updateStrategy.rollingUpdate: Invalid value: {",
        ),
        (
            {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "X"}},
            'persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "X": supported values: "Retain", '
            '"Delete"',
        ),
        ({"ordinals": {"start": -1}}, "ordinals.start: Invalid value: -1: must be greater than or equal to 0"),
        (
            {"volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]},
            "volumeClaimTemplates[0].spec.resources[storage]: Required value",
        ),
    ],
)
def test_stateful_sets_refused(spec: Object, expected: str) -> None:
    (sentence,) = refusals(STATEFUL_SET, **spec)
    assert sentence.startswith(f"spec.{expected}")


def test_stateful_sets_keep_their_identity() -> None:
    old = made(STATEFUL_SET, serviceName="s", volumeClaimTemplates=[CLAIM])
    patch = {"spec": {"serviceName": "t", "podManagementPolicy": "Parallel", "volumeClaimTemplates": None}}
    assert [sentence.split(":")[0] for sentence in change_refusals(STATEFUL_SET, old, patch)] == [
        "spec.serviceName",
        "spec.podManagementPolicy",
        "spec.volumeClaimTemplates",
    ]
    assert change(STATEFUL_SET, old, merged(old, {"spec": {"replicas": 5, "revisionHistoryLimit": 1}}))


def test_a_name_that_no_pod_could_have_is_no_name_of_a_stateful_set() -> None:
    with pytest.raises(Invalid) as refused:
        create(STATEFUL_SET, merged(body(STATEFUL_SET), {"metadata": {"name": "a.b"}}))
    assert refused.value.causes[0].field == "metadata.name"


def test_daemon_sets_count_their_templates() -> None:
    old = made(DAEMON_SET)
    assert old["metadata"]["annotations"] == {TEMPLATE_GENERATION: "1"}
    assert old["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
    }
    template = merged(old["spec"]["template"], {"spec": {"hostNetwork": True}})
    bare = {"metadata": {"name": "w"}, "spec": {**old["spec"], "template": template}}
    new = change(DAEMON_SET, old, bare)
    assert new["metadata"]["annotations"] == {TEMPLATE_GENERATION: "2"}
    assert change(DAEMON_SET, new, merged(new, {"spec": {"minReadySeconds": 1}}))["metadata"]["annotations"] == {
        TEMPLATE_GENERATION: "2"
    }
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}
    assert refusals(DAEMON_SET, updateStrategy=strategy) == [
        "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"
    ]


def test_replication_controllers_take_labels_from_the_template() -> None:
    new = made(REPLICATION_CONTROLLER)
    assert new["spec"]["selector"] == {"app": "a"}
    assert new["metadata"]["labels"] == {"app": "a"}
    assert new["status"] == {"replicas": 0}
    assert refusals(REPLICATION_CONTROLLER, template=None) == [
        "spec.selector: Required value",
        "spec.template: Required value",
    ]
    assert REPLICATION_CONTROLLER.fields(new) == {"status.replicas": "0"}


def test_controller_revisions() -> None:
    new = create(CONTROLLER_REVISION, {"metadata": {"name": "r"}, "revision": 1, "data": {"a": 1}})
    assert change_refusals(CONTROLLER_REVISION, new, {"data": {"a": 2}}) == [
        'data: Invalid value: {"a":2}: field is immutable'
    ]
    with pytest.raises(Invalid) as refused:
        create(CONTROLLER_REVISION, {"metadata": {"name": "r"}, "revision": -1})
    assert sentences(refused.value) == [
        "data: Required value: data is mandatory",
        "revision: Invalid value: -1: must be greater than or equal to 0",
    ]
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "1", "controller": True}
    owned = merged(new, {"metadata": {"ownerReferences": [owner]}})
    assert list(CONTROLLER_REVISION.row(owned, parse(NOW)))[:3] == ["r", "statefulset.apps/web", 1]
    assert list(CONTROLLER_REVISION.row(new, parse(NOW)))[1] == "<none>"


# --- scale -------------------------------------------------------------------------------------------------


def test_the_scale_of_a_workload() -> None:
    deployment = merged(made(DEPLOYMENT, replicas=3), {"metadata": {"uid": "u", "resourceVersion": "7"}})
    assert scale.of(DEPLOYMENT, merged(deployment, {"status": {"replicas": 2}})) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "w", "namespace": "ns", "uid": "u", "resourceVersion": "7", "creationTimestamp": NOW},
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": "app=a"},
    }
    controller = made(REPLICATION_CONTROLLER, replicas=0)
    assert scale.of(REPLICATION_CONTROLLER, controller)["spec"] == {}
    assert scale.of(REPLICATION_CONTROLLER, controller)["status"] == {"replicas": 0, "selector": "app=a"}


def test_scaling_changes_the_number_and_carries_preconditions() -> None:
    old = merged(made(DEPLOYMENT), {"metadata": {"uid": "u", "resourceVersion": "7"}})
    new = scale.apply(DEPLOYMENT, old, {"metadata": {"name": "w", "resourceVersion": "6"}, "spec": {"replicas": 4}})
    assert new["spec"] == {**old["spec"], "replicas": 4}
    assert new["metadata"]["resourceVersion"] == "6", "the writer compares it"
    free = scale.apply(DEPLOYMENT, old, {"metadata": {"name": "w"}, "spec": {}})
    assert free["spec"]["replicas"] == 0
    assert "resourceVersion" not in free["metadata"]
    assert old["spec"]["replicas"] == 1


def test_nobody_scales_below_nothing() -> None:
    with pytest.raises(Invalid) as refused:
        scale.apply(DEPLOYMENT, made(DEPLOYMENT), {"spec": {"replicas": -1}})
    assert refused.value.message == (
        'Scale.autoscaling "w" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0'
    )
