"""Bodies: what real Kubernetes answered to bad ones is the measure; nothing a client sends may break the server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance_files import API
from seamark import errors
from seamark.api import intake
from seamark.api.call import DeleteOptions
from seamark.api.fields.patch import PatchType
from seamark.api.http import body
from seamark.kinds.kind import Kind
from seamark.kinds.language import json_scan, shapes
from seamark.kinds.pod.binding import BINDING
from seamark.kinds.resource import CONFIGMAPS, ENDPOINT_SLICES, EVENTS, LEASES, NEW_EVENTS, SECRETS, SERVICES, Resource


def kind_of(resource: Resource) -> Kind:
    name = shapes.load().kinds[resource.api_version, resource.kind]
    return type(resource.kind, (Kind,), {"resource": resource, "shape_name": name, "singular": resource.kind.lower()})()


CONFIG_MAP, SERVICE = kind_of(CONFIGMAPS), kind_of(SERVICES)
BY_PLURAL = {r.plural: kind_of(r) for r in (CONFIGMAPS, SERVICES, SECRETS, LEASES, ENDPOINT_SLICES)}


def read(text: str | bytes, kind: Kind = CONFIG_MAP, content_type: str = body.JSON, validation: str = "") -> Any:
    document = body.read(text.encode() if isinstance(text, str) else text, content_type, kind)
    return intake.conformed(document, kind, validation)


def refused(text: str | bytes, kind: Kind = CONFIG_MAP, **more: str) -> str:
    with pytest.raises(errors.BadRequest) as caught:
        read(text, kind, **more)
    return caught.value.message


# --- recorded --------------------------------------------------------------------------------------


def plural_of(step: dict[str, Any]) -> str:
    """The resource that a step writes to in the case's namespace."""
    written = step.get("path", "") if step.get("method") in ("POST", "PUT") else ""
    return written.partition("$NS/")[2].partition("/")[0]


def recorded() -> list[Any]:
    """Every recorded POST or PUT whose body alone was the reason for a 400 or for warnings."""
    found = []
    for file in sorted(API.glob("*.json")):
        if file.stem in ("webhooks", "admission-policy"):
            continue  # there, others than the body are the reason
        for case in json.loads(file.read_text())["cases"]:
            for step in () if "hooks" in case else case["steps"]:  # there a webhook may be the reason
                expect = step.get("expect", {})
                message = (expect.get("body") or {}).get("message", "") if isinstance(expect.get("body"), dict) else ""
                about_names = "does not match" in message or "name must be provided" in message
                if plural_of(step) in BY_PLURAL and (
                    (expect.get("status") in (400, 415) and not about_names) or "unknown field" in str(expect)
                ):
                    found.append(pytest.param(step, id=f"{case['name']}-{len(found)}"))
    return found


@pytest.mark.parametrize("step", recorded())
def test_answers_are_the_recorded_ones(step: dict[str, Any]) -> None:
    expect = step["expect"]
    kind = BY_PLURAL[plural_of(step)]
    raw = step["raw"].encode() if "raw" in step else json.dumps(step["body"]).encode() if "body" in step else b""
    validation = (step.get("query") or {}).get("fieldValidation", "")
    content_type = step.get("content_type", "application/json")
    if expect["status"] < 300:
        warnings = [f"299 - {json.dumps(sentence)}" for sentence in read(raw, kind, content_type, validation)[1]]
        assert warnings == expect.get("warnings", [])
        return
    with pytest.raises(errors.ApiError) as caught:
        read(raw, kind, content_type, validation)
    status = errors.status(caught.value)
    if "message" in expect["body"]:
        assert status["message"].startswith(expect["body"]["message"].rstrip("…"))
        if not expect["body"]["message"].endswith("…"):
            assert status["message"] == expect["body"]["message"]
    assert {k: v for k, v in status.items() if k != "message"} == {
        k: v for k, v in expect["body"].items() if k != "message"
    }


def test_the_recordings_are_not_empty() -> None:
    assert len(recorded()) > 12


# --- objects ---------------------------------------------------------------------------------------


def test_kind_and_version_may_be_left_out() -> None:
    assert read('{"metadata": {"name": "a"}}') == (
        {"metadata": {"name": "a"}, "kind": "ConfigMap", "apiVersion": "v1"},
        [],
    )
    assert read("null")[0] == {"metadata": {}, "kind": "ConfigMap", "apiVersion": "v1"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "unexpected end of JSON input (<empty>)"),
        ('{"kind": "ConfigMap", ', 'unexpected end of JSON input ({"kind": "ConfigMap", )'),
        ("not json", "invalid character 'o' in literal null (expecting 'u') (6e6f74206a736f6e)"),
        ('{"a": 1} x', "invalid character 'x' after top-level value ({\"a\": 1} x)"),
        ("{" + '"a":1,' * 9 + "}", 'key string ({"a":1,"a":1,"a":1,"a":1,"a":1 ...)'),
        (
            "[]",
            "json: cannot unmarshal array into Go value of type struct { "
            r'APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b5d)',
        ),
        ('{"kind": 1}', 'json: cannot unmarshal number into Go struct field .kind of type string ({"kind": 1})'),
        ('{"apiVersion": "a/b/c"}', 'unexpected GroupVersion string: a/b/c ({"apiVersion": "a/b/c"})'),
    ],
)
def test_what_cannot_be_read_is_refused_in_gos_words(text: str, sentence: str) -> None:
    message = refused(text)
    assert message.startswith(
        "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: "
    )
    assert message.endswith(sentence)


def test_other_kinds_are_refused() -> None:
    assert refused('{"apiVersion": "v1", "kind": "Secret"}').endswith(
        "cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion"
    )
    assert refused('{"apiVersion": "v1", "kind": "Event"}', kind_of(NEW_EVENTS)) == (
        "the API version in the data (v1) does not match the expected API version (events.k8s.io/v1)"
    )
    assert 'no kind "Event" is registered for version "v2"' in refused('{"apiVersion": "v2"}', kind_of(EVENTS))


@pytest.mark.parametrize(
    "hostile",
    [
        b"\xff\xfe",
        b'{"metadata": {"name": "\xff"}}',
        b'{"metadata": {"name": "\\ud800"}}',
        b'{"a": "\x00"}',
        b"\x00",
        b'{"metadata": {"generation": 1e400}}',
        b'{"metadata": {"generation": ' + b"9" * 100_000 + b"}}",
        b"[" * 100_000,
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        b'{"metadata": {"managedFields": [{"fieldsV1": ' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}]}}",
        b'{"metadata": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'"' + b"a" * 1_000_000,
        b'{"' + b"\\u00e9" * 100_000,
    ],
)
@pytest.mark.parametrize("content_type", ["application/json", "application/yaml"])
def test_hostile_bodies_are_bad_requests(hostile: bytes, content_type: str) -> None:
    assert refused(hostile, content_type=content_type)


def test_a_deep_unknown_field_is_dropped_or_refused() -> None:
    """Kubernetes reads 10,000 levels; how many Python reads depends on its version, from 1,000 (3.11) to as many."""
    deep = b'{"a":' * 5_000 + b"1" + b"}" * 5_000
    try:
        _, warnings = read(deep)
    except errors.BadRequest as error:
        assert "exceeded max depth" in error.message  # noqa: PT017 - either end is right
    else:
        assert warnings == ['unknown field "a"']


@given(st.binary(max_size=200) | st.text(alphabet='{}[]":,\\u0123abtrufalsn .-+eE\n', max_size=60).map(str.encode))
def test_any_bytes_are_an_object_or_a_bad_request(raw: bytes) -> None:
    for content_type in ("application/json", "application/yaml"):
        try:
            obj, _ = read(raw, content_type=content_type)
        except errors.BadRequest:
            continue
        assert obj["kind"] == "ConfigMap"


@given(st.text(alphabet='{}[]":,\\u0123abtrufalsn .-+eE\n', max_size=40).map(str.encode))
def test_the_scanner_agrees_with_the_parser(raw: bytes) -> None:
    try:
        msgspec.json.decode(raw)
    except msgspec.ValidationError:
        return  # JSON, but a number too large to hold
    except msgspec.DecodeError:
        if b"\\u" not in raw:
            with pytest.raises(json_scan.SyntaxFault):
                json_scan.check(raw)
        return
    json_scan.check(raw)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("tru", "unexpected end of JSON input"),
        ("trux", "invalid character 'x' in literal true (expecting 'e')"),
        ("[1 2]", "invalid character '2' after array element"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        ("{1:2}", "invalid character '1' looking for beginning of object key string"),
        ("[,]", "invalid character ',' looking for beginning of value"),
        ('"a\n"', r"invalid character '\n' in string literal"),
        (r'"\x"', "invalid character 'x' in string escape code"),
        (r'"\u12g4"', r"invalid character 'g' in \u hexadecimal character escape"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1e+x", "invalid character 'x' in exponent of numeric literal"),
        ("01", "invalid character '1' after top-level value"),
        ("'a'", r"invalid character '\'' looking for beginning of value"),
        ("[" * 10_001, "exceeded max depth"),
    ],
)
def test_the_scanner_speaks_go(text: str, sentence: str) -> None:
    with pytest.raises(json_scan.SyntaxFault) as caught:
        json_scan.check(text.encode())
    assert str(caught.value) == sentence


# --- unknown and repeated fields -------------------------------------------------------------------


def test_repeated_and_unknown_fields_in_the_order_of_the_text() -> None:
    text = (
        '{"kind":"Service","spec":{"ports":[{"port":1,"port":2,"x":1}],"foo":{"a":1,"a":2},"type":"a","type":"b"},'
        '"metadata":{"labels":{"a":"1","a":"2"}},"bar":null,"kind":"Service"}'
    )
    _, warnings = read(text, SERVICE)
    assert warnings == [
        'duplicate field "spec.ports[0].port"',
        'unknown field "spec.ports[0].x"',
        'unknown field "spec.foo"',
        'duplicate field "spec.type"',
        'duplicate field "metadata.labels.a"',
        'unknown field "bar"',
        'duplicate field "kind"',
    ]
    assert read(text, SERVICE, validation="Ignore")[1] == []
    assert refused(text, SERVICE, validation="Strict").startswith(
        'Service in version "v1" cannot be handled as a Service: strict decoding error: duplicate field "spec.ports[0]'
    )


def test_json_inside_texts_is_not_taken_for_keys() -> None:
    inner = json.dumps({"a": {"b": '":'}})
    odd = {"kubectl": inner, 'odd\\": "key': inner, 'x\\": ': "y"}
    text = json.dumps({"metadata": {"annotations": odd}}, indent=3)
    assert read(text, validation="Strict")[0]["metadata"]["annotations"]["kubectl"] == inner


def test_no_more_than_a_hundred_mistakes_are_told() -> None:
    text = json.dumps({f"f{i}": 1 for i in range(300)})
    assert len(read(text)[1]) == 100
    assert len(read(text[:-1] + ',"f0":1}')[1]) == 100


def test_a_long_text_is_not_searched_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_scan, "MOST_VALUES", 10)
    long = ",".join(f'"f{i}":""' for i in range(20))
    assert len(list(json_scan.keys(f"{{{long}}}".encode()))) == 10
    warnings = read('{"metadata":{"name":"a"},"data":{"a":"b"},"metadata":{"name":"a"}}')[1]
    assert warnings == ['duplicate field "metadata"']
    assert read(f'{{"data":{{{long}}},"data":{{}}}}')[1] == []
    assert read(f'{{"data":{{{long}}},"data":{{}},"odd":1}}')[1] == ['unknown field "odd"']
    assert "json" in refused(f"{{{long}").lower()


# --- YAML ------------------------------------------------------------------------------------------

YAML = "application/yaml"


def test_yaml_means_json() -> None:
    text = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: cm
  annotations: {date: '2020-01-02', "n": "1"}
  labels: &shared {a: b}
  creationTimestamp: 2020-01-02T03:04:05Z
data:
  <<: *shared
  1: one
  true: yes-and-no
---
ignored: second document
"""
    obj, warnings = read(text, content_type=YAML)
    assert obj["metadata"]["creationTimestamp"] == "2020-01-02T03:04:05Z"
    assert obj["data"] == {"a": "b", "1": "one", "true": "yes-and-no"}
    assert warnings == []


@pytest.mark.parametrize(
    ("plain", "number"), [("0x10", 16), ("010", 8), ("1_000", 1000), ("0b11", 3), ("0", 0), ("-5", -5), ("+7", 7)]
)
def test_yaml_numbers(plain: str, number: int) -> None:
    text = f"metadata: {{name: a, deletionGracePeriodSeconds: {plain}}}"
    assert read(text, content_type=YAML)[0]["metadata"]["deletionGracePeriodSeconds"] == number


def test_yaml_keeps_dates_and_base_sixty_as_texts() -> None:
    text = "data: {date: 2020-01-02, time: 12:30:45, version: 1.2.3}"
    assert read(text, content_type=YAML)[0]["data"] == {"date": "2020-01-02", "time": "12:30:45", "version": "1.2.3"}


def test_yaml_repeated_keys() -> None:
    _, warnings = read("data:\n  a: x\n  a: z\n", content_type=YAML)
    assert warnings == ['line 3: key "a" already set in map']
    text = "data:\n  a: x\n  a: z\nfoo: 1\nkind: ConfigMap\nkind: ConfigMap\n"
    assert refused(text, content_type=YAML, validation="Strict").endswith(
        'strict decoding error: yaml: unmarshal errors:\n  line 3: key "a" already set in map\n'
        '  line 6: key "kind" already set in map, unknown field "foo"'
    )


BOMB = "\n".join(["a0: &a0 [x, x]", *(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 64))])


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        "&a [*a]",
        "a: [",
        "{a: .nan}",
        "? [a]\n: b",
        "!!python/object:os.system {}",
        "- a\n- b",
        "a: !!binary eA==",
    ],
)
def test_yaml_that_is_no_json_is_refused(text: str) -> None:
    assert "the object provided is unrecognized" in refused(text, content_type=YAML)


# --- patches, apply, options -----------------------------------------------------------------------


def test_patch_documents() -> None:
    assert body.read_patch(b'[{"op": "add"}]', "json", "") == ([{"op": "add"}], ())
    for bad in (b"{", b'{"a":' * 300 + b"1" + b"}" * 300):
        with pytest.raises(errors.BadRequest):
            body.read_patch(bad, "merge", "")
        with pytest.raises(errors.BadRequest):
            body.read_applied(bad, "")


@pytest.mark.parametrize(
    ("type", "sentence"),
    [
        ("json", "error decoding patch: unexpected end of JSON input"),
        ("merge", "error decoding patch: unexpected end of JSON input"),
        ("strategic", "unexpected end of JSON input"),
    ],
)
def test_patches_that_are_no_json(type: PatchType, sentence: str) -> None:
    with pytest.raises(errors.BadRequest) as refusal:
        body.read_patch(b"{", type, "")
    assert refusal.value.message == sentence


@pytest.mark.parametrize(
    ("type", "text", "mistakes"),
    [
        ("merge", '{"data": {"a": "1", "a": "2"}}', ['duplicate field "data.a"']),
        ("strategic", '{"data": {"a": "1", "a": "2"}}', ['duplicate field "data.a"']),
        ("merge", '{"data": {"a": "1"}}', []),
        ("json", '[{"op": "add", "path": "/data", "value": {}, "odd": 1}]', ['json patch unknown field "[0].odd"']),
        ("json", '[{"op": "add", "op": "add", "path": "/data"}]', ['json patch duplicate field "[0].op"']),
    ],
)
def test_patches_may_have_mistakes_of_their_own(type: PatchType, text: str, mistakes: list[str]) -> None:
    document, found = body.read_patch(text.encode(), type, "Warn")
    assert list(found) == mistakes
    assert body.read_patch(text.encode(), type, "Ignore") == (document, ())
    patched = {"metadata": {"name": "cm"}, "foo": 1}
    warnings: list[str] = []
    conform_patched(patched, CONFIG_MAP, "Warn", warnings, found)
    assert warnings == [*mistakes, 'unknown field "foo"']
    if mistakes:
        with pytest.raises(errors.Invalid):
            conform_patched({"metadata": {"name": "cm"}}, CONFIG_MAP, "Strict", warnings, found)


def conform_patched(
    patched: Any, kind: Kind, validation: str, warnings: list[str], mistakes: Sequence[str] = ()
) -> Any:
    return intake.conform_patched(
        patched,
        kind,
        kind.whole,
        current={"metadata": {}},
        field_validation=validation,
        mistakes=mistakes,
        strategic=None,
        warnings=warnings,
    )


def test_patched_objects_are_conformed() -> None:
    warnings: list[str] = []
    patched = {"metadata": {"name": "web"}, "spec": {"foo": 1, "ports": []}}
    for _ in range(2):
        assert conform_patched(patched, SERVICE, "Warn", warnings)["spec"] == {}
        assert warnings == ['unknown field "spec.foo"']
    with pytest.raises(errors.Invalid) as strict:
        conform_patched(patched, SERVICE, "Strict", warnings)
    assert strict.value.causes[0].field == "patch"
    with pytest.raises(errors.Invalid) as wrong:
        conform_patched({"spec": {"ports": {}}}, SERVICE, "Ignore", warnings)
    assert "json: cannot unmarshal object into Go struct field ServiceSpec.spec.ports" in wrong.value.message


def test_applied_configurations_stay_as_written() -> None:
    config, warnings = body.read_applied(b'{"data": {"a": null}}', "")
    assert (config, warnings) == ({"data": {"a": None}}, [])
    assert intake.applied(config, CONFIG_MAP) == {"data": {"a": None}, "metadata": {}}
    assert body.read_applied(b"data: {a: '1'}", "")[0]["data"] == {"a": "1"}
    twice = b'{"data": {"a": "1", "a": "2"}}'
    assert len(body.read_applied(twice, "")[1]) == 1
    assert body.read_applied(twice, "Ignore")[1] == ()
    for bad, validation in ((twice, "Strict"), (b"[]", ""), (b"{", ""), (b"metadata: []", ""), (b"x", "")):
        with pytest.raises(errors.BadRequest):
            intake.applied(body.read_applied(bad, validation)[0], CONFIG_MAP)


def delete(raw: bytes, content_type: str = "application/json") -> DeleteOptions:
    return body.read_deletion(raw, content_type)


def test_delete_options() -> None:
    text = b'{"kind":"DeleteOptions","apiVersion":"policy/v1","gracePeriodSeconds":0}'
    assert delete(text) == DeleteOptions(grace_seconds=0)
    assert delete(b"propagationPolicy: Orphan", "application/yaml") == DeleteOptions(propagation="Orphan")
    whole = b'{"preconditions": {"uid": "u", "resourceVersion": "7"}, "dryRun": ["All"], "orphanDependents": false}'
    assert delete(whole) == DeleteOptions(("All",), uid="u", version="7", orphan=False)
    for options in (
        b'{"orphanDependents": true, "propagationPolicy": "Orphan"}',
        b'{"propagationPolicy": "Sideways"}',
        b'{"dryRun": ["Half"]}',
    ):
        with pytest.raises(errors.Invalid):
            delete(options)
    for bad in (b"{", b"[]", b'{"kind":"ConfigMap","apiVersion":"v1"}', b'{"gracePeriodSeconds":"x"}'):
        with pytest.raises(errors.BadRequest):
            delete(bad)
    with pytest.raises(errors.UnsupportedMediaType):
        delete(b"x", "text/plain")


def test_kinds_that_are_only_requests() -> None:
    raw = b'{"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"},"odd":1}'
    binding, warnings = read(raw, BINDING)
    assert binding["target"]["name"] == "n"
    assert warnings == ['unknown field "odd"']
    with pytest.raises(errors.BadRequest):
        read('{"kind":"Pod","apiVersion":"v1"}', BINDING)


# --- protobuf --------------------------------------------------------------------------------------

SECRET = bytes.fromhex(
    "6b3873000a0c0a0276311206536563726574121d0a110a017312001a0022002a0032003800420012060a01611201621a001a002200"
)


def test_protobuf_bodies() -> None:
    secret = kind_of(SECRETS)
    assert read(SECRET, secret, body.PROTOBUF) == (
        {"metadata": {"name": "s"}, "data": {"a": "Yg=="}, "kind": "Secret", "apiVersion": "v1"},
        [],
    )
    assert refused(SECRET, CONFIG_MAP, content_type=body.PROTOBUF).startswith(
        'Secret in version "v1" cannot be handled as a ConfigMap: converting'
    )
    assert refused(b"{}", secret, content_type=body.PROTOBUF) == (
        "the object provided is unrecognized (must be of type Secret): provided data does not appear to be a protobuf "
        "message, expected prefix [107 56 115 0] ({})"
    )
    assert refused(SECRET[:-20], secret, content_type=body.PROTOBUF)
    event = SECRET.replace(b"\x06Secret", b"\x06Event1")
    assert 'no kind "Event1" is registered' in refused(event, secret, content_type=body.PROTOBUF)


def test_protobuf_delete_options() -> None:
    options = b"k8s\x00\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions\x12\x02\x08\x05"
    assert delete(options, body.PROTOBUF) == DeleteOptions(grace_seconds=5)
