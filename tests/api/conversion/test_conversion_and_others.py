"""What meets converted objects: admission, field managers, garbage collection and the deletion of namespaces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from called_servers import Trusted
from converting import V1, V2, Converter, serving, widget
from hooked import Hooks, configuration, patch
from served import Served, served

from seamark.config import ApiSettings, Config
from seamark.daemon import Daemon
from seamark.kinds.resource import CONFIGMAPS, DEFINITIONS, NAMESPACES, Resource

POLICIES = "/apis/admissionregistration.k8s.io/v1"
APPLY = "application/apply-patch+yaml"
ON_V1 = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["widgets"]}
WIDGETS = Resource("example.com", "v1", "widgets", "Widget", namespaced=True)


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Trusted:
    return Trusted(tmp_path_factory.mktemp("authority"))


@pytest_asyncio.fixture
async def converter(trusted: Trusted) -> AsyncIterator[Converter]:
    async with Converter(trusted) as server:
        yield server


@pytest_asyncio.fixture
async def api(converter: Converter) -> AsyncIterator[Served]:
    async with served() as server:
        await serving(server, converter.definition())
        yield server


async def test_a_webhook_for_one_version_sees_writes_in_the_other_converted(
    api: Served, converter: Converter, trusted: Trusted
) -> None:
    async with Hooks(trusted) as hooks:
        hooks.answers["edit"] = patch({"op": "replace", "path": "/spec/size", "value": 6})
        await api.post(*configuration(hooks.hook("edit", rules=[ON_V1]), kind="Mutating"))
        await api.post(*configuration(hooks.hook("look", rules=[ON_V1])))
        made = await api.post(V2, widget("a", "v2", count=5))
        (edit, look) = [asked for _, asked in hooks.reviews]
    assert made["spec"] == {"count": 6}
    assert (edit["object"]["apiVersion"], edit["object"]["spec"]) == ("example.com/v1", {"size": 5})
    assert (look["object"]["spec"], look["requestKind"]["version"]) == ({"size": 6}, "v2")


async def test_a_policy_for_one_version_sees_writes_in_the_other_converted(api: Served) -> None:
    rules = [{**ON_V1, "operations": ["CREATE"]}]
    validations = [{"expression": "object.spec.size < 10", "message": "too large"}]
    spec = {"matchConstraints": {"resourceRules": rules}, "validations": validations}
    await api.post(f"{POLICIES}/validatingadmissionpolicies", {"metadata": {"name": "small"}, "spec": spec})
    binding = {"policyName": "small", "validationActions": ["Deny"]}
    await api.post(f"{POLICIES}/validatingadmissionpolicybindings", {"metadata": {"name": "small"}, "spec": binding})
    assert (await api.post(V2, widget("a", "v2", count=5)))["spec"] == {"count": 5}
    refused = await api.ask("POST", V2, widget("b", "v2", count=50))
    assert (refused.status, "too large" in refused.json["message"]) == (422, True)


async def test_managers_of_one_version_stay_when_another_version_is_applied(api: Served) -> None:
    def managers(obj: Any) -> dict[str, Any]:
        entries = obj["metadata"]["managedFields"]
        return {entry["manager"]: (entry["apiVersion"], entry["fieldsV1"].get("f:spec")) for entry in entries}

    labelled = widget("a", meta={"labels": {"one": "1"}}, size=1)
    await api.done("PATCH", f"{V1}/a?fieldManager=one", labelled, type=APPLY)
    config = widget("a", "v2", meta={"labels": {"two": "2"}}, extra="x")
    both = await api.done("PATCH", f"{V2}/a?fieldManager=two", config, type=APPLY)
    assert both["metadata"]["labels"] == {"one": "1", "two": "2"}
    assert managers(both)["one"] == ("example.com/v1", {"f:size": {}})
    del config["metadata"]["labels"]
    less = await api.done("PATCH", f"{V2}/a?fieldManager=two", config, type=APPLY)
    assert less["metadata"]["labels"] == {"one": "1"}
    assert less["spec"]["count"] == 1


async def test_garbage_and_namespaces_go_although_the_webhook_is_away(tmp_path: Path, converter: Converter) -> None:
    config = Config(data_dir=str(tmp_path / "data"), ephemeral=True, profile="plain", api=ApiSettings(port=0))
    async with Daemon(config, ["controllers"]).running() as daemon:
        cluster = daemon.api.cluster("apiserver")
        served_twice = asyncio.Event()
        known: set[str] = set()

        def came(old: Any, new: Any) -> None:
            if new is not None and new.resource.group == "example.com":
                known.add(new.resource.version)
            if len(known) == 2:
                served_twice.set()

        daemon.api.kinds.on_change(came)
        await cluster.create(DEFINITIONS, converter.definition())
        await served_twice.wait()
        converter.response = {"result": {"status": "Failure", "message": "away"}}
        await cluster.create(NAMESPACES, {"metadata": {"name": "going"}})
        owner = await cluster.create(CONFIGMAPS, {"metadata": {"name": "owner"}}, namespace="default")
        owned = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
        made = await cluster.create(
            WIDGETS, widget("owned", meta={"ownerReferences": [owned]}, size=1), namespace="default"
        )
        await cluster.create(WIDGETS, widget("there", size=1), namespace="going")
        changes = cluster.watch(WIDGETS, since=made["metadata"]["resourceVersion"])
        await cluster.delete(CONFIGMAPS, "owner", namespace="default")
        await cluster.delete(NAMESPACES, "going")
        gone: set[str] = set()
        async for change in changes:
            if change.type == "DELETED":
                gone.add(change.object["metadata"]["name"])
            if len(gone) == 2:
                break
        assert gone == {"owned", "there"}
