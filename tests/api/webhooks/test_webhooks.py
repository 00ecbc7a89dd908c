"""Webhooks over real sockets, and what their answers do to writes."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from called_servers import Trusted, endpoint_slice, service
from hooked import ON_SECRETS, SECRETS, Hooks, configuration, labelled, patch, secret
from served import Served, served

from free_ports import free_port, reachable_address
from seamark.api.admission import PLUGINS
from seamark.kinds.resource import SECRETS as RESOURCE
from seamark.kinds.wellknown import SIMULATED_ANNOTATION


@pytest_asyncio.fixture
async def hooks(trusted: Trusted) -> AsyncIterator[Hooks]:
    async with Hooks(trusted) as server:
        yield server


async def test_a_webhook_called_again_sees_what_a_later_one_changed(api: Served, hooks: Hooks) -> None:
    hooks.answers["later"] = labelled(hooked="yes")
    again, later = hooks.hook("again", reinvocationPolicy="IfNeeded"), hooks.hook("later")
    await api.post(*configuration(again, later, kind="Mutating"))
    await api.post(SECRETS, secret())
    assert hooks.asked() == ["again", "later", "again"]


async def test_a_webhook_behind_a_service_is_called_at_its_endpoint(
    api: Served, hooks: Hooks, trusted: Trusted
) -> None:
    await api.post("/api/v1/namespaces/default/services", service())
    await api.post(
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        endpoint_slice(hooks.port, address=reachable_address()),
    )
    hooks.answers["x"] = {"allowed": False, "status": {"message": "no"}}
    where = {"service": {"namespace": "default", "name": "hook", "path": "/x"}, "caBundle": trusted.bundle}
    await api.post(*configuration(hooks.hook("x", clientConfig=where)))
    assert (await api.ask("POST", SECRETS, secret())).status == 400


@pytest.fixture(params=["memory", "etcd"])
def url(request: pytest.FixtureRequest) -> str:
    """A new store of either kind."""
    if request.param == "memory":
        return "memory:"
    return f"etcd://{','.join(request.getfixturevalue('etcd').addresses)}/{uuid.uuid4().hex}"


async def test_a_webhook_that_hangs_delays_nobody_else(url: str, hooks: Hooks) -> None:
    """Neither writers of the same object, nor others when there is one seat, nor creators in a namespace with quota."""
    asked, release = asyncio.Event(), asyncio.Event()

    async def hang(exchange: Any) -> dict[str, Any]:
        asked.set()
        await release.wait()
        return {}

    hooks.answers["hang"] = hang
    selector = {"matchLabels": {"hang": "yes"}}
    async with served(url=url, max_in_flight=1) as api:
        quota = {"metadata": {"name": "q"}, "spec": {"hard": {"secrets": "50"}}}
        await api.post("/api/v1/namespaces/default/resourcequotas", quota)
        used = {"status": {"hard": {"secrets": "50"}, "used": {"secrets": "0"}}}
        await api.merge("/api/v1/namespaces/default/resourcequotas/q/status", used)
        await api.post(*configuration(hooks.hook("hang", objectSelector=selector)))
        await api.post(SECRETS, secret("other"))
        waiting = [asyncio.create_task(api.ask("POST", SECRETS, secret("slow", labels={"hang": "yes"})))]
        await asked.wait()
        asked.clear()
        labels = {"metadata": {"labels": {"hang": "yes"}}}
        merge = {"type": "application/merge-patch+json"}
        waiting.append(asyncio.create_task(api.ask("PATCH", f"{SECRETS}/other", labels, **merge)))
        await asked.wait()
        await api.post(SECRETS, secret("quick"))
        await api.merge(f"{SECRETS}/other", {"data": {"k": "eA=="}})
        await api.delete(f"{SECRETS}/quick")
        assert not any(task.done() for task in waiting)
        release.set()
        assert [(await task).status for task in waiting] == [201, 200]
        found = await api.get(f"{SECRETS}/other")
        assert (found["data"], found["metadata"]["labels"]) == ({"k": "eA=="}, {"hang": "yes"})


async def drop(exchange: Any) -> None:
    exchange.drop()


async def garbage(exchange: Any) -> None:
    await exchange.answer(200, b"hello")


@pytest.mark.parametrize("answer", [drop, garbage, {"uid": "other"}])
async def test_a_failure_obeys_the_failure_policy(url: str, hooks: Hooks, answer: Any) -> None:
    hooks.answers["x"] = answer
    path, config = configuration(hooks.hook("x"))
    async with served(url=url) as api:
        made = await api.post(path, config)
        refused = await api.ask("POST", SECRETS, secret())
        assert (refused.status, refused.json["reason"]) == (500, "InternalError")
        assert refused.json["message"].startswith('Internal error occurred: failed calling webhook "x.example.com": ')
        made["webhooks"][0]["failurePolicy"] = "Ignore"
        await api.put(f"{path}/own", made)
        await api.post(SECRETS, secret())
        text = api.metrics.text()
        assert 'apiserver_admission_webhook_fail_open_count{name="x.example.com",type="validating"} 1' in text
        assert 'error_type="calling_webhook_error"' in text


async def test_the_metrics_of_a_webhook_go_with_it(hooks: Hooks) -> None:
    """Names come and go; those of webhooks that are not asked again must not stay for good."""
    hooks.answers["x"] = hooks.answers["y"] = {"allowed": False}
    async with served() as api:
        path, config = configuration(hooks.hook("x"), hooks.hook("y"))
        made = await api.post(path, config)
        for name in "ab":
            assert (await api.ask("POST", SECRETS, secret(name))).status == 400
        assert 'name="x.example.com"' in api.metrics.text()
        made["webhooks"] = made["webhooks"][1:]
        await api.put(f"{path}/own", made)
        assert (await api.ask("POST", SECRETS, secret("c"))).status == 400
        text = api.metrics.text()
        assert 'name="x.example.com"' not in text
        assert 'apiserver_admission_webhook_rejection_count{name="y.example.com"' in text
        await api.delete(f"{path}/own")
        await api.post(SECRETS, secret("d"))
        assert "example.com" not in api.metrics.text()


BEHIND = {"service": {"namespace": "default", "name": "hook", "path": "/x"}}
SIMULATED = {"addresses": ["10.244.0.9"], "nodeName": "n", "targetRef": {"kind": "Pod", "name": "hook-1", "uid": "1"}}


@pytest.mark.parametrize(
    ("where", "endpoints", "sentence"),
    [
        ({"url": "https://127.0.0.1:{port}/x"}, [], "dial tcp 127.0.0.1:{port}: connect: connection refused"),
        (BEHIND, [], 'no endpoints available for service "hook"'),
        (BEHIND, [SIMULATED], "dial tcp 10.244.0.9:{port}: connect: connection refused: "),
    ],
)
async def test_a_webhook_that_is_gone_obeys_the_failure_policy(
    url: str, hooks: Hooks, where: Any, endpoints: Any, sentence: str
) -> None:
    port = free_port()
    client = {"url": where["url"].format(port=port)} if "url" in where else where
    path, config = configuration(hooks.hook("x", clientConfig=client))
    async with served(url=url) as api:
        await api.post("/api/v1/nodes", {"metadata": {"name": "n", "annotations": {SIMULATED_ANNOTATION: "true"}}})
        await api.post("/api/v1/namespaces/default/services", service())
        slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
        await api.post(slices, {**endpoint_slice(port), "endpoints": endpoints})
        made = await api.post(path, config)
        refused = await api.ask("POST", SECRETS, secret())
        assert (refused.status, refused.json["reason"]) == (500, "InternalError")
        assert sentence.format(port=port) in refused.json["message"]
        made["webhooks"][0]["failurePolicy"] = "Ignore"
        await api.put(f"{path}/own", made)
        await api.post(SECRETS, secret())


async def test_a_webhook_that_is_too_slow_is_given_up(api: Served, hooks: Hooks) -> None:
    async def hang(exchange: Any) -> None:
        await asyncio.Event().wait()

    hooks.answers["x"] = hang
    await api.post(*configuration(hooks.hook("x", timeoutSeconds=1)))
    refused = await api.ask("POST", SECRETS, secret())
    assert refused.json["message"].endswith('?timeout=1s": context deadline exceeded')


async def test_writes_of_components_in_this_process_are_admitted(api: Served, hooks: Hooks) -> None:
    hooks.answers["m"] = labelled(hooked="yes")
    await api.post(*configuration(hooks.hook("m"), kind="Mutating"))
    made = await api.api.cluster("tester").create(RESOURCE, secret(), namespace="default")
    assert made["metadata"]["labels"] == {"hooked": "yes"}


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (patch({"op": "remove", "path": "/data/none/x"}), 'doc is missing path: "/data/none/x": missing value'),
        (patch({"op": "test", "path": "/data/k", "value": 1}), "testing value /data/k failed: test failed"),
        (patch({"op": "add", "path": "/data", "value": 1}), "cannot be handled"),
        (patch({"op": "replace", "path": "/kind", "value": "X"}), 'X in version "v1" cannot be handled as a Secret'),
        ({"patchType": "JSONPatch", "patch": "e30="}, "cannot unmarshal object into Go value of type jsonpatch.Patch"),
        ({"patchType": "JSONPatch", "patch": "eA=="}, "invalid patch"),
        ({"patchType": "JSONPatch"}, "webhook returned response.patchType but not response.patch"),
    ],
)  # fmt: skip
async def test_a_patch_that_cannot_be_applied_is_refused(api: Served, hooks: Hooks, answer: Any, sentence: str) -> None:
    hooks.answers["m"] = answer
    await api.post(*configuration(hooks.hook("m"), kind="Mutating"))
    refused = await api.ask("POST", SECRETS, secret())
    assert refused.status == 500
    assert sentence in refused.json["message"]


async def test_a_deletion_cannot_be_edited_but_refused(api: Served, hooks: Hooks) -> None:
    await api.post(SECRETS, secret())
    hooks.answers["m"] = labelled(x="y")
    rule = {**ON_SECRETS, "operations": ["DELETE"]}
    await api.post(*configuration(hooks.hook("m", rules=[rule]), kind="Mutating"))
    refused = await api.ask("DELETE", f"{SECRETS}/a")
    assert "attempted to modify the object, which is not supported for this operation" in refused.json["message"]
    review = hooks.reviews[0][1]
    assert (review["object"], review["oldObject"]["metadata"]["name"]) == (None, "a")
    del hooks.answers["m"]
    await api.delete(f"{SECRETS}/a")


async def test_a_webhook_cannot_move_an_object(api: Served, hooks: Hooks) -> None:
    hooks.answers["m"] = patch({"op": "replace", "path": "/metadata/namespace", "value": "kube-system"})
    await api.post(*configuration(hooks.hook("m"), kind="Mutating"))
    assert (
        "does not match the namespace sent on the request" in (await api.ask("POST", SECRETS, secret())).json["message"]
    )


async def test_documents_posted_to_an_object_are_admitted(api: Served, hooks: Hooks) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await api.post("/api/v1/namespaces/default/pods", pod)
    hooks.answers["x"] = {"allowed": False}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/*"]}
    await api.post(*configuration(hooks.hook("x", rules=[rule])))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    assert (await api.ask("POST", "/api/v1/namespaces/default/pods/p/eviction", eviction)).status == 400
    review = hooks.reviews[0][1]
    assert review["kind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}
    assert (review["resource"]["resource"], review["subResource"], review["name"]) == ("pods", "eviction", "p")


async def test_a_scale_is_shown_and_edited_as_a_scale(api: Served, hooks: Hooks) -> None:
    base = "/apis/apps/v1/namespaces/default/deployments"
    labels = {"matchLabels": {"a": "b"}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await api.post(base, {"metadata": {"name": "d"}, "spec": {"selector": labels, "template": template}})
    hooks.answers["m"] = patch({"op": "replace", "path": "/spec/replicas", "value": 7})
    rule = {"apiGroups": ["apps"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/scale"]}
    await api.post(*configuration(hooks.hook("m", rules=[rule]), kind="Mutating"))
    scaled = await api.merge(f"{base}/d/scale", {"spec": {"replicas": 3}})
    assert scaled["spec"]["replicas"] == 7
    assert hooks.reviews[0][1]["oldObject"]["kind"] == "Scale"
    assert (await api.get(f"{base}/d"))["spec"]["replicas"] == 7


async def test_the_selector_of_namespaces_looks_at_a_namespace_itself(api: Served, hooks: Hooks) -> None:
    hooks.answers["x"] = {"allowed": False}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["namespaces"]}
    selector = {"matchLabels": {"guard": "on"}}
    await api.post(*configuration(hooks.hook("x", rules=[rule], namespaceSelector=selector)))
    await api.post("/api/v1/namespaces", {"metadata": {"name": "free"}})
    guarded = {"metadata": {"name": "guarded", "labels": {"guard": "on"}}}
    assert (await api.ask("POST", "/api/v1/namespaces", guarded)).status == 400
    assert (hooks.reviews[0][1]["name"], hooks.reviews[0][1]["namespace"]) == ("guarded", "guarded")


async def test_an_older_review_version_is_spoken_too(api: Served, hooks: Hooks) -> None:
    hooks.answers["m"] = {**labelled(old="yes"), "patchType": None, "uid": "any"}
    await api.post(*configuration(hooks.hook("m", admissionReviewVersions=["v9", "v1beta1"]), kind="Mutating"))
    assert (await api.post(SECRETS, secret()))["metadata"]["labels"] == {"old": "yes"}


async def test_configurations_take_effect_and_end_with_the_write(api: Served, hooks: Hooks) -> None:
    hooks.answers["x"] = {"allowed": False, "warnings": ["careful"], "status": {"code": 418, "message": "teapot"}}
    path, config = configuration(hooks.hook("x"))
    await api.post(path, config)
    refused = await api.ask("POST", SECRETS, secret())
    assert (refused.status, refused.warnings) == (418, ['299 - "careful"'])
    await api.delete(f"{path}/own")
    await api.post(SECRETS, secret())


async def test_a_connection_is_admitted(api: Served, hooks: Hooks) -> None:
    await api.post("/api/v1/namespaces/default/services", service())
    hooks.answers["x"] = {"allowed": False}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["*/*"]}
    await api.post(*configuration(hooks.hook("x", rules=[rule])))
    assert (await api.ask("GET", "/api/v1/namespaces/default/services/hook/proxy/x")).status == 400
    review = hooks.reviews[0][1]
    assert review["object"] == {"kind": "ServiceProxyOptions", "apiVersion": "v1", "path": "/x"}
    assert review["operation"] == "CONNECT"


async def test_conditions_decide_whether_a_webhook_is_asked(api: Served, hooks: Hooks) -> None:
    hooks.answers["x"] = {"allowed": False}
    texts = ["object.metadata.name != 'free'", "request.userInfo.username == 'admin'"]
    texts.append("authorizer.group('').resource('secrets').namespace('default').check('create').allowed()")
    conditions = [{"name": f"c{i}", "expression": text} for i, text in enumerate(texts)]
    await api.post(*configuration(hooks.hook("x", matchConditions=conditions)))
    await api.post(SECRETS, secret("free"))
    assert (await api.ask("POST", SECRETS, secret("bound"))).status == 400
    await api.api.cluster("tester").create(RESOURCE, secret("own"), namespace="default")


async def test_the_other_steps_look_at_an_edited_pod_again_without_adding_twice(hooks: Hooks) -> None:
    hooks.answers["m"] = labelled(hooked="yes")
    rule = {**ON_SECRETS, "resources": ["pods"]}
    base = "/api/v1/namespaces/default"
    async with served(plugins=PLUGINS) as api:
        await api.post(f"{base}/serviceaccounts", {"metadata": {"name": "default"}})
        item = {"type": "Container", "default": {"cpu": "100m"}}
        await api.post(f"{base}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [item]}})
        pod = {"metadata": {"name": "plain"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        plain = await api.post(f"{base}/pods", pod)
        await api.post(*configuration(hooks.hook("m", rules=[rule]), kind="Mutating"))
        edited = await api.post(f"{base}/pods", {**pod, "metadata": {"name": "edited"}})
        assert edited["metadata"]["labels"] == {"hooked": "yes"}
        for field in ("volumes", "tolerations", "imagePullSecrets"):
            assert len(edited["spec"].get(field, ())) == len(plain["spec"].get(field, ()))
        mounts = [len(each["spec"]["containers"][0]["volumeMounts"]) for each in (plain, edited)]
        assert mounts == [1, 1]
        assert edited["spec"]["containers"][0]["resources"] == plain["spec"]["containers"][0]["resources"]
