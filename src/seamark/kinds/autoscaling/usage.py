"""NodeMetrics and PodMetrics of ``metrics.k8s.io``, which are never stored: a read tells what was measured last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

import msgspec

from seamark.errors import Object
from seamark.kinds.dynamic import DynamicKind
from seamark.kinds.language import shapes
from seamark.kinds.language.shape import Field, ListOf, MapOf, Scalar, Shape, Zero
from seamark.kinds.resource import Resource
from seamark.kinds.values import times

_TEXT = Scalar("string")
_PACKAGE = "io.k8s.metrics.pkg.apis.metrics.v1beta1"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_USAGE = {"usage": Field(MapOf(_TEXT), Zero.FILL, required=True)}


class Used(msgspec.Struct, frozen=True):
    """CPUs, and bytes of memory."""

    cpu: float = 0.0
    memory: int = 0


class Measurement(msgspec.Struct, frozen=True):
    """What containers used in the ``window`` seconds before ``at``, by the uids of their Pods and by name."""

    at: float = 0.0
    window: float = 0.0
    pods: Mapping[str, Mapping[str, Used]] = {}


class UsageKind(DynamicKind):
    """One of the two kinds."""

    verbs = ("get", "list")

    def __init__(self, resource: Resource, own: Mapping[str, Field]) -> None:
        super().__init__(resource, singular=resource.plural.removesuffix("s"), printed=())
        self._own = own

    @cached_property
    def shape(self) -> Shape:
        fields = {
            "apiVersion": Field(_TEXT, Zero.DROP),
            "kind": Field(_TEXT, Zero.DROP),
            "metadata": Field(shapes.of(_META), Zero.FILL),
            "timestamp": Field(_TEXT, Zero.FILL, required=True),
            "window": Field(_TEXT, Zero.FILL, required=True),
            **self._own,
        }
        return Shape(f"{_PACKAGE}.{self.resource.kind}", fields)


_CONTAINER = Shape(f"{_PACKAGE}.ContainerMetrics", {"name": Field(_TEXT, Zero.FILL, required=True), **_USAGE})
NODE_METRICS = UsageKind(Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", namespaced=False), _USAGE)
POD_METRICS = UsageKind(
    Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics"),
    {"containers": Field(ListOf(_CONTAINER), Zero.FILL, required=True)},
)


def pod_metrics(pods: Iterable[Object], measured: Measurement) -> list[Object]:
    """One for each Pod that was measured."""
    return [
        {
            **_about(pod, measured),
            "containers": [{"name": name, "usage": _shown(used)} for name, used in sorted(found.items())],
        }
        for pod in pods
        if (found := measured.pods.get(pod["metadata"]["uid"])) is not None
    ]


def node_metrics(nodes: Iterable[Object], pods: Iterable[Object], measured: Measurement) -> list[Object]:
    """One for each node, which uses what its Pods use; none before something was measured."""
    used: dict[str, list[Used]] = {}
    for pod in pods:
        used.setdefault(pod["spec"].get("nodeName", ""), []).extend(
            measured.pods.get(pod["metadata"]["uid"], {}).values()
        )
    return [
        {**_about(node, measured), "usage": _shown(_sum(used.get(node["metadata"]["name"], ())))}
        for node in nodes
        if measured.at
    ]


def _about(obj: Object, measured: Measurement) -> Object:
    meta = obj["metadata"]
    kept = {field: meta[field] for field in ("name", "namespace", "creationTimestamp", "labels") if field in meta}
    return {"metadata": kept, "timestamp": times.text(measured.at), "window": f"{measured.window:.3f}s"}


def _sum(parts: Iterable[Used]) -> Used:
    found = list(parts)
    return Used(sum(each.cpu for each in found), sum(each.memory for each in found))


def _shown(used: Used) -> Object:
    return {"cpu": f"{round(used.cpu * 1e9)}n", "memory": f"{used.memory // 1024}Ki"}
