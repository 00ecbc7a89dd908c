"""What objects use of quotas, which quotas count them, and what a write is charged."""

from __future__ import annotations

import itertools

import pytest
from kind_rules import create
from neighbours import NOW, Neighbours, request

from seamark.errors import Forbidden, Object
from seamark.kinds.kind import Kind
from seamark.kinds.pod.pod import POD
from seamark.kinds.policy.charging import ResourceQuotas
from seamark.kinds.policy.usage import counted_by, in_scope, total, unsaid, used_by
from seamark.kinds.resource import (
    CONFIGMAPS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    SECRETS,
    SERVICES,
)
from seamark.kinds.service.service import SERVICE
from seamark.kinds.storage.persistentvolumeclaim import PERSISTENT_VOLUME_CLAIM
from seamark.kinds.values.quantity import minus, plus

PLUGIN = ResourceQuotas()


def pod(
    resources: Object | None = None, *, meta: Object | None = None, phase: str = "Running", **spec: Object
) -> Object:
    container = {"name": "c", "image": "i", "resources": resources or {}}
    body = {"metadata": {"name": "p"}, "spec": {"containers": [container], **spec}}
    made = create(POD, body)
    made["status"]["phase"] = phase
    made["metadata"].update(meta or {})
    return made


# --- quantities ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("0", "1Gi", "1Gi"),
        ("1Gi", "1G", "2073741824"),
        ("512Mi", "512Mi", "1Gi"),
        ("600m", "600m", "1200m"),
        ("500m", "500m", "1"),
        ("1", "999", "1k"),
        ("1e3", "0", "1e3"),
    ],
)
def test_sums_keep_their_suffixes(first: str, second: str, expected: str) -> None:
    assert plus(first, second) == expected
    assert minus(expected, expected) == "0"


# --- what counts --------------------------------------------------------------------------------------------


def test_the_names_of_a_quota_and_the_kinds_they_are_about() -> None:
    names = [
        *("pods", "requests.cpu", "hugepages-2Mi", "requests.a.b/gpu", "services.nodeports", "configmaps"),
        *(
            "count/configmaps",
            "count/deployments.apps",
            "requests.storage",
            "x.storageclass.storage.k8s.io/requests.storage",
        ),
    ]
    assert counted_by(PODS, names) == ["pods", "requests.cpu", "hugepages-2Mi", "requests.a.b/gpu"]
    assert counted_by(SERVICES, names) == ["services.nodeports"]
    assert counted_by(CONFIGMAPS, names) == ["configmaps", "count/configmaps"]
    assert counted_by(DEPLOYMENTS, names) == ["count/deployments.apps"]
    assert counted_by(PERSISTENT_VOLUME_CLAIMS, names) == names[-2:]
    assert counted_by(SECRETS, names) == []


def test_what_a_pod_uses() -> None:
    made = pod(
        {
            "requests": {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "4Mi", "a.b/gpu": "1"},
            "limits": {"cpu": "2", "hugepages-2Mi": "4Mi", "a.b/gpu": "1"},
        }
    )
    assert used_by(PODS, made, NOW) == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "1",
        "requests.cpu": "1",
        "memory": "1Gi",
        "requests.memory": "1Gi",
        "limits.cpu": "2",
        "hugepages-2Mi": "4Mi",
        "requests.hugepages-2Mi": "4Mi",
        "requests.a.b/gpu": "1",
    }


@pytest.mark.parametrize(
    "over",
    [
        pod(phase="Succeeded"),
        pod(phase="Failed"),
        pod(meta={"deletionTimestamp": "2030-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}),
    ],
)
def test_a_pod_that_is_over_is_only_counted(over: Object) -> None:
    assert used_by(PODS, over, NOW) == {"count/pods": "1"}


def test_a_pod_within_its_grace_period_still_counts() -> None:
    going = pod(meta={"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 30})
    assert "pods" in used_by(PODS, going, NOW)


@pytest.mark.parametrize(
    ("spec", "balancers", "node_ports"),
    [
        ({"type": "ClusterIP", "ports": [{}]}, "0", "0"),
        ({"type": "NodePort", "ports": [{}, {}]}, "0", "2"),
        ({"type": "LoadBalancer", "ports": [{}, {}]}, "1", "2"),
        (
            {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "ports": [{}, {"nodePort": 30000}]},
            "1",
            "1",
        ),
    ],
)
def test_what_a_service_uses(spec: Object, balancers: str, node_ports: str) -> None:
    used = used_by(SERVICES, {"metadata": {}, "spec": spec}, NOW)
    assert (used["services"], used["services.loadbalancers"], used["services.nodeports"]) == (
        "1",
        balancers,
        node_ports,
    )


def test_what_a_claim_of_devices_uses() -> None:
    requests = [
        {"name": "a", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}},
        {"name": "b", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}},
        {"name": "c", "exactly": {"deviceClassName": "nic", "allocationMode": "All"}},
        {
            "name": "d",
            "firstAvailable": [
                {"name": "x", "deviceClassName": "big", "allocationMode": "ExactCount", "count": 1},
                {"name": "y", "deviceClassName": "small", "allocationMode": "ExactCount", "count": 2},
                {"name": "z", "deviceClassName": "small", "allocationMode": "ExactCount", "count": 4},
            ],
        },
    ]
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}
    of = "{}.deviceclass.resource.k8s.io/devices".format
    count = "count/resourceclaims.resource.k8s.io"
    used = {count: "1", of("gpu"): "3", of("nic"): "32", of("big"): "1", of("small"): "4"}
    assert used_by(RESOURCE_CLAIMS, claim, NOW) == used
    assert counted_by(RESOURCE_CLAIMS, [*used, "pods"]) == list(used)


def test_what_a_claim_uses() -> None:
    claim: Object = {
        "metadata": {},
        "spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1500m"}}},
        "status": {"allocatedResources": {"storage": "1Gi"}},
    }
    assert used_by(PERSISTENT_VOLUME_CLAIMS, claim, NOW) == {
        "count/persistentvolumeclaims": "1",
        "persistentvolumeclaims": "1",
        "requests.storage": "1Gi",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
    }
    claim["status"] = {}
    assert used_by(PERSISTENT_VOLUME_CLAIMS, claim, NOW)["requests.storage"] == "2"


def scope(name: str, operator: str = "Exists", *values: str) -> Object:
    return {
        "spec": {"scopeSelector": {"matchExpressions": [{"scopeName": name, "operator": operator, "values": values}]}}
    }


ELSEWHERE = {
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"topologyKey": "a", "namespaceSelector": {}}}
        ]
    }
}


@pytest.mark.parametrize(
    ("quota", "made", "inside"),
    [
        ({"spec": {"scopes": ["BestEffort"]}}, pod(), True),
        ({"spec": {"scopes": ["NotBestEffort"]}}, pod(), False),
        ({"spec": {"scopes": ["BestEffort", "Terminating"]}}, pod(), False),
        ({"spec": {"scopes": ["BestEffort", "Terminating"]}}, pod(activeDeadlineSeconds=5), True),
        ({"spec": {"scopes": ["NotTerminating"]}}, pod(activeDeadlineSeconds=5), False),
        (scope("PriorityClass"), pod(), False),
        (scope("PriorityClass", "In", "system-node-critical"), pod(priorityClassName="system-node-critical"), True),
        (scope("PriorityClass", "NotIn", "system-node-critical"), pod(), True),
        (scope("PriorityClass", "DoesNotExist"), pod(), True),
        (scope("CrossNamespacePodAffinity"), pod(), False),
        (scope("CrossNamespacePodAffinity"), pod(affinity=ELSEWHERE), True),
        (scope("VolumeAttributesClass"), pod(), False),
    ],
)
def test_scopes_of_pods(quota: Object, made: Object, inside: bool) -> None:
    assert in_scope(quota, PODS, made) is inside


def test_other_kinds_are_in_no_scope_but_their_own() -> None:
    assert not in_scope({"spec": {"scopes": ["BestEffort"]}}, SERVICES, {"metadata": {}})
    claim = {"metadata": {}, "spec": {"volumeAttributesClassName": "silver"}}
    assert in_scope(scope("VolumeAttributesClass", "In", "silver"), PERSISTENT_VOLUME_CLAIMS, claim)
    assert not in_scope(scope("VolumeAttributesClass", "In", "gold"), PERSISTENT_VOLUME_CLAIMS, claim)


def test_what_containers_must_say() -> None:
    names = ["requests.cpu", "limits.memory", "requests.storage", "limits.ephemeral-storage"]
    assert unsaid(PODS, pod(), names) == "must specify limits.memory for: c; requests.cpu for: c"
    assert unsaid(PODS, pod({"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}), names) == ""
    whole = {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}
    assert unsaid(PODS, pod(resources=whole), names) == ""
    assert unsaid(SERVICES, {}, names) == ""


def test_a_sum_has_every_name() -> None:
    assert total({(("pods", "1"), ("x", "1")): 3, (("pods", "2"),): 1}, ["pods", "cpu"]) == {"pods": "5", "cpu": "0"}


# --- charging -----------------------------------------------------------------------------------------------


def quota(hard: Object, used: Object | None = None, name: str = "q", **spec: Object) -> Object:
    status = {"hard": hard, "used": dict.fromkeys(hard, "0") if used is None else used}
    meta = {"name": name, "namespace": "ns", "resourceVersion": "7"}
    return {"metadata": meta, "spec": {"hard": hard, **spec}, "status": status}


def charge(
    kind: Kind, obj: Object, *quotas: Object, old: Object | None = None, part: str = ""
) -> dict[str, dict[str, str]]:
    """What is used of the quotas that change."""
    asked = request(kind, obj, old, part, Neighbours({RESOURCE_QUOTAS: quotas}))
    assert PLUGIN.concerns(kind, asked.operation, part)
    PLUGIN.validate(asked)
    return {changed["metadata"]["name"]: changed["status"]["used"] for _, changed in asked.also}


def refusal(kind: Kind, obj: Object, *quotas: Object, old: Object | None = None) -> str:
    with pytest.raises(Forbidden) as refused:
        charge(kind, obj, *quotas, old=old)
    return refused.value.message.partition("is forbidden: ")[2]


def service(type: str, ports: int = 1) -> Object:
    meta = {"name": "s", "namespace": "ns"}
    return {"metadata": meta, "spec": {"type": type, "ports": list(itertools.repeat({}, ports))}}


def test_every_quota_that_counts_an_object_is_charged() -> None:
    first = quota({"pods": "5", "services": "1"}, name="a")
    other = quota({"services": "1"}, name="b")
    third = quota({"count/pods": "2"}, {"count/pods": "1"}, name="c")
    assert charge(POD, pod(), first, other, third) == {
        "a": {"pods": "1", "services": "0"},
        "c": {"count/pods": "2"},
    }


def test_the_first_quota_without_room_refuses() -> None:
    full = quota({"pods": "1", "requests.cpu": "4"}, {"pods": "1", "requests.cpu": "1"})
    assert refusal(POD, pod({"requests": {"cpu": "1"}}), quota({"pods": "9"}, name="a"), full) == (
        "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
    )


def test_a_quota_that_was_not_counted_yet() -> None:
    assert charge(POD, pod(), {**quota({"pods": "1"}), "status": {}}) == {}
    unknown = "status unknown for quota: q, resources: count/pods,pods"
    assert refusal(POD, pod(), quota({"pods": "1", "count/pods": "1"}, {"pods": "0"})) == unknown


def test_a_service_that_changes_its_type() -> None:
    before, after = service("ClusterIP"), service("LoadBalancer", 2)
    hard = {"services": "1", "services.loadbalancers": "1", "services.nodeports": "2"}
    used = {"services": "1", "services.loadbalancers": "0", "services.nodeports": "0"}
    assert charge(SERVICE, after, quota(hard, used), old=before) == {
        "q": {"services": "1", "services.loadbalancers": "1", "services.nodeports": "2"}
    }
    # What is freed is counted anew later.
    assert charge(SERVICE, before, quota(hard, hard), old=after) == {}
    tight = {**hard, "services.nodeports": "1"}
    assert refusal(SERVICE, after, quota(tight, used), old=before) == (
        "exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=0, limited: services.nodeports=1"
    )


def test_a_pod_that_grows() -> None:
    before, after = pod({"requests": {"cpu": "1"}}), pod({"requests": {"cpu": "3"}})
    full = quota({"requests.cpu": "4", "pods": "1"}, {"requests.cpu": "1", "pods": "1"})
    assert charge(POD, after, full, old=before, part="resize") == {"q": {"requests.cpu": "3", "pods": "1"}}
    assert charge(POD, before, full, old=after, part="resize") == {}


def test_what_a_volume_got_is_charged_and_not_refused() -> None:
    spec = {"resources": {"requests": {"storage": "1Gi"}}}
    before: Object = {"metadata": {"name": "c", "namespace": "ns"}, "spec": spec, "status": {}}
    after = {**before, "status": {"allocatedResources": {"storage": "3Gi"}}}
    full = quota({"requests.storage": "2Gi"}, {"requests.storage": "1Gi"})
    used = charge(PERSISTENT_VOLUME_CLAIM, after, full, old=before, part="status")
    assert used == {"q": {"requests.storage": "3Gi"}}
