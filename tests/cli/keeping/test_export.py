"""What ``seamark export`` prints of an object, and which kinds come first."""

import pytest

from seamark.cli.keeping.export import in_order
from seamark.cli.keeping.manifests import manifest_of
from seamark.cli.objects.kinds import ServerKind
from seamark.kinds.resource import Resource

REVISION = "deployment.kubernetes.io/revision"
BY = "endpointslice.kubernetes.io/managed-by"
SET = {"uid": "u", "resourceVersion": "7", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z"}


def meta(name, **more):
    return {"name": name, "namespace": "shop", **SET, "managedFields": [{}], **more}


def test_what_the_server_set_is_left_out():
    obj = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta("web", labels={"a": "b"}, annotations={"c": "d", REVISION: "1"}, finalizers=["x/y"]),
        "spec": {"replicas": 3},
        "status": {"readyReplicas": 3},
    }
    assert manifest_of("deployments", obj) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "labels": {"a": "b"},
            "annotations": {"c": "d"},
            "finalizers": ["x/y"],
        },
        "spec": {"replicas": 3},
    }
    assert obj["metadata"]["uid"] == "u", "the object itself must stay as it is"


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        (
            {"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "ports": [{"port": 80, "nodePort": 30080}]},
            {"ports": [{"port": 80, "nodePort": 30080}]},
        ),
        ({"clusterIP": "None", "clusterIPs": ["None"]}, {"clusterIP": "None", "clusterIPs": ["None"]}),
        ({"type": "LoadBalancer", "healthCheckNodePort": 31000}, {"type": "LoadBalancer"}),
    ],
)
def test_a_service_keeps_its_node_ports_but_not_its_addresses(spec, kept):
    assert manifest_of("services", {"metadata": meta("web"), "spec": spec})["spec"] == kept


def test_a_bare_pod_may_go_to_another_node():
    pod = {"metadata": meta("one"), "spec": {"nodeName": "node-a", "containers": []}}
    assert manifest_of("pods", pod)["spec"] == {"containers": []}


@pytest.mark.parametrize(
    ("plural", "metadata"),
    [
        ("pods", meta("web-1", ownerReferences=[{"kind": "ReplicaSet", "controller": True}])),
        ("endpointslices", meta("web-x", labels={BY: "endpointslice-controller.k8s.io"})),
        ("endpointslices", meta("web-y", labels={BY: "endpointslicemirroring-controller.k8s.io"})),
        ("endpoints", meta("web", labels={"endpoints.kubernetes.io/managed-by": "endpoint-controller"})),
        ("services", {**meta("kubernetes"), "namespace": "default"}),
        ("serviceaccounts", meta("default")),
        ("configmaps", meta("kube-root-ca.crt")),
        ("namespaces", {"name": "kube-system"}),
        ("services", {**meta("kube-dns"), "namespace": "kube-system"}),
        ("priorityclasses", {"name": "system-node-critical"}),
        ("clusterroles", {"name": "view", "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}),
        ("apiservices", {"name": "v1.apps", "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"}}),
        ("storageclasses", {"name": "standard", "labels": {"addonmanager.kubernetes.io/mode": "EnsureExists"}}),
        ("persistentvolumes", {"name": "pvc-1", "annotations": {"pv.kubernetes.io/provisioned-by": "x.io"}}),
        ("configmaps", meta("going", deletionTimestamp="2026-01-01T00:00:00Z")),
    ],
)
def test_what_the_cluster_made_is_left_out(plural, metadata):
    assert manifest_of(plural, {"metadata": metadata, "spec": {}}) is None


@pytest.mark.parametrize(
    ("plural", "metadata"),
    [
        ("endpoints", meta("by-hand")),
        ("endpointslices", meta("by-hand", labels={BY: "cluster-admins"})),
        ("services", meta("kubernetes")),
        ("services", meta("kube-dns")),
        ("clusterroles", {"name": "mine"}),
        ("priorityclasses", {"name": "mine"}),
        ("storageclasses", {"name": "standard"}),
        ("namespaces", {"name": "shop"}),
        ("configmaps", meta("owned", ownerReferences=[{"kind": "Widget", "controller": False}])),
    ],
)
def test_what_people_made_is_kept(plural, metadata):
    assert manifest_of(plural, {"metadata": metadata})["metadata"]["name"] == metadata["name"]


BOUND = {"pv.kubernetes.io/bound-by-controller": "yes", "pv.kubernetes.io/bind-completed": "yes"}


def test_a_claim_may_get_another_volume():
    spec = {"volumeName": "pvc-1", "accessModes": ["ReadWriteOnce"]}
    bound = meta("data", annotations={**BOUND, "mine": "1"}, finalizers=["kubernetes.io/pvc-protection"])
    found = manifest_of("persistentvolumeclaims", {"metadata": bound, "spec": spec})
    assert found["spec"] == {"accessModes": ["ReadWriteOnce"]}
    assert found["metadata"] == {"name": "data", "namespace": "shop", "annotations": {"mine": "1"}}
    chosen = manifest_of("persistentvolumeclaims", {"metadata": meta("data"), "spec": spec})
    assert chosen["spec"]["volumeName"] == "pvc-1"


def test_a_volume_may_get_another_claim():
    claim = {"namespace": "shop", "name": "data", "uid": "u", "resourceVersion": "7"}
    volume = {"metadata": {"name": "disk", "annotations": BOUND}, "spec": {"claimRef": claim, "nfs": {}}}
    found = manifest_of("persistentvolumes", volume)
    assert (found["metadata"], found["spec"]) == ({"name": "disk"}, {"nfs": {}})
    chosen = manifest_of("persistentvolumes", {"metadata": {"name": "disk"}, "spec": {"claimRef": claim}})
    assert chosen["spec"] == {"claimRef": {"namespace": "shop", "name": "data"}}


def test_a_job_gets_another_uid():
    given = dict.fromkeys(("controller-uid", "batch.kubernetes.io/controller-uid", "job-name"), "u")
    spec = {"selector": {"matchLabels": given}, "template": {"metadata": {"labels": {"app": "a", **given}}, "spec": {}}}
    found = manifest_of("jobs", {"metadata": meta("once", labels=given), "spec": spec})
    assert found["spec"] == {"template": {"metadata": {"labels": {"app": "a"}}, "spec": {}}}
    assert found["metadata"] == {"name": "once", "namespace": "shop"}
    by_hand = {"metadata": meta("once"), "spec": {**spec, "manualSelector": True}}
    assert manifest_of("jobs", by_hand)["spec"] == by_hand["spec"]


def test_the_token_of_an_account_stays_here():
    notes = {"kubernetes.io/service-account.name": "ci", "kubernetes.io/service-account.uid": "u"}
    secret = {
        "metadata": meta("ci", annotations=notes),
        "type": "kubernetes.io/service-account-token",
        "data": {"a": ""},
    }
    found = manifest_of("secrets", secret)
    assert found["metadata"]["annotations"] == {"kubernetes.io/service-account.name": "ci"}
    assert "data" not in found
    assert manifest_of("secrets", {**secret, "type": "Opaque"})["data"] == {"a": ""}


def test_kinds_that_others_need_come_first():
    def kind(plural, *verbs, namespaced=True):
        resource = Resource("", "v1", plural, plural.title(), namespaced=namespaced)
        return ServerKind(resource, verbs=verbs or ("list", "create"))

    kinds = [
        kind("widgets"),
        kind("pods"),
        kind("services"),
        kind("events"),
        kind("bindings", "create"),
        kind("namespaces", namespaced=False),
        kind("configmaps"),
    ]
    found = [each.resource.plural for each in in_order(kinds, all_namespaces=True)]
    assert found == ["namespaces", "configmaps", "services", "pods", "widgets"]
    assert "namespaces" not in [each.resource.plural for each in in_order(kinds, all_namespaces=False)]
