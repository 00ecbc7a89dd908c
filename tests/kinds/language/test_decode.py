"""Conforming: what Go's decoding and encoding do to an object, and what Go says when it cannot."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_objects import CORE, KINDS, values

from seamark.kinds.language import shapes
from seamark.kinds.language.decode import DecodeError, conform
from seamark.kinds.language.shape import Shape


def conformed(kind: str, value: Any) -> Any:
    return conform(value, shapes.of(kind if "." in kind else CORE + kind))[0]


def complaint(kind: str, value: Any) -> str:
    with pytest.raises(DecodeError) as caught:
        conformed(kind, value)
    return str(caught.value)


# --- empty values ----------------------------------------------------------------------------------


def test_an_empty_object_has_what_go_always_writes() -> None:
    assert conformed("Service", {}) == {"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}}
    assert conformed("Pod", {"spec": {"containers": [{}]}}) == {
        "metadata": {},
        "spec": {"containers": [{"name": "", "resources": {}}]},
        "status": {},
    }
    assert conformed("io.k8s.api.discovery.v1.EndpointSlice", {"endpoints": [{}], "ports": []}) == {
        "metadata": {},
        "addressType": "",
        "endpoints": [{"addresses": None, "conditions": {}}],
        "ports": None,
    }
    assert conformed("Event", {}) == {
        "metadata": {},
        "involvedObject": {},
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    }


def test_empty_plain_values_go_and_empty_pointers_stay() -> None:
    spec = {
        "type": "",
        "clusterIPs": [],
        "selector": {},
        "publishNotReadyAddresses": False,
        "healthCheckNodePort": 0,
        "internalTrafficPolicy": "",
        "allocateLoadBalancerNodePorts": False,
        "sessionAffinityConfig": {},
        "externalName": None,
        "trafficDistribution": None,
    }
    assert conformed("Service", {"spec": spec})["spec"] == {
        "internalTrafficPolicy": "",
        "allocateLoadBalancerNodePorts": False,
        "sessionAffinityConfig": {},
    }


def test_pointers_without_omitempty_become_null() -> None:
    assert conformed("io.k8s.api.apps.v1.Deployment", {})["spec"]["selector"] is None
    reference = conformed("TypedLocalObjectReference", {"kind": "a", "name": "b"})
    assert reference == {"kind": "a", "name": "b", "apiGroup": None}
    assert conformed("TypedLocalObjectReference", {"apiGroup": ""})["apiGroup"] == ""


def test_null_inside_lists_and_maps_is_the_zero_value() -> None:
    assert conformed("ConfigMap", {"data": {"a": None}})["data"] == {"a": ""}
    spec = conformed("Service", {"spec": {"externalIPs": [None, "x"], "ports": [None]}})["spec"]
    assert spec == {"externalIPs": ["", "x"], "ports": [{"port": 0, "targetPort": 0}]}
    assert conformed("Secret", {"data": {"a": None}})["data"] == {"a": ""}


def test_two_fillings_are_never_one_object() -> None:
    one, two = conformed("Service", {}), conformed("Service", {})
    one["status"]["loadBalancer"]["ingress"] = []
    assert two["status"]["loadBalancer"] == {}


# --- scalars ---------------------------------------------------------------------------------------


def test_scalars_are_brought_into_their_canonical_form() -> None:
    limits = {"cpu": 0.1, "memory": "1024Ki", "storage": 3000, "pods": None}
    container = conformed("Container", {"resources": {"limits": limits}})
    assert container["resources"]["limits"] == {"cpu": "100m", "memory": "1Mi", "storage": "3k", "pods": "0"}
    meta = {"creationTimestamp": "2020-01-02T05:04:05.9+02:00", "deletionTimestamp": "2020-01-02T03:04:05Z"}
    assert conformed("ConfigMap", {"metadata": meta})["metadata"] == {
        "creationTimestamp": "2020-01-02T03:04:05Z",
        "deletionTimestamp": "2020-01-02T03:04:05Z",
    }
    assert conformed("Secret", {"data": {"a": "eA==\n", "b": "e\r\nHl6"}})["data"] == {"a": "eA==", "b": "eHl6"}
    lease = conformed("io.k8s.api.coordination.v1.Lease", {"spec": {"renewTime": "2020-01-02T03:04:05.000600+01:00"}})
    assert lease["spec"]["renewTime"] == "2020-01-02T02:04:05.000600Z"


def test_the_zero_time_is_no_time() -> None:
    meta = {"creationTimestamp": "0001-01-01T00:00:00Z", "deletionTimestamp": "0001-01-01T00:00:00Z"}
    assert conformed("ConfigMap", {"metadata": meta})["metadata"] == {}
    assert conformed("Event", {"firstTimestamp": "0001-01-01T00:00:00Z"})["firstTimestamp"] is None


def test_ports_may_be_numbers_or_names() -> None:
    ports = [{"port": 1, "targetPort": "http"}, {"port": 2, "targetPort": 0}, {"port": 3, "targetPort": ""}]
    assert conformed("Service", {"spec": {"ports": ports}})["spec"]["ports"] == ports


def test_free_form_values_stay() -> None:
    data = {"a": [1, {"b": None}], "c": ""}
    assert conformed("io.k8s.api.apps.v1.ControllerRevision", {"data": data})["data"] == data
    assert conformed("io.k8s.api.apps.v1.ControllerRevision", {})["data"] is None


@pytest.mark.parametrize(
    ("kind", "value", "sentence"),
    [
        (
            "Service",
            {"spec": {"ports": [{"port": "80"}]}},
            "json: cannot unmarshal string into Go struct field ServicePort.spec.ports.port of type int32",
        ),
        (
            "Service",
            {"spec": {"ports": [{"port": 80, "protocol": 1}]}},
            "json: cannot unmarshal number into Go struct field ServicePort.spec.ports.protocol of type v1.Protocol",
        ),
        (
            "Service",
            {"spec": {"ports": {}}},
            "json: cannot unmarshal object into Go struct field ServiceSpec.spec.ports of type []v1.ServicePort",
        ),
        (
            "Service",
            {"spec": {"ports": ["x"]}},
            "json: cannot unmarshal string into Go struct field ServiceSpec.spec.ports of type v1.ServicePort",
        ),
        (
            "Service",
            {"spec": []},
            "json: cannot unmarshal array into Go struct field Service.spec of type v1.ServiceSpec",
        ),
        (
            "Service",
            {"spec": {"ports": [{"port": 2**31}]}},
            "json: cannot unmarshal number 2147483648 into Go struct field ServicePort.spec.ports.port of type int32",
        ),
        (
            "Service",
            {"spec": {"ports": [{"port": 80.5}]}},
            "json: cannot unmarshal number 80.5 into Go struct field ServicePort.spec.ports.port of type int32",
        ),
        (
            "Service",
            {"spec": {"ports": [{"targetPort": True}]}},
            "json: cannot unmarshal bool into Go struct field ServicePort.spec.ports.targetPort of type int32",
        ),
        (
            "Service",
            {"spec": {"ipFamilies": [4]}},
            "json: cannot unmarshal number into Go struct field ServiceSpec.spec.ipFamilies of type v1.IPFamily",
        ),
        (
            "ConfigMap",
            {"metadata": {"labels": {"a": 1}}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            "ConfigMap",
            {"metadata": {"generation": 2**63}},
            f"json: cannot unmarshal number {2**63} into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (
            "ConfigMap",
            {"metadata": {"creationTimestamp": 1}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (
            "ConfigMap",
            {"immutable": "yes"},
            "json: cannot unmarshal string into Go struct field ConfigMap.immutable of type bool",
        ),
        (
            "Secret",
            {"data": {"a": 1}},
            "json: cannot unmarshal number into Go struct field Secret.data of type []uint8",
        ),
        ("Secret", [], "json: cannot unmarshal array into Go value of type v1.Secret"),
        (
            "Container",
            {"resources": {"limits": {"cpu": "x"}}},
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            "ConfigMap",
            {"metadata": {"creationTimestamp": "today"}},
            'parsing time "today" as "2006-01-02T15:04:05Z07:00": cannot parse "today" as "2006"',
        ),
    ],
)
def test_wrong_types_are_refused_in_gos_words(kind: str, value: Any, sentence: str) -> None:
    assert complaint(kind, value) == sentence


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("***", 0),
        ("eA", 0),
        ("eHl6e", 4),
        ("eA=", 3),
        ("eA=x", 2),
        ("eA==x", 4),
        ("=", 0),
        ("eHl=x", 4),
        ("e\nA", 1),
        ("é", 0),
    ],
)
def test_base64_is_refused_where_go_refuses_it(text: str, offset: int) -> None:
    assert complaint("Secret", {"data": {"a": text}}) == f"illegal base64 data at input byte {offset}"


# --- unknown fields --------------------------------------------------------------------------------


def test_unknown_fields_are_dropped_and_named_in_order() -> None:
    value = {
        "bar": 2,
        "spec": {"foo": {"x": 1}, "ports": [{"port": 1}, {"port": 2, "bar": None}], "Type": "x"},
        "metadata": {"labels": {"anything": "goes"}, "clusterName": "x", "ownerReferences": [{"a": 1}]},
    }
    obj, unknown = conform(value, shapes.of(CORE + "Service"))
    assert unknown == [
        "bar",
        "spec.foo",
        "spec.ports[1].bar",
        "spec.Type",
        "metadata.clusterName",
        "metadata.ownerReferences[0].a",
    ]
    assert obj["spec"] == {"ports": [{"port": 1, "targetPort": 0}, {"port": 2, "targetPort": 0}]}


# --- properties ------------------------------------------------------------------------------------


@given(st.sampled_from(KINDS).flatmap(lambda name: values(shapes.of(name)).map(lambda value: (name, value))))
def test_conforming_twice_changes_nothing_and_the_input_is_left_alone(given_: tuple[str, Any]) -> None:
    name, value = given_
    before = json.dumps(value)
    once, unknown = conform(value, shapes.of(name))
    assert unknown == []
    assert json.dumps(value) == before
    assert conform(once, shapes.of(name)) == (once, [])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(KINDS), st.data())
def test_any_json_is_an_object_or_a_decode_error(name: str, data: st.DataObject) -> None:
    shape: Shape = shapes.of(name)
    names = st.sampled_from(sorted(shape.fields)) | st.text(max_size=3)
    value = data.draw(st.dictionaries(names, JSON | values(shape, 1), max_size=4))
    try:
        obj, _ = conform(value, shape)
    except DecodeError:
        return
    assert set(obj) <= set(shape.fields)
