"""HorizontalPodAutoscalers that follow metrics of aggregated servers: of Pods, of objects, and from outside."""

import contextlib

import pytest
from aiohttp import web
from own_cluster import own_cluster
from scaled_pods import Scaled
from tests.api.aggregation.keeping_server import KeepingServer

from seamark.access.informers import Informers
from seamark.api.aggregation.front_proxy import FrontProxy
from seamark.controllers.autoscaling.autoscaler_controller import NAME, AutoscalerController
from seamark.kinds.resource import Resource
from seamark.kinds.values import times
from seamark.runtime.manager import Manager

CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default"
SERVICE = {"apiVersion": "v1", "kind": "Service", "name": "web"}


class MetricsServer(KeepingServer):
    """Answers with the values of :attr:`metrics`, by path: for each object's name, a value."""

    def __init__(self, front_proxy, directory):
        groups = [Resource(f"{word}.metrics.k8s.io", version, "anything", "MetricValue") for word, version in APIS]
        super().__init__(front_proxy, directory, *groups)
        self.metrics = {}
        self.now = ""

    async def _answer(self, request):
        if (values := self.metrics.get(request.path)) is None:
            return await super()._answer(request)
        self.requests.append(request)
        items = [
            {"describedObject": {"name": name}, "value": value, "timestamp": self.now} for name, value in values.items()
        ]
        return web.json_response({"kind": "MetricValueList", "metadata": {}, "items": items})


APIS = [("custom", "v1beta2"), ("external", "v1beta1")]


@pytest.fixture
async def here(tmp_path):
    front_proxy = FrontProxy(tmp_path / "front")
    front_proxy.prepare()
    server = MetricsServer(front_proxy, tmp_path / "extension")
    async with own_cluster(front_proxy=front_proxy) as own, server.running(), contextlib.AsyncExitStack() as stack:
        manager = Manager(Informers(own.api.cluster("informers")), clock=own.clock)
        manager.add(AutoscalerController(manager, own.api.cluster(NAME), own.api.kinds))
        await stack.enter_async_context(own.managed(manager))

        async def available():
            backends = own.api.aggregation.backends.values()
            return sum(backend.available and "metrics" in backend.group for backend in backends) == len(APIS)

        await server.register(own.cluster)
        await own.until(available)
        scaled = Scaled(own)
        scaled.server, server.now = server, times.text(own.clock.time())
        await scaled.deployment(2)
        for name in ("p", "q"):
            await scaled.pod(name)
        yield scaled
        await own.api.outgoing.close()


def metric(kind, name, target, **more):
    sort = "AverageValue" if "averageValue" in target else "Value"
    source = {"metric": {"name": name, **more.pop("metric", {})}, "target": {"type": sort, **target}, **more}
    return {"type": kind, kind.lower(): source}


async def test_a_metric_of_the_pods(here):
    here.server.metrics[f"{CUSTOM}/pods/*/hits"] = {"p": "500m", "q": "1500m"}
    await here.autoscaler(metrics=[metric("Pods", "hits", {"averageValue": "500m"})])
    assert await here.replicas() == 4
    assert (await here.status())["currentMetrics"] == [
        {"type": "Pods", "pods": {"metric": {"name": "hits"}, "current": {"averageValue": "1"}}}
    ]
    assert await here.told("SuccessfulRescale") == ["New size: 4; reason: pods metric hits above target"]
    assert here.server.last(f"{CUSTOM}/pods/*/hits").query["labelSelector"] == "app=web"


@pytest.mark.parametrize(
    ("target", "replicas", "current"),
    [
        ({"value": "10"}, 3, {"value": "15"}),
        ({"averageValue": "6"}, 3, {"averageValue": "7500m"}),
        ({"value": "14"}, 2, {"value": "15"}),
    ],
)
async def test_a_metric_of_an_object(here, target, replicas, current):
    here.server.metrics[f"{CUSTOM}/services/web/hits"] = {"web": "15"}
    await here.autoscaler(metrics=[metric("Object", "hits", target, describedObject=SERVICE)])
    assert await here.replicas() == replicas
    [shown] = (await here.status())["currentMetrics"]
    assert shown["object"] == {"metric": {"name": "hits"}, "describedObject": SERVICE, "current": current}


@pytest.mark.parametrize(
    ("about", "path"),
    [
        ({"apiVersion": "v1", "kind": "Namespace", "name": "default"}, "/namespaces/default/metrics/hits"),
        ({"apiVersion": "v1", "kind": "Node", "name": "n"}, "/nodes/n/hits"),
        ({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "/namespaces/default/deployments.apps/d/hits"),
    ],
)
async def test_where_the_metric_of_an_object_is_asked_for(here, about, path):
    here.server.metrics[f"/apis/custom.metrics.k8s.io/v1beta2{path}"] = {"x": "2"}
    await here.autoscaler(metrics=[metric("Object", "hits", {"value": "1"}, describedObject=about)])
    assert await here.replicas() == 4


async def test_the_selector_of_a_metric_is_handed_on(here):
    pods, service = f"{CUSTOM}/pods/*/hits", f"{CUSTOM}/services/web/hits"
    here.server.metrics |= {pods: {"p": "1", "q": "1"}, service: {"web": "15"}}
    needs = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}
    of_pods = metric("Pods", "hits", {"averageValue": "1"}, metric={"selector": needs})
    about = {"metric": {"selector": needs}, "describedObject": SERVICE}
    await here.autoscaler(metrics=[of_pods, metric("Object", "hits", {"value": "10"}, **about)])
    assert await here.replicas() == 3
    asked = here.server.last(pods).query
    assert (asked["labelSelector"], asked["metricLabelSelector"]) == ("app=web", "a=b,c")
    assert here.server.last(service).query["metricLabelSelector"] == "a=b,c"


@pytest.mark.parametrize(
    ("target", "replicas", "current"),
    [({"averageValue": "20"}, 4, {"averageValue": "35"}), ({"value": "35"}, 4, {"value": "70"})],
)
async def test_a_metric_from_outside(here, target, replicas, current):
    here.server.metrics[f"{EXTERNAL}/queue"] = {"a": "30", "b": "40"}
    selector = {"matchLabels": {"queue": "orders"}}
    await here.autoscaler(metrics=[metric("External", "queue", target, metric={"selector": selector})])
    assert await here.replicas() == replicas
    [shown] = (await here.status())["currentMetrics"]
    assert shown["external"]["current"] == current
    assert here.server.last(f"{EXTERNAL}/queue").query["labelSelector"] == "queue=orders"
    [told] = await here.told("SuccessfulRescale")
    words = "map[string]string{queue: orders,},MatchExpressions:[]LabelSelectorRequirement{},}"
    assert (
        told == f"New size: {replicas}; reason: external metric queue(&LabelSelector{{MatchLabels:{words}) above target"
    )


@pytest.mark.parametrize(
    ("asked", "reason", "message"),
    [
        (
            metric("Pods", "none", {"averageValue": "1"}),
            "FailedGetPodsMetric",
            "unable to get metric none: no metrics returned from custom metrics API",
        ),
        (
            metric("Object", "hits", {"value": "1"}, describedObject={"kind": "Odd", "name": "o"}),
            "FailedGetObjectMetric",
            'unable to get metric hits: Odd on default o/no matches for kind "Odd" in version ""',
        ),
    ],
)
async def test_metrics_that_say_nothing(here, asked, reason, message):
    here.server.metrics[f"{CUSTOM}/pods/*/none"] = {}
    await here.autoscaler(metrics=[asked])
    assert await here.told(reason) == [message]
    assert (await here.conditions())["ScalingActive"] == ("False", reason)
