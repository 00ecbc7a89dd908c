"""The shapes must agree with what a real control plane encodes: every recorded object conforms to itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from conformance_files import API
from seamark.kinds.language import shapes
from seamark.kinds.language.decode import conform
from seamark.kinds.language.shape import ListOf, MapOf, Scalar, Shape, Zero

CORE = "Namespace Node Pod Service Endpoints Event ConfigMap Secret ServiceAccount ReplicationController Binding"

SHAPES = {
    (f"{group}/v1".lstrip("/"), kind): f"io.k8s.api.{package}.v1.{kind}"
    for group, package, kinds in (
        ("", "core", CORE),
        ("apps", "apps", "Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision"),
        ("autoscaling", "autoscaling", "Scale"),
        ("authentication.k8s.io", "authentication", "TokenReview SelfSubjectReview"),
        (
            "authorization.k8s.io",
            "authorization",
            "SubjectAccessReview SelfSubjectAccessReview LocalSubjectAccessReview SelfSubjectRulesReview",
        ),
        ("coordination.k8s.io", "coordination", "Lease"),
        ("discovery.k8s.io", "discovery", "EndpointSlice"),
        ("events.k8s.io", "events", "Event"),
        ("networking.k8s.io", "networking", "IPAddress ServiceCIDR"),
        ("policy", "policy", "Eviction"),
    )
    for kind in kinds.split()
}


def restored(value: Any) -> Any:
    """The recording with values where it has placeholders of another type."""
    if isinstance(value, dict):
        return {key: restored(item) for key, item in value.items()}
    if isinstance(value, list):
        return [restored(item) for item in value]
    if value == "<time>":
        return "2026-01-02T03:04:05Z"
    if value == "<microtime>":
        return "2026-01-02T03:04:05.000006Z"
    if isinstance(value, str) and re.fullmatch(r"<nodeport-\d+>", value):
        return 30000
    return value


def with_ignored(obj: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """A case that ignores the status has it cut out of its answers."""
    empty = {"Deployment": {}, "Scale": {"replicas": 0}, "StatefulSet": {"replicas": 0, "availableReplicas": 0}}
    return obj | {"status": empty[obj["kind"]]} if "status" in case.get("ignore", ()) and obj["kind"] in empty else obj


def objects(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every whole object in an answer or among watch events, with its shape."""
    if isinstance(value, list):
        for item in value:
            yield from objects(item)
    if not isinstance(value, dict):
        return
    version, kind = str(value.get("apiVersion")), str(value.get("kind"))
    if (version, kind) in SHAPES and "metadata" in value:
        yield SHAPES[version, kind], value
    elif (version, kind.removesuffix("List")) in SHAPES and kind.endswith("List"):
        for item in value.get("items") or ():
            yield SHAPES[version, kind.removesuffix("List")], item
    else:
        for item in value.values():
            yield from objects(item)


def recorded() -> Iterator[Any]:
    # Objects inside of custom resources are kept as they came.
    for file in sorted(file for file in API.glob("*.json") if file.stem != "cr-objects"):
        for case in json.loads(file.read_text())["cases"]:
            found: dict[str, tuple[str, dict[str, Any]]] = {}
            for step in case["steps"]:
                expect = step.get("expect", {})
                if (
                    expect.get("status", 200) < 300
                    and not isinstance(step.get("match"), dict)
                    and not step.get("ignore")
                ):
                    for name, obj in objects(restored([expect.get("body"), expect.get("events")])):
                        found[json.dumps(obj)] = name, with_ignored(obj, case)
            if found:
                yield pytest.param(list(found.values()), id=case["name"])


@pytest.mark.parametrize("answers", list(recorded()))
def test_recorded_objects_conform_to_themselves(answers: list[tuple[str, dict[str, Any]]]) -> None:
    for name, obj in answers:
        before = json.dumps(obj)
        conformed, unknown = conform(obj, shapes.of(name))
        assert conformed == obj
        assert unknown == []
        assert json.dumps(obj) == before


def test_the_recordings_cover_the_kinds_they_should() -> None:
    covered = {name for param in recorded() for name, _ in param.values[0]}
    assert {name for name in SHAPES.values() if ".core.v1." in name} - covered <= {
        "io.k8s.api.core.v1.Binding",
        "io.k8s.api.core.v1.ReplicationController",
    }
    assert "io.k8s.api.discovery.v1.EndpointSlice" in covered
    assert "io.k8s.api.apps.v1.Deployment" in covered


@pytest.mark.parametrize("name", sorted(SHAPES.values()))
def test_every_kind_has_a_shape(name: str) -> None:
    assert {"kind", "apiVersion", "metadata"} <= set(shapes.of(name).fields)


def test_every_shape_resolves_and_every_reference_is_known() -> None:
    everything = shapes.load()
    assert len(everything) == len(list(everything)) > 250
    for name in everything:
        shape = everything[name]
        assert shape.name == name
        for field in shape.fields.values():
            of = field.type
            while isinstance(of, ListOf | MapOf):
                of = of.of
            assert isinstance(of, Scalar) or everything[of.name] is of


def test_an_unknown_shape_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        shapes.of("io.k8s.api.core.v1.Widget")


def field(shape: str, name: str) -> Any:
    return shapes.of(shape).fields[name]


def test_what_merging_needs_is_there() -> None:
    ports = field("io.k8s.api.core.v1.ServiceSpec", "ports")
    assert (ports.type.type, ports.type.keys) == ("map", ("port", "protocol"))
    assert (ports.patch_strategy, ports.merge_key) == ("merge", "port")
    assert isinstance(ports.type.of, Shape)
    assert ports.type.of.fields["protocol"].default == "TCP"
    assert field("io.k8s.api.core.v1.PodSpec", "volumes").patch_strategy == "merge,retainKeys"
    assert field("io.k8s.api.core.v1.ServiceSpec", "selector").type.atomic
    assert field("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "finalizers").type.type == "set"
    assert shapes.of("io.k8s.api.core.v1.ObjectReference").atomic


def test_zero_rules_follow_go() -> None:
    service = "io.k8s.api.core.v1.ServiceSpec"
    assert field(service, "internalTrafficPolicy").zero is Zero.KEEP
    assert field(service, "externalTrafficPolicy").zero is Zero.DROP
    assert field("io.k8s.api.discovery.v1.EndpointSlice", "endpoints").zero is Zero.FILL
    assert field("io.k8s.api.core.v1.TypedLocalObjectReference", "apiGroup").zero is Zero.NULL
