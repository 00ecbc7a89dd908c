"""Pod security over HTTP: Pods that are refused, warnings, the labels of Namespaces, and what the audit log says."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from served import Served, served

from seamark.api.admission import PLAIN, without
from seamark.api.audit.log import AuditLog
from seamark.api.audit.policy import API_VERSION, Policy, Rule
from seamark.api.http.documents import KUBERNETES_MINOR
from seamark.clock import SYSTEM_CLOCK
from seamark.kinds.podsecurity import admission, measures
from seamark.metrics import Registry

PREFIX = "pod-security.kubernetes.io/"
PODS = "/api/v1/namespaces/shop/pods"
SHOP = "/api/v1/namespaces/shop"
GOOD = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
BARE = (
    'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), '
    'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), '
    'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), '
    'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
    '"Localhost")'
)


@pytest_asyncio.fixture
async def api() -> AsyncIterator[Served]:
    async with served() as server:
        yield server


def labels(**levels: str) -> dict[str, str]:
    return {PREFIX + name.replace("_", "-"): level for name, level in levels.items()}


async def namespace(api: Served, name: str = "shop", **levels: str) -> None:
    await api.post("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels(**levels)}})


def pod(name: str = "p", *, context: Any = None, **spec: Any) -> Any:
    container = {"name": "c", "image": "i", **({"securityContext": context} if context else {})}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def warning(text: str) -> str:
    return '299 - "{}"'.format(text.replace('"', '\\"'))


async def test_a_pod_that_violates_what_is_enforced_is_refused(api):
    await namespace(api, enforce="restricted")
    answer = await api.ask("POST", PODS, pod())
    message = f'pods "p" is forbidden: violates PodSecurity "restricted:latest": {BARE}'
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "Forbidden",
        "details": {"name": "p", "kind": "pods"},
        "code": 403,
    }
    assert answer.warnings == []  # the error says it all
    generated = pod()
    generated["metadata"] = {"generateName": "p-"}
    answer = await api.ask("POST", PODS, generated)
    name = answer.json["details"]["name"]
    assert len(name) > len("p-")
    assert answer.json["message"].startswith(f'pods "{name}" is forbidden: violates PodSecurity')
    answer = await api.ask("POST", PODS, pod(context=GOOD))
    assert (answer.status, answer.warnings) == (201, [])


async def test_other_namespaces_and_levels_take_the_pod(api):
    await namespace(api, enforce="baseline", enforce_version="v1.30", warn="privileged")
    await namespace(api, "other")
    for place in ("shop", "other"):
        answer = await api.ask("POST", f"/api/v1/namespaces/{place}/pods", pod())
        assert (answer.status, answer.warnings) == (201, [])
    answer = await api.ask("POST", PODS, pod("host", hostPID=True))
    told = 'violates PodSecurity "baseline:v1.30": host namespaces (hostPID=true)'
    assert answer.json["message"] == f'pods "host" is forbidden: {told}'


async def test_warnings_about_pods_and_workloads(api):
    await namespace(api, enforce="baseline", warn="restricted")
    answer = await api.ask("POST", PODS, pod())
    told = warning(f'would violate PodSecurity "restricted:latest": {BARE}')
    assert (answer.status, answer.warnings) == (201, [told])
    answer = await api.ask("POST", PODS, pod("dry"), query="dryRun=All")
    assert (answer.status, answer.warnings) == (201, [told])


def workloads() -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    finite = copy.deepcopy(template)
    finite["spec"]["restartPolicy"] = "Never"
    chosen = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {
        "/apis/apps/v1/namespaces/shop/daemonsets": {"spec": chosen},
        "/apis/apps/v1/namespaces/shop/deployments": {"spec": chosen},
        "/apis/apps/v1/namespaces/shop/replicasets": {"spec": chosen},
        "/apis/apps/v1/namespaces/shop/statefulsets": {"spec": {**chosen, "serviceName": "s"}},
        "/apis/batch/v1/namespaces/shop/jobs": {"spec": {"template": finite}},
        "/apis/batch/v1/namespaces/shop/cronjobs": {
            "spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": finite}}}
        },
        "/api/v1/namespaces/shop/podtemplates": {"template": template},
        "/api/v1/namespaces/shop/replicationcontrollers": {"spec": {"selector": {"a": "b"}, "template": template}},
    }


@pytest.mark.parametrize("path", workloads())
async def test_a_workload_is_not_refused_but_its_user_is_warned(api, path):
    await namespace(api, enforce="restricted")
    made = {"metadata": {"name": "w"}, **workloads()[path]}
    answer = await api.ask("POST", path, made)
    told = warning(f'would violate PodSecurity "restricted:latest": {BARE}')
    assert (answer.status, answer.warnings) == (201, [told])
    # Any update, too; Pods of the new kind will be as bad.
    answer = await api.ask(
        "PATCH", f"{path}/w", {"metadata": {"labels": {"x": "y"}}}, type="application/merge-patch+json"
    )
    assert (answer.status, answer.warnings) == (200, [told])


async def test_only_what_changes_containers_is_judged_again(api):
    await namespace(api)
    await api.post(PODS, pod())
    await api.merge(SHOP, {"metadata": {"labels": labels(enforce="restricted")}})
    patch = {"type": "application/strategic-merge-patch+json"}
    answer = await api.ask("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}}, **patch)
    assert (answer.status, answer.warnings) == (200, [])
    answer = await api.ask("PATCH", f"{PODS}/p/status", {"status": {"phase": "Running"}}, **patch)
    assert answer.status == 200
    answer = await api.ask("PATCH", f"{PODS}/p", {"spec": {"containers": [{"name": "c", "image": "j"}]}}, **patch)
    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
    assert answer.json["message"].startswith('pods "p" is forbidden: violates PodSecurity "restricted:latest": allow')
    debug = {"spec": {"ephemeralContainers": [{"name": "d", "image": "i"}]}}
    answer = await api.ask("PATCH", f"{PODS}/p/ephemeralcontainers", debug, **patch)
    assert answer.status == 403
    assert 'containers "c", "d" must set' in answer.json["message"]
    answer = await api.ask("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
    assert answer.status == 201


async def test_a_debugging_container_must_comply_like_any_other(api):
    await namespace(api, enforce="restricted")
    await api.post(PODS, pod(context=GOOD))
    path, patch = f"{PODS}/p/ephemeralcontainers", {"type": "application/strategic-merge-patch+json"}
    for context, status in (({}, 403), ({**GOOD, "privileged": True}, 422), (GOOD, 200)):
        debug = {"spec": {"ephemeralContainers": [{"name": "d", "image": "i", "securityContext": context}]}}
        answer = await api.ask("PATCH", path, debug, **patch)
        assert answer.status == status, answer


async def test_labels_that_mean_nothing_are_refused(api):
    made = {"metadata": {"name": "shop", "labels": labels(enforce="strict", warn_version="1.2")}}
    answer = await api.ask("POST", "/api/v1/namespaces", made)
    level = 'Invalid value: "strict": must be one of privileged, baseline, restricted'
    version = 'Invalid value: "1.2": must be "latest" or "v1.x"'
    fields = [f"metadata.labels[{PREFIX}{name}]" for name in ("enforce", "warn-version")]
    assert answer.status == 422
    assert answer.json["message"] == (f'Namespace "shop" is invalid: [{fields[0]}: {level}, {fields[1]}: {version}]')
    assert answer.json["details"] == {
        "name": "shop",
        "kind": "Namespace",
        "causes": [
            {"reason": "FieldValueInvalid", "message": level, "field": fields[0]},
            {"reason": "FieldValueInvalid", "message": version, "field": fields[1]},
        ],
    }
    await namespace(api)
    merge = {"type": "application/merge-patch+json"}
    answer = await api.ask("PATCH", SHOP, {"metadata": {"labels": labels(audit="x")}}, **merge)
    assert answer.status == 422


async def test_labels_that_were_wrong_before_may_stay(tmp_path: Path):
    url = f"sqlite:{tmp_path / 'store'}"
    async with served(url=url, plugins=without(PLAIN, ["PodSecurity"])) as api:
        await namespace(api, enforce="strict")
        await api.post(PODS, pod())
    async with served(url=url) as api:
        merge = {"type": "application/merge-patch+json"}
        answer = await api.ask("PATCH", SHOP, {"metadata": {"labels": {"a": "b"}}}, **merge)
        assert (answer.status, answer.warnings) == (200, [])
        answer = await api.ask("PATCH", SHOP, {"metadata": {"labels": labels(warn="x")}}, **merge)
        assert answer.status == 422
        # What cannot be read is enforced as the strictest level.
        answer = await api.ask("POST", PODS, pod("q"))
        assert 'violates PodSecurity "restricted:latest"' in answer.json["message"]


async def test_a_stricter_level_warns_of_pods_that_violate_it(api, monkeypatch):
    await namespace(api)
    for name in ("b", "a"):
        await api.post(PODS, pod(name, hostPID=True))
    await api.post(PODS, pod("c", context=GOOD))
    await namespace(api, "other")
    await api.post("/api/v1/namespaces/other/pods", pod("o", hostPID=True))
    merge = {"type": "application/merge-patch+json"}

    async def warned(**levels: Any) -> list[str]:
        answer = await api.ask("PATCH", SHOP, {"metadata": {"labels": labels(**levels)}}, **merge)
        assert answer.status == 200
        return answer.warnings

    head = 'existing pods in namespace "shop" violate the new PodSecurity enforce level "{}"'
    rest = ", allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile"
    assert await warned(warn="restricted", audit="restricted") == []
    assert await warned(enforce="baseline") == [
        warning(head.format("baseline:latest")),
        warning("a (and 1 other pod): host namespaces"),
    ]
    assert await warned(enforce="restricted", enforce_version="v1.30") == [
        warning(head.format("restricted:v1.30")),
        warning(f"a (and 1 other pod): host namespaces{rest}"),
    ]
    assert await warned(team="x") == []  # as strict as before
    assert await warned(enforce="baseline") == []  # less strict
    assert await warned(enforce="privileged") == []
    monkeypatch.setattr(admission, "MOST_PODS", 1)
    assert await warned(enforce="baseline", enforce_version="latest") == [
        warning("new PodSecurity enforce level only checked against the first 1 of 3 existing pods"),
        warning(head.format("baseline:latest")),
        warning("a: host namespaces"),
    ]


async def test_the_plugin_can_be_left_out():
    async with served(plugins=without(PLAIN, ["PodSecurity"])) as api:
        await namespace(api, enforce="restricted")
        await api.post(PODS, pod())


async def test_what_the_audit_log_says(tmp_path: Path):
    file = tmp_path / "audit.log"
    rules = (Rule("Metadata", verbs=("create",), omit_stages=("RequestReceived",)),)
    log = AuditLog(file, policy=Policy(API_VERSION, "Policy", rules), clock=SYSTEM_CLOCK, metrics=Registry())

    async def noted(api: Served, path: str, made: Any) -> dict[str, str]:
        await api.ask("POST", path, made)
        last = json.loads(file.read_text().splitlines()[-1])
        return {key: value for key, value in last["annotations"].items() if key.startswith(PREFIX)}

    violated = f'would violate PodSecurity "restricted:v1.38": {BARE}'
    async with served(audit=log) as api:
        assert await noted(api, "/api/v1/namespaces/default/pods", pod()) == {
            f"{PREFIX}enforce-policy": "privileged:latest"
        }
        await namespace(api, enforce="baseline", audit="restricted", audit_version="v1.38")
        for each in (pod(), pod("host", hostPID=True)):
            found = await noted(api, PODS, each)
            assert found.pop(f"{PREFIX}enforce-policy") == "baseline:latest"
            told = found.pop(f"{PREFIX}audit-violations")
            assert told == violated or "host namespaces (hostPID=true), allow" in told
            assert not found
        path = "/api/v1/namespaces/shop/podtemplates"
        made = {"metadata": {"name": "t"}, **workloads()[path]}
        assert await noted(api, path, made) == {f"{PREFIX}audit-violations": violated}


async def test_what_is_counted(api):
    await namespace(api, enforce="baseline", warn="restricted", warn_version="v1.99")
    await api.post(PODS, pod())
    await api.ask("POST", PODS, pod("host", hostPID=True))
    await api.post("/api/v1/namespaces/default/pods", pod())
    path = "/api/v1/namespaces/shop/podtemplates"
    await api.post(path, {"metadata": {"name": "t"}, **workloads()[path]})
    _, _, lines = api.metrics.exposed()["pod_security_evaluations_total"]

    def line(decision: str, level: str, version: str, mode: str, resource: str = "pod") -> str:
        what = f'request_operation="create",resource="{resource}",subresource=""'
        policy = f'policy_level="{level}",policy_version="{version}"'
        return f'pod_security_evaluations_total{{decision="{decision}",{policy},mode="{mode}",{what}}} 1'

    assert sorted(lines) == sorted(
        (
            line("allow", "baseline", "latest", "enforce"),
            line("deny", "baseline", "latest", "enforce"),
            line("allow", "privileged", "latest", "enforce"),
            line("deny", "restricted", "future", "warn"),
            line("deny", "restricted", "future", "warn", "controller"),
        )
    )
    assert str(measures.NEWEST) == KUBERNETES_MINOR
