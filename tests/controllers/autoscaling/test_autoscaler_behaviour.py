"""HorizontalPodAutoscalers in a cluster, with and without a metrics API."""

import contextlib

import pytest
from own_cluster import own_cluster
from scaled_pods import CPU, LABELS, Scaled, metrics_kind
from tests.api.aggregation.keeping_server import KeepingServer

from seamark.access.informers import Informers
from seamark.api.aggregation.front_proxy import FrontProxy
from seamark.controllers.autoscaling.autoscaler import POD_METRICS
from seamark.controllers.autoscaling.autoscaler_controller import NAME, AutoscalerController
from seamark.kinds.resource import AUTOSCALERS, AUTOSCALERS_V1, DEPLOYMENTS
from seamark.kinds.values import times
from seamark.runtime.manager import Manager


@contextlib.asynccontextmanager
async def scaled(*, metrics=True):
    async with own_cluster() as own:
        if metrics:
            await own.api.add_kind(metrics_kind())
        manager = Manager(Informers(own.api.cluster("informers")), clock=own.clock)
        manager.add(AutoscalerController(manager, own.api.cluster(NAME), own.api.kinds))
        async with own.managed(manager):
            yield Scaled(own)


async def test_without_a_metrics_api_nothing_is_scaled_and_the_reason_is_told():
    async with scaled(metrics=False) as here:
        await here.deployment(2)
        await here.pod("p")
        await here.autoscaler()
        assert await here.replicas() == 2
        assert await here.conditions() == {
            "AbleToScale": ("True", "SucceededGetScale"),
            "ScalingActive": ("False", "FailedGetResourceMetric"),
        }
        lacking = (
            "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from "
            "resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"
        )
        status = await here.status()
        assert status["conditions"][1]["message"] == f"the HPA was unable to compute the replica count: {lacking}"
        assert (status["currentReplicas"], status["desiredReplicas"]) == (2, 0)
        assert await here.told("FailedGetResourceMetric") == [lacking]
        outer = (
            f"invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: {lacking}"
        )
        assert await here.told("FailedComputeMetricsReplicas") == [outer]


async def test_two_autoscalers_of_the_same_pods_leave_them_alone():
    async with scaled() as here:
        await here.deployment(1)
        await here.pod("p", used="500m")
        await here.autoscaler()
        assert (await here.conditions())["ScalingActive"] == ("True", "ValidMetricFound")
        await here.measure("p", "1")
        await here.autoscaler(name="other")
        await here.after(15)
        assert await here.replicas() == 1
        sentence = "pods by selector app=web are controlled by multiple HPAs: [{other default} {web default}]"
        for name in ("other", "web"):
            assert (await here.conditions(name))["ScalingActive"] == ("False", "AmbiguousSelector")
            assert (await here.status(name))["currentMetrics"] is None
        for reason in ("AmbiguousSelector", "FailedComputeMetricsReplicas"):
            assert await here.told(reason) == [sentence] * 2
        await here.cluster.delete(AUTOSCALERS, "other", namespace="default")
        await here.after(15)
        assert await here.replicas() == 2


async def test_a_workload_grows_with_its_use_and_shrinks_when_it_was_low_for_long():
    async with scaled() as here:
        await here.deployment(2)
        for name in ("p", "q"):
            await here.pod(name, used="800m")
        await here.autoscaler()
        assert await here.replicas() == 4
        status = await here.status()
        assert (status["currentReplicas"], status["desiredReplicas"]) == (2, 4)
        assert status["currentMetrics"] == [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "current": {"averageUtilization": 80, "averageValue": "800m"}},
            }
        ]
        assert "lastScaleTime" in status
        assert await here.conditions() == {
            "AbleToScale": ("True", "SucceededRescale"),
            "ScalingActive": ("True", "ValidMetricFound"),
            "ScalingLimited": ("False", "DesiredWithinRange"),
        }
        why = "cpu resource utilization (percentage of request) above target"
        assert await here.told("SuccessfulRescale") == [f"New size: 4; reason: {why}"]
        for name in ("p", "q"):
            await here.measure(name, "100m")
        await here.after(15)
        assert await here.replicas() == 4
        assert (await here.conditions())["AbleToScale"] == ("True", "ScaleDownStabilized")
        await here.after(300)
        assert await here.replicas() == 1
        assert "New size: 1; reason: All metrics below target" in await here.told("SuccessfulRescale")


async def test_the_highest_of_several_metrics_counts_and_one_that_fails_forbids_shrinking():
    memory = {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "50Mi"}},
    }
    custom = {
        "type": "Pods",
        "pods": {"metric": {"name": "hits"}, "target": {"type": "AverageValue", "averageValue": "1"}},
    }
    async with scaled() as here:
        await here.deployment(3)
        for name in ("p", "q", "r"):
            await here.pod(name, used="500m")
        await here.autoscaler(metrics=[CPU, memory, custom])
        assert await here.replicas() == 6
        assert (await here.status())["currentMetrics"][1:] == [
            {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "104857600"}}},
            {"type": ""},
        ]
        [lacking] = await here.told("FailedGetPodsMetric")
        assert lacking.startswith("unable to get metric hits: unable to fetch metrics from custom metrics API")
        await here.cluster.patch(AUTOSCALERS, "web", {"spec": {"metrics": [CPU, custom]}}, namespace="default")
        for name in ("p", "q", "r"):
            await here.measure(name, "1m")
        await here.after(600)
        assert await here.replicas() == 6
        assert (await here.conditions())["ScalingActive"] == ("False", "FailedGetPodsMetric")


async def test_bounds_act_without_metrics_and_zero_replicas_switch_off():
    async with scaled(metrics=False) as here:
        await here.deployment(20)
        await here.autoscaler(most=5, minReplicas=2)
        assert await here.replicas() == 5
        assert await here.told("SuccessfulRescale") == [
            "New size: 5; reason: Current number of replicas above Spec.MaxReplicas"
        ]
        await here.cluster.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 1}}, namespace="default")
        await here.after(15)
        assert await here.replicas() == 2
        await here.cluster.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 0}}, namespace="default")
        await here.after(15)
        assert await here.replicas() == 0
        assert (await here.conditions())["ScalingActive"] == ("False", "ScalingDisabled")


@pytest.mark.parametrize(
    ("target", "kind", "sentence"),
    [
        ("gone", "Deployment", 'deployments.apps "gone" not found'),
        ("web", "Nonsense", 'no matches for kind "Nonsense" in version "apps/v1"'),
    ],
)
async def test_a_target_that_cannot_be_scaled_is_told(target, kind, sentence):
    async with scaled() as here:
        await here.autoscaler(target=target, kind=kind)
        assert await here.conditions() == {"AbleToScale": ("False", "FailedGetScale")}
        [told] = await here.told("FailedGetScale")
        assert told.endswith(sentence)


async def test_the_old_version_is_followed_as_well():
    async with scaled() as here:
        await here.deployment(1)
        await here.pod("p", used="1")
        ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        spec = {"scaleTargetRef": ref, "maxReplicas": 3, "targetCPUUtilizationPercentage": 10}
        await here.cluster.create(AUTOSCALERS_V1, {"metadata": {"name": "web"}, "spec": spec}, namespace="default")
        await here.own.quiet()
        assert await here.replicas() == 3
        assert (await here.conditions())["ScalingLimited"] == ("True", "TooManyReplicas")
        shown = await here.cluster.get(AUTOSCALERS_V1, "web", namespace="default")
        assert shown["status"]["currentCPUUtilizationPercentage"] == 100


@pytest.mark.parametrize(
    ("metric", "reason", "sentence"),
    [
        (
            {
                "type": "Object",
                "object": {
                    "metric": {"name": "hits"},
                    "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "web"},
                    "target": {"type": "Value", "value": "1"},
                },
            },
            "FailedGetObjectMetric",
            "unable to get metric hits: Service on default web/unable to fetch metrics from custom metrics API",
        ),
        (
            {
                "type": "External",
                "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "1"}},
            },
            "FailedGetExternalMetric",
            "unable to get external metric default/queue/nil: unable to fetch metrics from external metrics API",
        ),
        (
            {
                "type": "ContainerResource",
                "containerResource": {
                    "name": "cpu",
                    "container": "other",
                    "target": {"type": "Utilization", "averageUtilization": 50},
                },
            },
            "FailedGetContainerResourceMetric",
            "failed to get cpu utilization: did not receive metrics for targeted pods (pods might be unready)",
        ),
    ],
)
async def test_metrics_that_cannot_be_had_are_told(metric, reason, sentence):
    async with scaled() as here:
        await here.deployment(1)
        await here.pod("p", used="1")
        await here.autoscaler(metrics=[metric])
        [told] = await here.told(reason)
        assert told.startswith(sentence)
        assert (await here.conditions())["ScalingActive"] == ("False", reason)


async def test_one_container_can_be_followed():
    target = {"type": "Utilization", "averageUtilization": 50}
    metric = {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": target}}
    async with scaled() as here:
        await here.deployment(1)
        await here.pod("p", used="1")
        await here.autoscaler(metrics=[metric])
        assert await here.replicas() == 2
        [measured] = (await here.status())["currentMetrics"]
        assert measured["containerResource"]["container"] == "c"


async def test_a_metrics_server_behind_an_apiservice_is_followed(tmp_path):
    front_proxy = FrontProxy(tmp_path / "front")
    front_proxy.prepare()
    server = KeepingServer(front_proxy, tmp_path / "extension", POD_METRICS)
    async with own_cluster(front_proxy=front_proxy) as own, server.running():
        manager = Manager(Informers(own.api.cluster("informers")), clock=own.clock)
        manager.add(AutoscalerController(manager, own.api.cluster(NAME), own.api.kinds))
        async with own.managed(manager):
            here = Scaled(own)

            async def available():
                return any(backend.available for backend in own.api.aggregation.backends.values())

            await server.register(own.cluster)
            await own.until(available)
            await here.deployment(2)
            now = times.text(own.clock.time())
            for name in ("p", "q"):
                await here.pod(name)
                usage = [{"name": "c", "usage": {"cpu": "800m"}}]
                more = {"timestamp": now, "window": "30s", "containers": usage}
                server.put(POD_METRICS, name, "default", labels=LABELS, **more)
            await here.autoscaler()
            assert await here.replicas() == 4
            asked = server.last("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods")
            assert asked.headers["X-Remote-User"] == f"system:{NAME}"
        await own.api.outgoing.close()
