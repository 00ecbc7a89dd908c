"""HorizontalPodAutoscaler in both of its versions."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from kind_rules import Recorded, check, recorded_creations
from refusing import change_refusals, made, patched, refusals

from seamark.errors import Object
from seamark.kinds.autoscaling.autoscaler import AUTOSCALER
from seamark.kinds.autoscaling.autoscaler_v1 import AUTOSCALER_V1
from seamark.kinds.autoscaling.metrics import cpu_metric

ANNOTATION = "autoscaling.alpha.kubernetes.io/"


@pytest.mark.parametrize("recorded", recorded_creations("horizontalpodautoscalers"), ids=str)
def test_recorded(recorded: Recorded) -> None:
    check(recorded)


def spec(*metrics: Object, **more: Any) -> Object:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    return {"maxReplicas": 3, "scaleTargetRef": target, "metrics": list(metrics), **more}


def metric(kind: str, field: str, **source: Any) -> Object:
    return {"type": kind, field: source}


OBJECT = {"describedObject": {"kind": "Ingress", "name": "i", "apiVersion": "networking.k8s.io/v1"}}


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({}, ["type: Required value: must specify a metric source type", "type: Unsupported value"]),
        (
            metric("Object", "object", metric={}, target={}, describedObject={}),
            [
                "object.describedObject.kind: Required value",
                "object.describedObject.name: Required value",
                "object.metric.name: Required value: must specify a metric name",
                "object.target.type: Required value: must specify a metric target type",
                'object.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue',
                "object.target.averageValue: Required value: must set either a target value or averageValue",
            ],
        ),
        (
            metric("External", "external", metric={"name": "a/b"}, target={"type": "Value", "value": "-1"}),
            [
                "external.metric.name: Invalid value: \"a/b\": may not contain '/'",
                'external.target.value: Invalid value: "-1": must be positive',
            ],
        ),
        (
            metric(
                "External",
                "external",
                metric={"name": "m"},
                target={"type": "Value", "value": "1", "averageValue": "1"},
            ),
            ["external.target.value: Forbidden: may not set both a target value for metric and a per-pod target"],
        ),
        (
            metric("External", "external", metric={"name": "m"}, target={"type": "Value"}),
            ["external.target.averageValue: Required value: must set either a target value for metric"],
        ),
        (
            metric(
                "Resource", "resource", target={"type": "Utilization", "averageUtilization": 5, "averageValue": "1"}
            ),
            [
                "resource.name: Required value: must specify a resource name",
                "resource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization",
            ],
        ),
        (
            metric("ContainerResource", "containerResource", name="cpu", target={"type": "Utilization"}),
            [
                "containerResource.container: Required value: must specify a container",
                "containerResource.target.averageUtilization: Required value",
            ],
        ),
        (
            metric(
                "ContainerResource", "containerResource", container="A_", target=cpu_metric(1)["resource"]["target"]
            ),
            [
                'containerResource.container: Invalid value: "A_"',
                "containerResource.name: Required value: must specify a resource name",
            ],
        ),
        (
            {
                **cpu_metric(50),
                "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}},
            },
            ["pods: Forbidden: must populate the given metric source only"],
        ),
    ],
)
def test_metrics(given: Object, wrong: list[str]) -> None:
    found = refusals(AUTOSCALER, spec=spec(given))
    assert len(found) == len(wrong), found
    for sentence, start in zip(found, wrong, strict=True):
        assert sentence.startswith(f"spec.metrics[0].{start}"), sentence


def test_behaviour() -> None:
    rules = {
        "stabilizationWindowSeconds": 3601,
        "selectPolicy": "Odd",
        "tolerance": "-1",
        "policies": [
            {"type": "Odd", "value": 0, "periodSeconds": 1801},
            {"type": "Pods", "value": 1, "periodSeconds": 0},
        ],
    }
    at = "spec.behavior.scaleUp"
    assert refusals(AUTOSCALER, spec=spec(behavior={"scaleUp": rules})) == [
        f"{at}.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600",
        f'{at}.selectPolicy: Unsupported value: "Odd": supported values: "Disabled", "Max", "Min"',
        f'{at}.policies[0].type: Unsupported value: "Odd": supported values: "Percent", "Pods"',
        f"{at}.policies[0].value: Invalid value: 0: must be greater than zero",
        f"{at}.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
        f"{at}.policies[1].periodSeconds: Invalid value: 0: must be greater than zero",
        f'{at}.tolerance: Invalid value: "-1": must be greater or equal to zero',
    ]
    empty = {"stabilizationWindowSeconds": -1}
    assert refusals(AUTOSCALER, spec=spec(behavior={"scaleDown": empty})) == [
        "spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero"
    ]


def test_what_is_scaled() -> None:
    for target, wrong in (
        ({"kind": "ReplicationController", "name": "r", "apiVersion": "v1"}, []),
        ({"kind": "Pot", "name": "r", "apiVersion": "v1"}, ['Invalid value: "v1": apiVersion must specify API group']),
        (
            {"kind": "Pot", "name": "r", "apiVersion": "a/b/c"},
            ['Invalid value: "a/b/c": unexpected GroupVersion string'],
        ),
        ({"kind": "Pot", "name": "r", "apiVersion": "A_/v1"}, ['Invalid value: "A_/v1": a lowercase RFC 1123']),
    ):
        if wrong:
            (found,) = refusals(AUTOSCALER, spec=spec(scaleTargetRef=target))
            assert found.startswith(f"spec.scaleTargetRef.apiVersion: {wrong[0]}")
        else:
            assert made(AUTOSCALER, spec=spec(scaleTargetRef=target))
    old = made(AUTOSCALER, spec=spec())
    del old["spec"]["scaleTargetRef"]["apiVersion"]
    assert patched(AUTOSCALER, old, {"spec": {"maxReplicas": 4}})["metadata"]["generation"] == 2


def test_limits() -> None:
    assert refusals(AUTOSCALER, spec=spec(cpu_metric(1), maxReplicas=-1, minReplicas=-1)) == [
        "spec.minReplicas: Invalid value: -1: must be greater than or equal to 0",
        "spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1",
    ]
    old = made(AUTOSCALER, spec=spec())
    assert change_refusals(AUTOSCALER, old, {"status": {"desiredReplicas": -1}}, "status") == [
        "status.desiredReplicas: Invalid value: -1: must be greater than or equal to 0"
    ]


EVERY = (
    metric("Pods", "pods", metric={"name": "m"}, target={"type": "AverageValue", "averageValue": "10"}),
    metric("Object", "object", **OBJECT, metric={"name": "m"}, target={"type": "Value", "value": "1"}),
    metric("External", "external", metric={"name": "m"}, target={"type": "AverageValue", "averageValue": "1"}),
    metric("Resource", "resource", name="memory", target={"type": "AverageValue", "averageValue": "1Mi"}),
    metric(
        "ContainerResource",
        "containerResource",
        name="cpu",
        container="c",
        target={"type": "Utilization", "averageUtilization": 5},
    ),
)


@pytest.mark.parametrize("given", EVERY, ids=lambda given: given["type"])
def test_every_metric_survives_the_older_version(given: Object) -> None:
    stored = made(AUTOSCALER, spec=spec(given, cpu_metric(60), behavior={"scaleUp": {"stabilizationWindowSeconds": 5}}))
    shown = AUTOSCALER_V1.from_stored(stored)
    assert shown["spec"]["targetCPUUtilizationPercentage"] == 60
    back = AUTOSCALER_V1.to_stored(shown)
    assert back["spec"] == stored["spec"]
    assert "annotations" not in back["metadata"]


def test_measurements_survive_the_older_version() -> None:
    stored = made(AUTOSCALER, spec=spec(cpu_metric(60)))
    current = {"averageUtilization": 40, "averageValue": "100m"}
    condition = {"type": "AbleToScale", "status": "True", "lastTransitionTime": None}
    stored["status"] = {
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": current}}],
        "conditions": [condition],
    }
    shown = AUTOSCALER_V1.from_stored(stored)
    assert shown["status"]["currentCPUUtilizationPercentage"] == 40
    assert msgspec.json.decode(shown["metadata"]["annotations"][f"{ANNOTATION}current-metrics"]) == [
        {
            "type": "Resource",
            "resource": {"name": "cpu", "currentAverageUtilization": 40, "currentAverageValue": "100m"},
        }
    ]
    assert AUTOSCALER_V1.to_stored(shown)["status"] == stored["status"]
    assert AUTOSCALER_V1.row(shown, 0.0)[2] == "cpu: 40%/60%"


def test_an_unreadable_annotation_means_nothing() -> None:
    old = made(
        AUTOSCALER_V1,
        metadata={"annotations": {f"{ANNOTATION}metrics": "{", "a": "b"}},
        spec={key: value for key, value in spec().items() if key != "metrics"},
    )
    assert AUTOSCALER_V1.to_stored(old)["spec"]["metrics"] == [cpu_metric(80)]
    assert AUTOSCALER_V1.to_stored(old)["metadata"]["annotations"] == {"a": "b"}


def test_the_older_version_has_the_same_rules() -> None:
    old = made(AUTOSCALER_V1, spec={key: value for key, value in spec().items() if key != "metrics"})
    assert change_refusals(AUTOSCALER_V1, old, {"spec": {"targetCPUUtilizationPercentage": 0}}) == [
        "spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0"
    ]
    assert change_refusals(AUTOSCALER_V1, old, {"status": {"currentReplicas": -1}}, "status") == [
        "status.currentReplicas: Invalid value: -1: must be greater than or equal to 0"
    ]


def test_targets_in_tables() -> None:
    def cell(given: Object, *measured: Object) -> Any:
        obj = made(AUTOSCALER, spec=spec(given))
        obj["status"]["currentMetrics"] = list(measured)
        return AUTOSCALER.row(obj, 0.0)[2]

    assert cell(EVERY[0]) == "<unknown>/10"
    assert cell(EVERY[1], {"object": {"current": {"value": "3"}}}) == "3/1"
    assert cell(EVERY[2]) == "<unknown>/1 (avg)"
    assert cell(EVERY[3]) == "memory: <unknown>/1Mi"
    assert cell(EVERY[4], {"containerResource": {"current": {"averageUtilization": 7}}}) == "cpu: 7%/5%"
    bare = made(AUTOSCALER, spec=spec())
    bare["spec"]["metrics"] = []
    assert AUTOSCALER.row(bare, 0.0)[2] == "<none>"
    bare["spec"]["metrics"] = [{"type": "Odd"}]
    assert AUTOSCALER.row(bare, 0.0)[2] == "<unknown type>"
