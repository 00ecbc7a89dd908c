"""Views: HorizontalPodAutoscaler (autoscaling/v2), Scale, and measurements of the three metrics APIs."""

from __future__ import annotations

import msgspec

from seamark.errors import Object
from seamark.kinds.resource import Resource
from seamark.rules.objects.metadata import ObjectView, View

POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")


class Target(View, frozen=True):
    """The workload that is scaled."""

    kind: str = ""
    name: str = ""
    api_version: str = ""


class Policy(View, frozen=True):
    """At most so many Pods, or percent of them, more or fewer in a period."""

    type: str = ""
    value: int = 0
    period_seconds: int = 0


class Direction(View, frozen=True):
    """How fast the number may grow, or shrink."""

    policies: tuple[Policy, ...] = ()
    select_policy: str = "Max"
    stabilization_window_seconds: int | None = None
    tolerance: str | None = None


class Behaviour(View, frozen=True):
    """The API server fills in both directions, if the autoscaler says anything about its behaviour."""

    scale_up: Direction = Direction()
    scale_down: Direction = Direction()


class AutoscalerSpec(View, frozen=True):
    scale_target_ref: Target = Target()
    min_replicas: int = 1
    max_replicas: int = 0
    metrics: tuple[Object, ...] = ()
    behavior: Behaviour | None = None


class Autoscaler(ObjectView, frozen=True):
    """``status`` is kept as it is, because it is written back."""

    spec: AutoscalerSpec = AutoscalerSpec()
    status: Object = msgspec.field(default_factory=dict)


class ContainerUsage(View, frozen=True):
    name: str = ""
    usage: dict[str, str] = msgspec.field(default_factory=dict)


class PodMetrics(ObjectView, frozen=True):
    """What the containers of the Pod of the same name used, on average of a ``window`` that ended at ``timestamp``."""

    timestamp: str | None = None
    window: str = "0s"
    containers: tuple[ContainerUsage, ...] = ()


class MetricValue(View, frozen=True):
    """The value of a custom metric, of one object, or of an external one."""

    value: str
    described_object: dict[str, str] = msgspec.field(default_factory=dict)
    timestamp: str | None = None
    window_seconds: int | None = None
