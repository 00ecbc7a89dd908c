"""A Deployment whose Pods a test makes and measures, and its autoscaler."""

import contextlib

from seamark.controllers.autoscaling.autoscaler import POD_METRICS
from seamark.kinds.dynamic import DynamicKind
from seamark.kinds.language import shapes
from seamark.kinds.resource import AUTOSCALERS, DEPLOYMENTS, EVENTS, PODS
from seamark.kinds.values import times

LABELS = {"app": "web"}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
METRICS = "io.k8s.metrics.v1beta1.PodMetrics"


def metrics_kind():
    facts = {
        METRICS: {
            "apiVersion": "string drop",
            "kind": "string drop",
            "metadata": "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta fill",
            "timestamp": "string drop",
            "window": "string drop",
            "containers": "any drop",
        }
    }
    return DynamicKind(POD_METRICS, shapes.Shapes(facts, shapes.load())[METRICS])


class Scaled:
    """A Deployment whose Pods a test makes and measures, and its autoscaler."""

    def __init__(self, own):
        self.own, self.cluster = own, own.cluster

    async def deployment(self, replicas):
        template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
        await self.cluster.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec}, namespace="default")
        await self.cluster.patch(
            DEPLOYMENTS, "web", {"status": {"replicas": replicas}}, namespace="default", subresource="status"
        )

    async def pod(self, name, *, used=None):
        long_ago = times.text(self.own.clock.time() - 3600)
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        pod = {"metadata": {"name": name, "labels": LABELS}, "spec": {"nodeName": "n", "containers": [container]}}
        await self.cluster.create(PODS, pod, namespace="default")
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": long_ago}
        status = {"phase": "Running", "startTime": long_ago, "conditions": [ready]}
        await self.cluster.patch(PODS, name, {"status": status}, namespace="default", subresource="status")
        if used is not None:
            await self.measure(name, used)

    async def measure(self, name, used):
        measured = {
            "apiVersion": POD_METRICS.api_version,
            "kind": POD_METRICS.kind,
            "metadata": {"name": name, "labels": LABELS},
            "timestamp": times.text(self.own.clock.time()),
            "window": "30s",
            "containers": [{"name": "c", "usage": {"cpu": used, "memory": "100Mi"}}],
        }
        with contextlib.suppress(LookupError):
            if await self.own.find(POD_METRICS, name, "default"):
                await self.cluster.delete(POD_METRICS, name, namespace="default")
        await self.cluster.create(POD_METRICS, measured, namespace="default")

    async def autoscaler(self, *, metrics=(CPU,), most=10, target="web", kind="Deployment", name="web", **spec):
        ref = {"apiVersion": "apps/v1", "kind": kind, "name": target}
        body = {"scaleTargetRef": ref, "maxReplicas": most, "metrics": list(metrics), **spec}
        meta = {"name": name, "labels": LABELS, "annotations": {"a": "b"}}
        await self.cluster.create(AUTOSCALERS, {"metadata": meta, "spec": body}, namespace="default")
        await self.own.quiet()
        written = await self.cluster.get(AUTOSCALERS, name, namespace="default")
        assert {key: written["metadata"][key] for key in meta} == meta, "its status is all that is written"
        assert written["status"]["conditions"]

    async def after(self, seconds):
        await self.own.clock.advance(seconds, self.own.quiet)

    async def replicas(self):
        return (await self.cluster.get(DEPLOYMENTS, "web", namespace="default"))["spec"]["replicas"]

    async def status(self, name="web"):
        return (await self.cluster.get(AUTOSCALERS, name, namespace="default"))["status"]

    async def conditions(self, name="web"):
        return {c["type"]: (c["status"], c["reason"]) for c in (await self.status(name)).get("conditions") or ()}

    async def told(self, reason):
        events = (await self.cluster.list(EVENTS)).items
        return [event["message"] for event in events if event["reason"] == reason]
