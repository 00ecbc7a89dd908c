"""Admission of Pods by their ServiceAccount: the account, its token in every container, and who is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from served import Served, served

from seamark.api.admission import PLUGINS

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PODS = "/api/v1/namespaces/default/pods"
PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest_asyncio.fixture
async def full() -> AsyncIterator[Served]:
    async with served(plugins=PLUGINS) as server:
        yield server


def pod(name: str = "p", *, annotations: Any = None, containers: Any = None, **spec: Any) -> Any:
    meta = {"name": name, **({"annotations": annotations} if annotations else {})}
    return {"metadata": meta, "spec": {"containers": containers or [{"name": "c", "image": "i"}], **spec}}


def account(name: str = "default", **more: Any) -> Any:
    return {"metadata": {"name": name, **more.pop("metadata", {})}, **more}


def mounted(made: Any) -> list[list[str]]:
    """The names of what each container has at the token's path."""
    containers = [*(made["spec"].get("initContainers") or []), *made["spec"]["containers"]]
    return [
        [mount["name"] for mount in each.get("volumeMounts") or [] if mount["mountPath"] == PATH] for each in containers
    ]


async def test_every_container_gets_a_token(full):
    await full.post(ACCOUNTS, account())
    made = await full.post(PODS, pod(initContainers=[{"name": "i", "image": "i"}]))
    assert made["spec"]["serviceAccountName"] == made["spec"]["serviceAccount"] == "default"
    (volume,) = made["spec"]["volumes"]
    assert mounted(made) == [[volume["name"]], [volume["name"]]]
    assert [next(iter(source)) for source in volume["projected"]["sources"]] == [
        "serviceAccountToken",
        "configMap",
        "downwardAPI",
    ]
    # The token belongs to no field manager, so that an apply does not take it away.
    applied = await full.done(
        "PATCH",
        f"{PODS}/p",
        {"apiVersion": "v1", "kind": "Pod", **pod(initContainers=[{"name": "i", "image": "i"}])},
        type="application/apply-patch+yaml",
        query="fieldManager=me&force=true",
    )
    assert applied["spec"]["volumes"] == [volume]


async def test_an_own_mount_and_an_own_volume_stay(full):
    await full.post(ACCOUNTS, account())
    own = {"name": "kube-api-access-mine", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    made = await full.post(PODS, pod(volumes=[own]))
    assert mounted(made) == [["kube-api-access-mine"]]
    assert len(made["spec"]["volumes"]) == 1
    taken = [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": PATH}]}]
    made = await full.post(PODS, pod("q", containers=taken, volumes=[{"name": "v", "emptyDir": {}}]))
    assert [each["name"] for each in made["spec"]["volumes"]] == ["v"]


@pytest.mark.parametrize(
    ("of_account", "of_pod", "tokens"), [(None, False, 0), (False, None, 0), (False, True, 1), (True, False, 0)]
)
async def test_tokens_can_be_refused(full, of_account, of_pod, tokens):
    await full.post(ACCOUNTS, account(automountServiceAccountToken=of_account))
    made = await full.post(PODS, pod(automountServiceAccountToken=of_pod))
    assert sum(map(len, mounted(made))) == tokens


async def test_a_missing_account(full):
    answer = await full.ask("POST", PODS, pod(serviceAccountName="none"))
    assert (answer.status, answer.json["message"]) == (
        403,
        'pods "p" is forbidden: error looking up service account default/none: serviceaccount "none" not found',
    )


async def test_a_pod_waits_for_the_account_of_a_new_namespace(full):
    creating = asyncio.ensure_future(full.ask("POST", PODS, pod()))
    await asyncio.sleep(0)
    assert not creating.done()
    await full.post(ACCOUNTS, account())
    assert (await creating).status == 201


async def test_a_pod_does_not_wait_for_ever(full, monkeypatch):
    monkeypatch.setattr("seamark.kinds.core.automount.DEFAULT_SECONDS", 0.01)
    assert "serviceaccount" in (await full.ask("POST", PODS, pod())).json["message"]


async def test_nothing_is_waited_for_in_a_namespace_that_goes(full):
    await full.post("/api/v1/namespaces", {"metadata": {"name": "old"}})
    await full.delete("/api/v1/namespaces/old")
    answer = await full.ask("POST", "/api/v1/namespaces/old/pods", pod())
    assert "because it is being terminated" in answer.json["message"]


async def test_pull_secrets(full):
    await full.post(ACCOUNTS, account(imagePullSecrets=[{"name": "registry"}]))
    assert (await full.post(PODS, pod()))["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    made = await full.post(PODS, pod("q", imagePullSecrets=[{"name": "own"}]))
    assert made["spec"]["imagePullSecrets"] == [{"name": "own"}]


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({}, ""),
        ({"serviceAccountName": "x"}, "a mirror pod may not reference service accounts"),
        ({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}, "a mirror pod may not reference secrets"),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
            "a mirror pod may not use ServiceAccountToken volume projections",
        ),
    ],
)
async def test_mirror_pods_stay_as_they_are(full, spec, sentence):
    mirrored = pod(annotations={"kubernetes.io/config.mirror": "x"}, nodeName="node-a", **spec)
    answer = await full.ask("POST", PODS, mirrored)
    if sentence:
        assert (answer.status, answer.json["message"]) == (403, f'pods "p" is forbidden: {sentence}')
    else:
        assert "serviceAccountName" not in answer.json["spec"]
        assert mounted(answer.json) == [[]]


SECRET_ENV = [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}}}]


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"volumes": [{"name": "v", "secret": {"secretName": "mine"}}]}, ""),
        (
            {"volumes": [{"name": "v", "secret": {"secretName": "other"}}]},
            'volume with secret.secretName="other" is not allowed because service account default does not reference '
            "that secret",
        ),
        (
            {"containers": [{"name": "c", "image": "i", "env": SECRET_ENV}]},
            'container c with envVar E referencing secret.secretName="other" is not allowed because service account '
            "default does not reference that secret",
        ),
        (
            {"imagePullSecrets": [{"name": "other"}]},
            'imagePullSecrets[0].name="other" is not allowed because service account default does not reference that '
            "imagePullSecret",
        ),
    ],
)
async def test_an_account_may_limit_the_secrets_of_its_pods(full, spec, sentence):
    enforced = {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}
    await full.post(ACCOUNTS, account(metadata=enforced, secrets=[{"name": "mine"}]))
    answer = await full.ask("POST", PODS, pod(**spec))
    if sentence:
        assert (answer.status, answer.json["message"]) == (403, f'pods "p" is forbidden: {sentence}')
    else:
        assert answer.status == 201


async def test_without_this_plugin_pods_stay_as_they_are(api):
    made = await api.post(PODS, pod())
    assert "serviceAccountName" not in made["spec"]
    assert "volumes" not in made["spec"]
