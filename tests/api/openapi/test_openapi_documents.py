"""OpenAPI documents: complete, consistent, and what was recorded of the real ones."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from described_kinds import KINDS
from replay_paths import lookup

from conformance_files import API
from protobuf_wire import member, members
from seamark import errors
from seamark.api.http.wire.messages import Request, Response
from seamark.api.openapi import documents as openapi
from seamark.api.openapi import field_docs, protobuf_v3
from seamark.kinds.language import shapes

PROTOBUF = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
DESCRIBED = openapi.OpenApi(KINDS)


def ask(path: str, accept: str = "application/json", **headers: str) -> Response | None:
    path, _, query = path.partition("?")
    named = {"accept": accept} | {name.replace("_", "-"): value for name, value in headers.items()}
    return DESCRIBED.answer(Request("GET", path, query, named, b""))


def answered(path: str, **more: str) -> Response:
    response = ask(path, **more)
    assert response is not None
    return response


def document(path: str) -> Any:
    body = answered(path).body
    assert isinstance(body, bytes)
    return msgspec.json.decode(body)


DOCUMENTS = list(document("/openapi/v3")["paths"])


def recorded() -> list[Any]:
    cases = json.loads((API / "discovery.json").read_text())["cases"]
    steps = [step for case in cases for step in case["steps"] if step["path"].startswith("/openapi")]
    return [pytest.param(step, id=step["path"]) for step in steps]


@pytest.mark.parametrize("step", recorded())
def test_documents_are_the_recorded_ones(step: dict[str, Any]) -> None:
    expect = step["expect"]
    response = ask(step["path"])
    if expect["status"] == 404:
        assert response is None
        return
    assert response is not None
    assert response.content_type == expect.get("content_type", "application/json")
    assert isinstance(response.body, bytes)
    for text in expect.get("contains", ()):
        assert text.encode() in response.body
    for path, value in expect.get("paths", {}).items():
        assert lookup(msgspec.json.decode(response.body), path) == value


def test_what_clients_generate_code_from_is_there() -> None:
    """The old watch paths and the documents of discovery; generators of clients look for them."""
    whole = document("/openapi/v2")
    assert {"/api/", "/apis/", "/version/", "/api/v1/", "/apis/apps/", "/apis/apps/v1/"} <= set(whole["paths"])
    watches = {
        "/api/v1/watch/namespaces/{namespace}/pods": ("watchCoreV1NamespacedPodList", "watchlist"),
        "/api/v1/watch/namespaces/{namespace}/pods/{name}": ("watchCoreV1NamespacedPod", "watch"),
        "/api/v1/watch/pods": ("watchCoreV1PodListForAllNamespaces", "watchlist"),
        "/api/v1/watch/nodes": ("watchCoreV1NodeList", "watchlist"),
        "/api/v1/watch/nodes/{name}": ("watchCoreV1Node", "watch"),
    }
    for path, names in watches.items():
        operation = whole["paths"][path]["get"]
        assert (operation["operationId"], operation["x-kubernetes-action"]) == names
    identifiers = [part["operationId"] for part in parts(whole["paths"]) if "operationId" in part]
    assert len(identifiers) == len(set(identifiers))


def parts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from parts(item)
    elif isinstance(value, list):
        for item in value:
            yield from parts(item)


def check_references(whole: Any, root: str, schemas: dict[str, Any]) -> None:
    targets = {part["$ref"] for part in parts(whole) if "$ref" in part}
    assert targets
    assert all(target.startswith(root) for target in targets)
    assert {target.removeprefix(root) for target in targets} <= set(schemas)


@pytest.mark.parametrize("path", DOCUMENTS)
def test_every_reference_leads_somewhere(path: str) -> None:
    whole = document(f"/openapi/v3/{path}")
    check_references(whole, "#/components/schemas/", whole["components"]["schemas"])
    assert all(len(part) == 1 for part in parts(whole) if isinstance(part.get("$ref"), str))  # others would be ignored
    ids = [part["operationId"] for part in parts(whole["paths"]) if "operationId" in part]
    assert len(ids) == len(set(ids)) > 0


def test_every_reference_leads_somewhere_in_v2() -> None:
    whole = document("/openapi/v2")
    check_references(whole, "#/definitions/", whole["definitions"])
    assert {kind.shape.name for kind in KINDS} <= set(whole["definitions"])
    assert not any("oneOf" in part or "allOf" in part or "requestBody" in part for part in parts(whole))


def test_the_operations_clients_look_for() -> None:
    paths = document("/openapi/v3/api/v1")["paths"]
    services = paths["/api/v1/namespaces/{namespace}/services/{name}"]
    assert set(services) == {"get", "put", "patch", "delete", "parameters"}
    patch = services["patch"]
    assert patch["operationId"] == "patchCoreV1NamespacedService"
    assert patch["x-kubernetes-action"] == "patch"
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Service"}
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]
    for method in ("put", "patch"):
        names = {parameter["name"] for parameter in services[method]["parameters"]}
        assert {"fieldValidation", "dryRun", "fieldManager"} <= names
    collection = paths["/api/v1/namespaces/{namespace}/services"]
    assert collection["delete"]["operationId"] == "deleteCoreV1CollectionNamespacedService"
    assert collection["get"]["operationId"] == "listCoreV1NamespacedService"
    assert paths["/api/v1/services"]["get"]["operationId"] == "listCoreV1ServiceForAllNamespaces"
    assert paths["/api/v1/nodes/{name}/status"]["get"]["operationId"] == "readCoreV1NodeStatus"
    eviction = paths["/api/v1/namespaces/{namespace}/pods/{name}/eviction"]["post"]
    assert eviction["x-kubernetes-group-version-kind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}
    assert set(paths["/api/v1/namespaces/{namespace}/bindings"]) == {"post", "parameters"}
    scale = document("/openapi/v3/apis/apps/v1")["paths"][
        "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"
    ]
    assert scale["get"]["responses"]["200"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/io.k8s.api.autoscaling.v1.Scale"
    }


def test_schemas_say_what_the_shapes_know() -> None:
    schemas = document("/openapi/v3/api/v1")["components"]["schemas"]
    port = schemas["io.k8s.api.core.v1.ServicePort"]
    assert port["required"] == ["port"]
    assert port["properties"]["protocol"]["default"] == "TCP"
    assert port["properties"]["targetPort"]["allOf"] == [
        {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.util.intstr.IntOrString"}
    ]
    spec = schemas["io.k8s.api.core.v1.ServiceSpec"]["properties"]
    assert spec["selector"]["x-kubernetes-map-type"] == "atomic"
    assert spec["ports"]["x-kubernetes-patch-strategy"] == "merge"
    assert schemas["io.k8s.api.core.v1.Secret"]["properties"]["data"]["additionalProperties"]["format"] == "byte"
    options = schemas["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"]["x-kubernetes-group-version-kind"]
    assert {"group": "apps", "kind": "DeleteOptions", "version": "v1"} in options


def test_every_field_is_described() -> None:
    missing = []
    for name in shapes.load():
        words = field_docs.describe(shapes.of(name))
        missing += [f"{name}.{field}" for field in shapes.of(name).fields if field not in words.fields]
    assert missing == [], "a field about which Kubernetes says nothing is there with an empty text"
    assert field_docs.describe(shapes.of("io.k8s.api.core.v1.PodSpec")).fields["containers"]


def test_descriptions_are_paragraphs() -> None:
    words = field_docs.describe(shapes.of("io.k8s.api.core.v1.ServicePort"))
    assert words.text == "ServicePort contains information on service's port."
    assert "\n" not in words.fields["nodePort"]
    assert "\n* Un-prefixed protocol names - reserved" in words.fields["appProtocol"]
    assert field_docs.describe(shapes.of("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta")).fields["continue"]


def test_without_the_package_nothing_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(field_docs, "_PACKAGE", "no-such-package")
    field_docs._module.cache_clear()
    try:
        assert field_docs.describe(shapes.of("io.k8s.api.core.v1.Pod")) == field_docs.Words()
        assert field_docs.edition() == ""
    finally:
        field_docs._module.cache_clear()


# --- HTTP ------------------------------------------------------------------------------------------


def test_the_index_leads_to_the_documents() -> None:
    index = document("/openapi/v3")["paths"]
    assert {"api/v1", "apis/discovery.k8s.io/v1"} <= index.keys()
    for path, entry in index.items():
        address = entry["serverRelativeURL"]
        assert address.startswith(f"/openapi/v3/{path}?hash=")
        response = answered(address)
        assert response.status == 200
        assert "immutable" in dict(response.headers)["Cache-Control"]


def test_an_outdated_hash_is_led_to_the_current_one() -> None:
    response = answered("/openapi/v3/api/v1?hash=OLD&timeout=32s")
    assert response.status == 301
    assert dict(response.headers)["Location"] == document("/openapi/v3")["paths"]["api/v1"]["serverRelativeURL"]


def test_other_kinds_have_another_hash() -> None:
    fewer = tuple(kind for kind in KINDS if kind.resource.kind != "Pod")
    assert openapi.OpenApi(fewer).index != DESCRIBED.index


def test_an_unchanged_document_is_not_sent_again() -> None:
    tag = dict(answered("/openapi/v2").headers)["ETag"]
    again = answered("/openapi/v2", if_none_match=tag)
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize("accept", ["", "*/*", "application/json", f"application/json, {PROTOBUF}"])
@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3/api/v1"])
def test_json_for_everyone_who_likes_it(path: str, accept: str) -> None:
    assert answered(path, accept=accept).content_type == "application/json"


def test_what_is_not_acceptable() -> None:
    for path in ("/openapi/v2", "/openapi/v3/api/v1"):
        with pytest.raises(errors.NotAcceptable):
            ask(path, accept="text/html")


# --- in protobuf -----------------------------------------------------------------------------------


def inside(message: bytes, *numbers: int) -> bytes:
    """The first field with each number, one inside the other."""
    for number in numbers:
        found = dict(reversed(list(members(message))))[number]
        assert isinstance(found, bytes)
        message = found
    return message


def named(message: bytes, number: int) -> dict[str, bytes]:
    found = [value for field, value in members(message) if field == number and isinstance(value, bytes)]
    return {inside(value, 1).decode(): inside(value, 2) for value in found}


def test_the_v2_document_in_protobuf_says_the_same() -> None:
    response = answered("/openapi/v2", accept="application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
    assert response.content_type == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert isinstance(response.body, bytes)
    whole = document("/openapi/v2")
    assert inside(response.body, 1) == b"2.0"
    paths, definitions = named(inside(response.body, 8), 2), named(inside(response.body, 9), 1)
    assert list(paths) == list(whole["paths"])
    assert list(definitions) == list(whole["definitions"])
    for name, schema in whole["definitions"].items():
        message = definitions[name]
        assert inside(message, 22, 1).decode() == schema["type"]
        assert [v.decode() for n, v in members(message) if n == 19] == schema.get("required", [])
        properties = named(inside(message, 25), 1) if "properties" in schema else {}
        assert {key: inside(value, 4).decode() for key, value in properties.items()} == {
            key: value["description"] for key, value in schema.get("properties", {}).items()
        }
    ports = named(inside(definitions["io.k8s.api.core.v1.ServiceSpec"], 25), 1)["ports"]
    assert inside(ports, 23, 1, 1) == b"#/definitions/io.k8s.api.core.v1.ServicePort"
    extensions = {name: inside(value, 2) for name, value in named(ports, 31).items()}
    assert extensions["x-kubernetes-list-map-keys"] == b'["port","protocol"]'
    patch = inside(paths["/api/v1/namespaces/{namespace}/services/{name}"], 8)
    assert inside(patch, 5) == b"patchCoreV1NamespacedService"
    assert b"fieldValidation" in patch


def test_a_v3_document_in_protobuf_says_the_same() -> None:
    response = answered("/openapi/v3/api/v1", accept=f"{PROTOBUF}, application/json")
    assert response.content_type == "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
    assert isinstance(response.body, bytes)
    whole = document("/openapi/v3/api/v1")
    assert inside(response.body, 1) == b"3.0.0"
    paths, schemas = named(inside(response.body, 4), 1), named(inside(response.body, 5, 1), 1)
    assert list(paths) == list(whole["paths"])
    assert list(schemas) == list(whole["components"]["schemas"])
    for name, schema in whole["components"]["schemas"].items():
        message = inside(schemas[name], 1)
        assert [v for n, v in members(message) if n == 25] == ([schema["type"].encode()] if "type" in schema else [])
        properties = named(inside(message, 31), 1) if "properties" in schema else {}
        assert list(properties) == list(schema.get("properties", {}))
    ports = inside(named(inside(schemas["io.k8s.api.core.v1.ServiceSpec"], 1, 31), 1)["ports"], 1)
    assert inside(ports, 30, 1, 2, 1) == b"#/components/schemas/io.k8s.api.core.v1.ServicePort"
    patch = inside(paths["/api/v1/namespaces/{namespace}/services/{name}"], 10)
    assert inside(patch, 5) == b"patchCoreV1NamespacedService"
    assert "application/merge-patch+json" in named(inside(patch, 7, 1, 2), 1)
    assert b"force" in [inside(v, 1, 1) for n, v in members(patch) if n == 6 and isinstance(v, bytes)]


def test_every_word_of_a_custom_schema_is_in_the_protobuf() -> None:
    schema: dict[str, Any] = {
        "nullable": True,
        "externalDocs": {"url": "u"},
        "example": 1,
        "minimum": -0.5,
        "maximum": 0,
        "maxLength": 300,
        "enum": ["a"],
        "oneOf": [{"format": "ipv4"}],
        "not": {"pattern": "z"},
        "additionalProperties": False,
        "default": 1.5,
        "x-kubernetes-list-type": "set",
    }
    expected = {
        1: 1,
        6: member(2, b"u"),
        7: member(2, b"1"),
        13: struct.pack("<d", -0.5),
        15: 300,
        24: member(2, b'"a"'),
        27: member(1, member(35, b"ipv4")),
        29: member(17, b"z"),
        32: member(2, 0),
        33: b"\x09" + struct.pack("<d", 1.5),
        36: member(1, b"x-kubernetes-list-type") + member(2, member(2, b'"set"')),
    }
    assert dict(members(protobuf_v3.schema(schema))) == expected
    for default, told in (("a", member(3, b"a")), (True, member(2, 1)), ({"a": 1}, b""), (None, b"")):
        assert dict(members(protobuf_v3.schema({"default": default}))) == {33: told}


@pytest.mark.parametrize(
    "path", ["/openapi", "/openapi/v4", "/openapi/v3/api", "/openapi/v3/apis/apps", "/openapi/v3/apis/apps/v2"]
)
def test_other_paths_are_nobodys(path: str) -> None:
    assert ask(path) is None
