"""What ``seamark export`` prints of an object, and which kinds come first."""

import pytest

from seamark.cli.keeping.export import in_order, manifest_of
from seamark.cli.objects.kinds import ServerKind
from seamark.kinds.resource import Resource

BY = "endpointslice.kubernetes.io/managed-by"
SET = {"uid": "u", "resourceVersion": "7", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z"}


def meta(name, **more):
    return {"name": name, "namespace": "shop", **SET, "managedFields": [{}], **more}


def test_what_the_server_set_is_left_out():
    obj = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta("web", labels={"a": "b"}, annotations={"c": "d"}, finalizers=["x/y"]),
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
        ("namespaces", {"name": "shop"}),
        ("configmaps", meta("owned", ownerReferences=[{"kind": "Widget", "controller": False}])),
    ],
)
def test_what_people_made_is_kept(plural, metadata):
    assert manifest_of(plural, {"metadata": metadata})["metadata"]["name"] == metadata["name"]


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
