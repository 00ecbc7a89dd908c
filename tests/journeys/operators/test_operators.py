"""Operators that own a custom resource, in three frameworks, tested with the fixture as their authors would."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from seamark.errors import NotFound
from seamark.testing import Cluster

ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "shops.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "shops", "kind": "Shop"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": ANY, "status": ANY}}},
            }
        ],
    },
}
pytestmark = [pytest.mark.seamark(crds=[CRD])]


def shop(size: int) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "one"}, "spec": {"size": size}}


def gone(cluster: Cluster, kind: str, name: str) -> Callable[[], bool]:
    def ask() -> bool:
        try:
            cluster.get(kind, name)
        except NotFound:
            return True
        return False

    return ask


@contextmanager
def kopf_operator(registry: Any) -> Iterator[None]:
    import kopf

    stop = threading.Event()
    work = lambda: asyncio.run(kopf.operator(registry=registry, clusterwide=True, standalone=True, stop_flag=stop))  # noqa: E731
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_kopf(seamark: Cluster) -> None:
    kopf = pytest.importorskip("kopf")
    kubernetes = pytest.importorskip("kubernetes")
    registry = kopf.OperatorRegistry()
    seen: list[Any] = []

    @kopf.on.login(registry=registry)
    def login(**arguments: Any) -> Any:
        return kopf.login_with_kubeconfig(**arguments)

    @kopf.index("shops", id="sizes", registry=registry)
    def sizes(name: str, spec: Any, **_: Any) -> Any:
        return {name: spec["size"]}

    @kopf.on.create("shops", registry=registry)
    def create(name: str, namespace: str, spec: Any, patch: Any, sizes: Any, **_: Any) -> None:
        child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-stock"}}
        kopf.adopt(child)
        with kubernetes.config.new_client_from_config(str(seamark.kubeconfig)) as client:
            kubernetes.client.CoreV1Api(client).create_namespaced_config_map(namespace, child)
        patch.status["phase"] = f"open {next(iter(sizes[name]))}"

    @kopf.on.field("shops", field="spec.size", registry=registry)
    def resized(old: Any, new: Any, **_: Any) -> None:
        seen.append((old, new))

    @kopf.timer("shops", interval=0.05, registry=registry)
    def tick(patch: Any, status: Any, **_: Any) -> None:
        patch.status["ticks"] = status.get("ticks", 0) + 1

    @kopf.on.delete("shops", registry=registry)
    def delete(name: str, **_: Any) -> None:
        seen.append(f"closed {name}")

    with kopf_operator(registry):
        seamark.apply(shop(3))
        assert seamark.until(lambda: seamark.get("shops", "one")["status"]["phase"]) == "open 3"
        owner = seamark.get("configmaps", "one-stock")["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["name"]) == ("Shop", "one")
        assert seamark.get("shops", "one")["metadata"]["finalizers"]
        seamark.until(lambda: seamark.get("shops", "one")["status"]["ticks"] > 2)
        seamark.apply(shop(5))
        seamark.until(lambda: (3, 5) in seen)
        with kubernetes.config.new_client_from_config(str(seamark.kubeconfig)) as client:
            custom = kubernetes.client.CustomObjectsApi(client)
            custom.delete_namespaced_custom_object("example.com", "v1", "default", "shops", "one")
        seamark.until(gone(seamark, "shops", "one"))
        assert "closed one" in seen
        seamark.until(gone(seamark, "configmaps", "one-stock"))  # collected, because its owner is gone


def test_daemons_and_updates_of_kopf(seamark: Cluster) -> None:
    kopf = pytest.importorskip("kopf")
    registry = kopf.OperatorRegistry()
    seen: list[Any] = []

    @kopf.on.login(registry=registry)
    def login(**arguments: Any) -> Any:
        return kopf.login_with_kubeconfig(**arguments)

    @kopf.daemon("shops", registry=registry, cancellation_timeout=1)
    async def attend(stopped: Any, name: str, **_: Any) -> None:
        seen.append(f"attending {name}")
        await stopped.wait()
        seen.append(f"left {name}")

    @kopf.on.update("shops", registry=registry)
    def update(diff: Any, patch: Any, **_: Any) -> None:
        patch.status["changed"] = [list(each.field) for each in diff]

    @kopf.on.event("shops", registry=registry)
    def event(type: str | None, **_: Any) -> None:
        seen.append(type)

    with kopf_operator(registry):
        seamark.apply(shop(3))
        seamark.until(lambda: "attending one" in seen)
        # kopf tells updates from the state that it has kept in an annotation.
        seamark.until(lambda: "kopf.zalando.org/last-handled-configuration" in annotations(seamark))
        seamark.apply(shop(5))
        assert seamark.until(lambda: seamark.get("shops", "one")["status"]["changed"]) == [["spec", "size"]]
        run(seamark, lambda shops: shops.delete_namespaced_custom_object(*WHERE, "one"))
        seamark.until(gone(seamark, "shops", "one"))
        seamark.until(lambda: "DELETED" in seen)
        assert "left one" in seen


def annotations(seamark: Cluster) -> dict[str, str]:
    found: dict[str, str] = seamark.get("shops", "one")["metadata"]["annotations"]
    return found


OPERATOR = """
import kopf

@kopf.on.login()
def login(**arguments):
    return kopf.login_with_kubeconfig(**arguments)

@kopf.on.create("shops")
def create(spec, patch, **_):
    patch.status["phase"] = f"open {spec['size']}"
"""


def test_the_runner_of_kopf(seamark: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kopf")
    from kopf.testing import KopfRunner

    monkeypatch.setattr("sys.path", [*sys.path])  # kopf adds the folder, whose file has the name of Python's own
    (tmp_path / "operator.py").write_text(OPERATOR)
    with KopfRunner(["run", "-A", "--standalone", str(tmp_path / "operator.py")]) as runner:
        seamark.apply(shop(3))
        assert seamark.until(lambda: seamark.get("shops", "one")["status"]["phase"]) == "open 3"
    assert (runner.exit_code, runner.exception) == (0, None)


def test_admission_handlers_of_kopf(seamark: Cluster) -> None:
    kopf = pytest.importorskip("kopf")
    kubernetes = pytest.importorskip("kubernetes")
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    def login(**arguments: Any) -> Any:
        return kopf.login_with_kubeconfig(**arguments)

    @kopf.on.startup(registry=registry)
    def settle(settings: Any, **_: Any) -> None:
        certificate, key = seamark.certificate
        settings.admission.server = kopf.WebhookServer(
            addr="127.0.0.1", certfile=certificate, pkeyfile=key, cafile=seamark.ca
        )
        settings.admission.managed = "shops.example.com"

    @kopf.on.validate("shops", operations=["CREATE", "UPDATE"], registry=registry)
    def small(spec: Any, warnings: list[str], **_: Any) -> None:
        if spec["size"] > 10:
            raise kopf.AdmissionError("too large for this street", code=422)
        if spec["size"] > 5:
            warnings.append("this is a large shop")

    @kopf.on.mutate("shops", operations=["CREATE"], registry=registry)
    def name_street(patch: Any, userinfo: Any, **_: Any) -> None:
        patch.spec["street"] = f"of {userinfo['username']}"

    with kopf_operator(registry):
        for kind in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
            seamark.until(lambda kind=kind: seamark.get(kind, "shops.example.com")["webhooks"])  # type: ignore[misc]
        made = run(seamark, lambda shops: shops.create_namespaced_custom_object(*WHERE, shop(3)))
        assert made["spec"] == {"size": 3, "street": "of kubernetes-admin"}
        with pytest.raises(kubernetes.client.ApiException) as refused:
            run(seamark, lambda shops: shops.patch_namespaced_custom_object(*WHERE, "one", {"spec": {"size": 11}}))
        assert refused.value.status == 422
        assert "denied the request: too large for this street" in refused.value.body


WHERE = ("example.com", "v1", "default", "shops")


def run(seamark: Cluster, work: Callable[[Any], Any]) -> Any:
    """What the official client's API of custom objects makes of this."""
    kubernetes = pytest.importorskip("kubernetes")
    with kubernetes.config.new_client_from_config(str(seamark.kubeconfig)) as client:
        return work(kubernetes.client.CustomObjectsApi(client))


def test_lightkube(seamark: Cluster) -> None:
    lightkube = pytest.importorskip("lightkube")
    from lightkube.generic_resource import get_generic_resource, load_in_cluster_generic_resources
    from lightkube.models.meta_v1 import ObjectMeta, OwnerReference
    from lightkube.resources.core_v1 import ConfigMap
    from lightkube.types import PatchType

    config = lightkube.KubeConfig.from_file(seamark.kubeconfig)
    client = lightkube.Client(config=config, field_manager="shops")
    load_in_cluster_generic_resources(client)
    shops = get_generic_resource("example.com/v1", "Shop")
    seamark.apply(shop(3))
    for change, found in client.watch(shops):  # one round of an operator
        owner = OwnerReference("example.com/v1", "Shop", found.metadata.name, found.metadata.uid)
        child = ConfigMap(
            metadata=ObjectMeta(name="stock", namespace="default", ownerReferences=[owner]), data={"n": "3"}
        )
        assert change == "ADDED"
        client.apply(child)
        client.apply(child)  # nothing changes the second time
        client.patch(shops.Status, "one", {"status": {"phase": "open"}}, patch_type=PatchType.MERGE)
        break
    assert client.get(shops, "one").status["phase"] == "open"
    client.delete(shops, "one")
    seamark.until(gone(seamark, "configmaps", "stock"))


@pytest.mark.filterwarnings("ignore:Kubernetes version")  # a newer one than this client names
def test_kr8s(seamark: Cluster) -> None:
    kr8s = pytest.importorskip("kr8s")
    from kr8s.objects import new_class

    api = kr8s.api(kubeconfig=str(seamark.kubeconfig))
    shops = new_class(kind="Shop", version="example.com/v1", namespaced=True)
    made = shops({"metadata": {"name": "one", "namespace": "default"}, "spec": {"size": 3}}, api=api)
    made.create()
    change, found = next(iter(api.watch("shops.example.com", namespace="default")))
    assert (change, found.spec.size) == ("ADDED", 3)
    ready = {"type": "Ready", "status": "True"}
    made.patch({"status": {"conditions": [ready]}}, subresource="status")
    made.wait("condition=Ready")
    made.delete()
    made.wait("delete")
