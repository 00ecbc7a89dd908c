"""What a test can do with its cluster: apply, wait, look, switch nodes off, let limited users in."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import urllib.error
import urllib.request
from contextlib import suppress
from typing import Any

import pytest

from seamark import errors, testing
from seamark.testing import Cluster, Login, NotYet

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "example/web"}]},
        },
    },
}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"selector": {"app": "wob"}, "ports": [{"port": 80}]},
}
PODS = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]


def definition(plural: str = "widgets") -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": "Widget"},
            "versions": [version],
        },
    }


def status(login: Login | Cluster, path: str) -> int:
    asked = urllib.request.Request(login.url + path, headers={"Authorization": f"Bearer {login.token}"})
    try:
        with urllib.request.urlopen(asked, context=ssl.create_default_context(cafile=str(login.ca))) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_a_deployment_becomes_ready_without_further_ado(seamark: Cluster) -> None:
    seamark.apply(DEPLOYMENT)
    assert seamark.until(lambda: seamark.get("deployments", "web")["status"].get("readyReplicas") == 2)


def test_what_is_there_from_the_start(tmp_path) -> None:
    (tmp_path / "one.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [DEPLOYMENT]}))
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "any-"}}
    with Cluster(crds=[definition()], manifests=[widget, made, tmp_path], parts=()) as cluster:
        assert cluster.get("widgets.example.com", "one")["kind"] == "Widget"
        assert cluster.get("deployments", "web")["spec"]["replicas"] == 2
        with pytest.raises(errors.NotFound):
            cluster.get("widgets", "two")
        with pytest.raises(LookupError, match="give its plural"):
            cluster.get("gadgets", "one")
        with pytest.raises(LookupError, match="among crds"):
            cluster.apply({**widget, "kind": "Gadget"})


def test_a_start_that_fails_leaves_nothing_behind() -> None:
    made = Cluster(manifests=[{"apiVersion": "v1", "kind": "Gadget", "metadata": {"name": "one"}}], parts=())
    with pytest.raises(LookupError, match="there is no kind Gadget"):
        made.start()
    assert not made.kubeconfig.parent.exists()


def test_a_definition_whose_names_are_taken_is_refused(seamark: Cluster) -> None:
    seamark.apply(definition())
    other = definition(plural="others")
    with pytest.raises(ValueError, match="is not served"):
        seamark.apply(other)


def test_waiting_in_vain_says_why(seamark: Cluster) -> None:
    seamark.apply(DEPLOYMENT, SERVICE)
    seamark.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "stuck"},
            "spec": {"nodeSelector": {"no": "where"}, "containers": [{"name": "c", "image": "i"}]},
        }
    )
    seamark.until(lambda: seamark.get("pods", "stuck")["status"]["conditions"][0]["message"])
    with pytest.raises(NotYet) as failed:
        seamark.until(lambda: seamark.get("endpoints", "web")["subsets"][0], timeout=0.1)
    said = str(failed.value)
    assert "still not true after 0.1 s: KeyError: 'subsets'" in said
    assert "service/web in namespace default" in said
    assert "default/stuck is Pending" in said
    assert "Endpoints default/web" in said


def test_without_nodes_the_reason_is_named() -> None:
    with Cluster(nodes=0) as bare:
        bare.apply(DEPLOYMENT)
        bare.until(lambda: "There is no node" in bare.why())


def test_a_mistake_in_the_condition_is_told_at_once(seamark: Cluster) -> None:
    with pytest.raises(NameError):
        seamark.until(lambda: undefined_name)  # type: ignore[name-defined] # noqa: F821


def test_a_condition_is_asked_at_least_once(seamark: Cluster) -> None:
    assert seamark.until(lambda: "at once", timeout=0) == "at once"


async def test_async_code_waits_without_blocking() -> None:
    async with Cluster(parts=()) as cluster:
        with pytest.raises(TypeError, match="until_async"):
            cluster.until(lambda: True)

        async def make() -> None:
            await asyncio.to_thread(cluster.apply, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})

        async def there() -> Any:
            return cluster.get("configmaps", "a")

        making = asyncio.create_task(make())
        assert (await cluster.until_async(there))["kind"] == "ConfigMap"
        assert await cluster.until_async(lambda: cluster.get("configmaps", "a"))
        await making
        with pytest.raises(NotYet):
            await cluster.until_async(lambda: False, timeout=0)
        folder = cluster.kubeconfig.parent
    assert not folder.exists()


def test_from_other_threads(seamark: Cluster) -> None:
    threads = [
        threading.Thread(target=seamark.apply, args=[{**DEPLOYMENT, "metadata": {"name": f"d{number}"}}])
        for number in range(5)
    ]
    for thread in threads:
        thread.start()
    for number in range(5):
        seamark.until(lambda number=number: seamark.get("deployments", f"d{number}"))
    for thread in threads:
        thread.join()


@pytest.mark.seamark(nodes=2)
def test_a_node_fails_and_returns(seamark: Cluster) -> None:
    def ready(name: str) -> str:
        conditions = seamark.get("nodes", name)["status"]["conditions"]
        return str(next(each["status"] for each in conditions if each["type"] == "Ready"))

    seamark.stop_node("node-2")
    assert (ready("node-1"), ready("node-2")) == ("True", "Unknown")
    seamark.start_node("node-2")
    assert ready("node-2") == "True"


@pytest.mark.seamark(profile="full", nodes=0)
def test_limited_users(seamark: Cluster) -> None:
    ann = seamark.user("ann", groups=["team"], rules=PODS, only_in="default")
    assert status(ann, "/api/v1/namespaces/default/pods") == 200
    assert status(ann, "/api/v1/namespaces/kube-system/pods") == 403
    assert status(ann, "/api/v1/namespaces/default/services") == 403
    robot = seamark.service_account("robot", rules=PODS)
    assert status(robot, "/api/v1/pods") == 200
    assert status(robot, "/api/v1/services") == 403
    viewer = seamark.service_account("robot", namespace="kube-system", role="view", only_in="kube-system")
    assert status(viewer, "/api/v1/namespaces/kube-system/services") == 200
    assert status(viewer, "/api/v1/namespaces/default/services") == 403
    assert "namespace: kube-system" in viewer.kubeconfig.read_text()


def test_limited_users_need_roles(seamark: Cluster) -> None:
    with pytest.raises(ValueError, match='profile="full"'):
        seamark.user("ann")


def test_a_certificate_for_servers_of_the_test(seamark: Cluster) -> None:
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(*seamark.certificate)
    theirs = ssl.create_default_context(cafile=seamark.ca)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = theirs.wrap_bio(back, there, server_hostname="127.0.0.1")
    server = ours.wrap_bio(there, back, server_side=True)
    for side in (client, server, client, server):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    assert ("IP Address", "127.0.0.1") in client.getpeercert()["subjectAltName"]


def test_names_of_the_package() -> None:
    assert testing.TestCluster is testing.Cluster
    with pytest.raises(AttributeError):
        testing.nothing  # noqa: B018
