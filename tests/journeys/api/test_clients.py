"""Other people's client libraries: each creates, lists, watches and patches."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from seamark_process import Seamark


@pytest.fixture
def seamark(start: Any) -> Seamark:
    server: Seamark = start("--profile", "plain")
    return server


def test_the_official_python_client(seamark: Seamark) -> None:
    from kubernetes import client, config, watch

    core = client.CoreV1Api(config.new_client_from_config(str(seamark.kubeconfig)))
    seen: list[tuple[str, str]] = []
    version = core.list_namespaced_service("default").metadata.resource_version

    def follow() -> None:
        for event in watch.Watch().stream(
            core.list_namespaced_service, "default", resource_version=version, timeout_seconds=30
        ):
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "DELETED":
                return

    watching = threading.Thread(target=follow)
    watching.start()
    spec = client.V1ServiceSpec(selector={"app": "web"}, ports=[client.V1ServicePort(port=80)])
    made = core.create_namespaced_service(
        "default", client.V1Service(metadata=client.V1ObjectMeta(name="web"), spec=spec)
    )
    assert made.spec.cluster_ip.startswith("10.96.")
    names = [item.metadata.name for item in core.list_namespaced_service("default").items]
    assert names == ["kubernetes", "web"]
    patched = core.patch_namespaced_service("web", "default", {"metadata": {"labels": {"a": "b"}}})
    assert patched.metadata.labels == {"a": "b"}
    patched.spec.ports[0].port = 81
    assert core.replace_namespaced_service("web", "default", patched).spec.ports[0].port == 81
    with pytest.raises(client.ApiException) as refused:
        core.create_namespaced_service("default", client.V1Service(metadata=client.V1ObjectMeta(name="web"), spec=spec))
    assert refused.value.status == 409
    core.delete_namespaced_service("web", "default")
    watching.join()
    assert seen == [("ADDED", "web"), ("MODIFIED", "web"), ("MODIFIED", "web"), ("DELETED", "web")]


# kr8s knows Kubernetes up to the version of its own release and says so.
@pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported:UserWarning")
async def test_kr8s(seamark: Seamark) -> None:
    from kr8s.asyncio import api as connect
    from kr8s.asyncio.objects import ConfigMap

    api = await connect(kubeconfig=str(seamark.kubeconfig))
    made = await ConfigMap(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "cm", "namespace": "default"},
            "data": {"a": "1"},
        },
        api=api,
    )
    await made.create()
    assert [item.name async for item in api.get("configmaps", namespace="default")] == ["cm"]
    await made.patch({"data": {"b": "2"}})
    await made.label({"x": "y"})
    await made.refresh()
    assert made.data == {"a": "1", "b": "2"}
    assert made.labels["x"] == "y"
    async for type, found in api.watch("configmaps", namespace="default"):
        assert (type, found.name) == ("ADDED", "cm")
        break
    await made.delete()
    assert not await made.exists()


async def test_lightkube(seamark: Seamark) -> None:
    from lightkube import AsyncClient, KubeConfig
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap
    from lightkube.types import PatchType

    client = AsyncClient(config=KubeConfig.from_file(str(seamark.kubeconfig)).get(), field_manager="journey")
    made = await client.create(ConfigMap(metadata=ObjectMeta(name="cm", namespace="default"), data={"a": "1"}))
    assert made.metadata is not None
    assert [item.metadata.name async for item in client.list(ConfigMap, namespace="default")] == ["cm"]
    patched = await client.patch(ConfigMap, "cm", {"data": {"b": "2"}}, namespace="default", patch_type=PatchType.MERGE)
    assert patched.data == {"a": "1", "b": "2"}
    applied = await client.apply(
        ConfigMap(metadata=ObjectMeta(name="cm", namespace="default"), data={"c": "3"}), force=True
    )
    assert applied.data == {"a": "1", "b": "2", "c": "3"}
    async for type, found in client.watch(
        ConfigMap, namespace="default", resource_version=made.metadata.resourceVersion
    ):
        assert (type, found.data) == ("MODIFIED", {"a": "1", "b": "2"})
        break
    await client.delete(ConfigMap, "cm", namespace="default")
