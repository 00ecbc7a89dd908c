"""Python clients on kinds beside Services: create, list, watch, patch and delete, Jobs, tokens and access reviews."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from seamark_process import Seamark
from waiting import until

POD = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]
BACKEND = {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
# One of each kind: group and version, kind, what is in it.
OBJECTS: list[tuple[str, str, dict[str, Any]]] = [
    ("v1", "LimitRange", {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}),
    ("v1", "ResourceQuota", {"spec": {"hard": {"pods": "10"}}}),
    ("v1", "PersistentVolumeClaim", {"spec": CLAIM}),
    ("v1", "PodTemplate", {"template": POD}),
    ("batch/v1", "Job", {"spec": {"template": POD}}),
    ("batch/v1", "CronJob", {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": POD}}}}),
    ("networking.k8s.io/v1", "Ingress", {"spec": BACKEND}),
    ("networking.k8s.io/v1", "NetworkPolicy", {"spec": {"podSelector": {}}}),
    ("policy/v1", "PodDisruptionBudget", {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}),
    ("rbac.authorization.k8s.io/v1", "Role", {"rules": RULES}),
    (
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        {"spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}}},
    ),
    ("coordination.k8s.io/v1", "Lease", {"spec": {"holderIdentity": "me"}}),
]


def manifest(api_version: str, kind: str, content: dict[str, Any], name: str = "one") -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "default"}, **content}


@pytest.fixture(scope="module")
def seamark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seamark]:
    directory = tmp_path_factory.mktemp("clients") / "data"
    running = Seamark(directory, "--dns-port", "0", "--nodes", "1", verb="up")
    yield running
    running.stop()


@pytest.fixture
def official(seamark: Seamark) -> Iterator[Any]:
    from kubernetes import config

    with config.new_client_from_config(str(seamark.kubeconfig)) as client:
        yield client


def test_every_kind_by_the_dynamic_client(official: Any, tmp_path: Path) -> None:
    from kubernetes import dynamic

    # By default what it discovers is kept beside other temporary files, for the next server at the same port.
    cluster = dynamic.DynamicClient(official, cache_file=str(tmp_path / "discovered.json"))
    for api_version, kind, content in OBJECTS:
        resource = cluster.resources.get(api_version=api_version, kind=kind)
        made = resource.create(body=manifest(api_version, kind, content))
        assert (made.kind, made.metadata.name) == (kind, "one")
        assert "one" in [each.metadata.name for each in resource.get(namespace="default").items]
        patch = {"metadata": {"labels": {"a": "b"}}}
        changed = resource.patch(patch, name="one", namespace="default", content_type="application/merge-patch+json")
        assert changed.metadata.labels["a"] == "b"
        applied = resource.server_side_apply(
            body=manifest(api_version, kind, content), namespace="default", field_manager="me", force_conflicts=True
        )
        assert applied.metadata.labels["a"] == "b"
        seen = next(resource.watch(namespace="default", label_selector="a=b"))
        assert (seen["type"], seen["object"].metadata.name) == ("ADDED", "one")
        resource.delete("one", "default", body={"propagationPolicy": "Background"})
    for api_version, kind, _ in OBJECTS:
        resource = cluster.resources.get(api_version=api_version, kind=kind)
        until(lambda resource=resource: not resource.get(namespace="default", label_selector="a=b").items)


def test_the_official_client_runs_a_job(official: Any) -> None:
    from kubernetes import client, watch

    batch = client.BatchV1Api(official)
    template = client.V1PodTemplateSpec(
        spec=client.V1PodSpec(restart_policy="Never", containers=[client.V1Container(name="c", image="busybox")])
    )
    spec = client.V1JobSpec(template=template, completions=2, completion_mode="Indexed", backoff_limit=1)
    batch.create_namespaced_job("default", client.V1Job(metadata=client.V1ObjectMeta(name="official"), spec=spec))
    for event in watch.Watch().stream(
        batch.list_namespaced_job, "default", field_selector="metadata.name=official", resource_version="0"
    ):
        if event["object"].status.completion_time is not None:
            break
    assert batch.read_namespaced_job_status("official", "default").status.succeeded == 2


def test_tokens_and_access_reviews(official: Any, seamark: Seamark) -> None:
    from kubernetes import client

    core, rights = client.CoreV1Api(official), client.RbacAuthorizationV1Api(official)
    core.create_namespaced_service_account("default", {"metadata": {"name": "robot"}})
    asked = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=600))
    token = core.create_namespaced_service_account_token("robot", "default", asked).status.token
    review = client.AuthenticationV1Api(official).create_token_review(
        client.V1TokenReview(spec=client.V1TokenReviewSpec(token=token))
    )
    assert review.status.user.username == "system:serviceaccount:default:robot"
    rights.create_namespaced_role("default", {"metadata": {"name": "robot"}, "rules": RULES})
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "robot"}
    rights.create_namespaced_role_binding(
        "default", {"metadata": {"name": "robot"}, "roleRef": role, "subjects": [subject]}
    )

    configuration = client.Configuration(host=seamark.url)
    configuration.ssl_ca_cert = str(seamark.ca)
    configuration.api_key = {"authorization": f"Bearer {token}"}
    with client.ApiClient(configuration) as robot:
        reviews = client.AuthorizationV1Api(robot)

        def may(verb: str) -> bool:
            about = client.V1ResourceAttributes(namespace="default", verb=verb, resource="pods")
            spec = client.V1SelfSubjectAccessReviewSpec(resource_attributes=about)
            body = client.V1SelfSubjectAccessReview(spec=spec)
            return bool(reviews.create_self_subject_access_review(body).status.allowed)

        until(lambda: may("list"))
        assert not may("delete")
        client.CoreV1Api(robot).list_namespaced_pod("default")
        with pytest.raises(client.ApiException) as refused:
            client.CoreV1Api(robot).list_namespaced_secret("default")
        assert refused.value.status == 403
        about_rules = client.V1SelfSubjectRulesReview(spec=client.V1SelfSubjectRulesReviewSpec(namespace="default"))
        rules = reviews.create_self_subject_rules_review(about_rules).status.resource_rules
        assert any(rule.resources == ["pods"] and rule.verbs == ["get", "list"] for rule in rules)


# kr8s knows Kubernetes up to the version of its own release and says so.
@pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported:UserWarning")
async def test_kr8s_on_every_kind(seamark: Seamark) -> None:
    import kr8s.asyncio
    from kr8s.asyncio.objects import Job, object_from_spec

    api = await kr8s.asyncio.api(kubeconfig=str(seamark.kubeconfig))
    for api_version, kind, content in OBJECTS:
        made = object_from_spec(manifest(api_version, kind, content, "kr8s"), api=api, allow_unknown_type=True)
        made.async_object = True
        await made.create()
        await made.label({"by": "kr8s"})
        name = f"{made.plural}.{api_version.partition('/')[0]}" if "/" in api_version else made.plural
        assert [each.name async for each in api.get(name, namespace="default", label_selector="by=kr8s")] == ["kr8s"]
        if kind != "Job":
            await made.delete()
    job = await Job.get("kr8s", namespace="default", api=api)
    await job.wait("condition=Complete")
    await job.delete(propagation_policy="Background")


async def test_lightkube_on_every_kind(seamark: Seamark) -> None:
    from lightkube import AsyncClient, KubeConfig, codecs
    from lightkube.resources.batch_v1 import Job

    cluster = AsyncClient(KubeConfig.from_file(str(seamark.kubeconfig)), field_manager="lightkube")
    for api_version, kind, content in OBJECTS:
        wanted = codecs.from_dict(manifest(api_version, kind, content, "lightkube"))
        resource = type(wanted)
        made = await cluster.create(wanted)
        assert made.metadata.name == "lightkube"
        changed = await cluster.patch(resource, "lightkube", {"metadata": {"labels": {"by": "lightkube"}}})
        assert changed.metadata.labels["by"] == "lightkube"
        found = [each.metadata.name async for each in cluster.list(resource, labels={"by": "lightkube"})]
        assert found == ["lightkube"]
        async for event, seen in cluster.watch(resource, labels={"by": "lightkube"}):
            assert (event, seen.metadata.name) == ("ADDED", "lightkube")
            break
        if kind != "Job":
            await cluster.delete(resource, "lightkube")
    await cluster.wait(Job, "lightkube", for_conditions=["Complete"])
    await cluster.close()


async def test_kubernetes_asyncio(seamark: Seamark) -> None:
    from kubernetes_asyncio import client, config, watch

    configuration = client.Configuration()
    await config.load_kube_config(str(seamark.kubeconfig), client_configuration=configuration)
    async with client.ApiClient(configuration) as api:
        batch, networking = client.BatchV1Api(api), client.NetworkingV1Api(api)
        await batch.create_namespaced_job("default", manifest("batch/v1", "Job", {"spec": {"template": POD}}, "aio"))
        async with watch.Watch() as following:
            async for event in following.stream(
                batch.list_namespaced_job, "default", field_selector="metadata.name=aio", resource_version="0"
            ):
                if event["object"].status.succeeded:
                    break
        body = manifest("networking.k8s.io/v1", "Ingress", {"spec": BACKEND}, "aio")
        await networking.create_namespaced_ingress("default", body)
        changed = await networking.patch_namespaced_ingress("aio", "default", {"metadata": {"labels": {"a": "b"}}})
        assert changed.metadata.labels == {"a": "b"}
        await networking.delete_namespaced_ingress("aio", "default")
        assert [each.metadata.name for each in (await networking.list_namespaced_ingress("default")).items] == []
