"""What meets converted objects: admission, field managers, garbage collection and the deletion of namespaces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio
from called_servers import Trusted, endpoint_slice, service
from converting import SIZE, V1, V2, Converter, changed_storage, serving, widget
from hooked import Hooks, configuration, patch
from served import Served, served

from free_ports import reachable_address
from seamark.config import ApiSettings, Config
from seamark.daemon import Daemon
from seamark.kinds.resource import CONFIGMAPS, DEFINITIONS, NAMESPACES, Resource

POLICIES = "/apis/admissionregistration.k8s.io/v1"
APPLY = "application/apply-patch+yaml"
ON_V1 = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["widgets"]}
WIDGETS = Resource("example.com", "v1", "widgets", "Widget", namespaced=True)


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


async def test_a_webhook_edits_objects_whose_stored_version_changed_without_conversion(trusted: Trusted) -> None:
    async with Hooks(trusted) as hooks, Converter(trusted) as converter, served() as api:
        made = converter.definition()
        made["spec"]["conversion"] = {"strategy": "None"}
        for version in made["spec"]["versions"]:
            version["schema"]["openAPIV3Schema"]["properties"]["spec"] = SIZE
        await serving(api, made)
        hooks.answers["edit"] = patch(
            {"op": "add", "path": "/spec/size", "value": 7}, {"op": "add", "path": "/spec/unknown", "value": "pruned"}
        )
        await api.post(*configuration(hooks.hook("edit", rules=[ON_V1]), kind="Mutating"))
        first = await api.post(V1, widget("a", size=1))
        await changed_storage(api, "v2")
        again = await api.put(f"{V1}/a", await api.get(f"{V1}/a"))
        assert (first["spec"], again["spec"]) == ({"size": 7}, {"size": 7})
        # It was written although it is the same: now it is stored in the other version, which no client sees.
        assert again["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
        watch = await api.watch(f"{V1}?watch=1")
        table = await api.get(
            f"{V2}?includeObject=Object", headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        )
        meta = await api.get(
            f"{V1}/a", headers={"accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
        )
        seen = [(await watch.wait_for(1))[0]["object"], table["rows"][0]["object"], meta]
        assert all("storedVersion" not in each["metadata"] for each in seen)
        assert (await api.put(f"{V2}/a", await api.get(f"{V2}/a")))["metadata"] == again["metadata"]


async def test_a_webhook_behind_a_service_converts_whole_objects(trusted: Trusted) -> None:
    """As upstream's own test has it: the fields are at the top, kept without a schema, and some objects have none."""

    def moved(obj: dict[str, Any], wanted: str) -> dict[str, Any]:
        obj = {**obj, "apiVersion": wanted}
        if wanted.endswith("/v2") and "hostPort" in obj:
            obj["host"], _, obj["port"] = obj.pop("hostPort").partition(":")
        elif wanted.endswith("/v1") and "host" in obj:
            obj["hostPort"] = f"{obj.pop('host')}:{obj.pop('port')}"
        return obj

    async with Converter(trusted, "0.0.0.0") as converter, served() as api:
        converter.change = moved
        await api.post("/api/v1/namespaces/default/services", service(port=9443))
        await api.post(
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            endpoint_slice(converter.port, address=reachable_address()),
        )
        made = converter.definition()
        for version in made["spec"]["versions"]:
            version["schema"]["openAPIV3Schema"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        where = {"namespace": "default", "name": "hook", "path": "/crdconvert", "port": 9443}
        made["spec"]["conversion"]["webhook"]["clientConfig"] = {"service": where, "caBundle": trusted.bundle}
        await serving(api, made)
        bare = {"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "bare"}}
        assert (await api.post(V2, bare))["metadata"]["name"] == "bare"
        await api.delete(f"{V2}/bare")
        for name, storage in (("one", "v2"), ("two", "v1")):
            instance = {**bare, "apiVersion": "example.com/v1", "metadata": {"name": name}}
            await api.post(V1, {**instance, "hostPort": "localhost:8080"})
            await changed_storage(api, storage)
        for path, expected in ((V1, ("localhost:8080", None, None)), (V2, (None, "localhost", "8080"))):
            items = (await api.get(path))["items"]
            found = {(item.get("hostPort"), item.get("host"), item.get("port")) for item in items}
            assert (len(items), found) == (2, {expected})


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
