"""Values that once broke something, and their relatives: each is taken or refused, and nothing fails."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from custom_resources import BASE as WIDGETS
from custom_resources import DEFINITIONS, defined, definition, established, version, widget
from served import Served

from seamark.api.http.url import check_timeout
from seamark.api.streaming.forwarding import ports_of
from seamark.errors import BadRequest
from seamark.kinds.pod import environment
from seamark.kinds.values import numbers, quantity, times

PODS = "/api/v1/namespaces/default/pods"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
APPLY = "application/apply-patch+yaml"
LARGEST = 2**63 - 1
LONG = "9" * 4301  # more digits than int() reads
COST = "controller.kubernetes.io/pod-deletion-cost"
TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


@pytest.fixture(autouse=True)
def nothing_fails(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def pod(name: str = "p", annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "n", **spec}}


@pytest.mark.parametrize("seconds", [LARGEST, LARGEST // 10**9 + 1, 10**12, 2**31])
async def test_deleting_with_any_grace_period(api: Served, seconds: int) -> None:
    await api.post(PODS, pod("p", terminationGracePeriodSeconds=seconds))
    await api.post(PODS, pod("q"))
    for path in (f"{PODS}/p", f"{PODS}/q?gracePeriodSeconds={seconds}"):
        marked = (await api.delete(path))["metadata"]
        assert marked["deletionGracePeriodSeconds"] == seconds
        times.parse(marked["deletionTimestamp"])
    shortened = (await api.delete(f"{PODS}/p?gracePeriodSeconds=5"))["metadata"]
    began = times.parse((await api.get(f"{PODS}/p"))["metadata"]["creationTimestamp"])
    # A time that has wrapped around is rounded down to a second, there as here.
    assert -1 <= times.parse(shortened["deletionTimestamp"]) - began - 5 < 300
    assert (await api.ask("DELETE", f"{PODS}/q", {"gracePeriodSeconds": LARGEST + 1})).status == 400


def test_times_wrap_as_those_of_go() -> None:
    now = "2026-01-01T00:00:00Z"
    assert times.later(now, 30) == "2026-01-01T00:00:30Z"
    assert times.later(now, LARGEST) == "2025-12-31T23:59:59Z"  # (2^63 - 1) seconds are -1 s, modulo 2^64 ns
    for seconds in (-(2**63), -LARGEST, 2**62, 9223372036, 9223372037):
        assert times.later(now, seconds)[4] == "-"


@pytest.mark.parametrize("cost", [LONG, f"-{LONG}", "0" * 4301, "1_0", "+", "-", "²", " 1", str(2**31)])
async def test_a_deletion_cost_that_is_no_number(api: Served, cost: str) -> None:
    answer = await api.ask("POST", PODS, pod(annotations={COST: cost}))
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")


@pytest.mark.parametrize(
    "tagged",
    [
        '!!int ""',
        "!!int x",
        '!!float "_"',
        '!!float ""',
        "!!bool z",
        "!!bool {}",
        "!!timestamp x",
        "!!timestamp 2026-01-01",
        "!!timestamp 2026-13-99",
        "!!binary ä",
        "!!null x",
        "!!set {a}",
        "!!omap [a]",
        "!!pairs [a]",
        "!!python/object:os.system x",
        "!!int 0b",
        "!!int 0x",
        "!!int 1:99999999999999999999",
        f"!!int {LONG}",
        f"!!float 1:{LONG}",
        "!!str {}",
        "!!map x",
        "!!seq x",
        ".inf",
    ],
)
async def test_yaml_with_tags(api: Served, tagged: str) -> None:
    body = f"metadata: {{name: a, generation: {tagged}}}".encode()
    for method, path, media in (
        ("POST", CONFIGMAPS, "application/yaml"),
        ("PATCH", f"{CONFIGMAPS}/a?fieldManager=m", APPLY),
    ):
        answer = await api.ask(method, path, body, type=media)
        if tagged == "!!null x":
            assert answer.status in (201, 400), answer
        else:
            assert (answer.status, answer.json["reason"]) == (400, "BadRequest"), answer


@pytest.mark.parametrize(
    ("path", "config"),
    [
        (PODS, pod(resources={"limits": {"cpu": "x"}})),
        (PODS, pod(terminationGracePeriodSeconds=2**63)),
        (PODS, pod(priority=2**40)),
        (PODS, {**pod(), "status": {"startTime": "yesterday"}}),
        ("/api/v1/namespaces/default/secrets", {"metadata": {"name": "p"}, "data": {"k": "not base64!"}}),
        (DEPLOYMENTS, {"metadata": {"name": "p"}, "spec": {"replicas": 2**40}}),
    ],
)
async def test_applying_what_does_not_decode(api: Served, path: str, config: dict[str, Any]) -> None:
    version, kind = {PODS: ("v1", "Pod"), DEPLOYMENTS: ("apps/v1", "Deployment")}.get(path, ("v1", "Secret"))
    sent = {"apiVersion": version, "kind": kind, **config}
    answer = await api.ask("PATCH", f"{path}/p?fieldManager=m", sent, type=APPLY)
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest"), answer


@pytest.mark.parametrize("share", [f"{LONG}%", "0" * 4301 + "1%", "99999999999999999999%"])
async def test_percentages_of_any_length(api: Served, share: str) -> None:
    strategy = {"rollingUpdate": {"maxSurge": share, "maxUnavailable": share}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE, "strategy": strategy}
    answer = await api.ask("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})
    assert answer.status in (201, 422), answer


@pytest.mark.parametrize("index", [LONG, f"-{LONG}", "0" * 4301, "-", "1_0", "²"])
async def test_places_in_lists(api: Served, index: str) -> None:
    await api.post(PODS, pod())
    patch = [{"op": "replace", "path": f"/spec/containers/{index}/image", "value": "x"}]
    answer = await api.ask("PATCH", f"{PODS}/p", patch, type="application/json-patch+json")
    assert answer.status in (200, 422), answer


@pytest.mark.parametrize("selector", [f"a>{LONG}", f"a<-{LONG}", "a>" + "0" * 4301, "(" * 10_000, "a in (" * 3000, ","])
async def test_selectors(api: Served, selector: str) -> None:
    answer = await api.ask("GET", PODS, query=f"labelSelector={selector.replace('>', '%3E').replace('<', '%3C')}")
    assert answer.status in (200, 400), answer


@pytest.mark.parametrize("digit", ["1", "1.", ".", "1s", "-"])
def test_texts_that_do_not_match_take_linear_time(digit: str) -> None:
    """The attack: each of these took seconds for a few thousand characters, and hours for a request's three million.

    If the time grows with the square again, this test does not end.
    """
    text = digit * 1_000_000
    for tail in ("", "x", "\0", "ms!", "['", "']"):
        with contextlib.suppress(BadRequest):
            check_timeout({"timeout": [text + tail]})
        for parse in (quantity._pattern.fullmatch, times.parse_duration, numbers.int64):
            with contextlib.suppress(ValueError):
                parse(text + tail)
    assert environment._subscripted("['" * 500_000 + "x") == ("['" * 500_000 + "x", None)


@pytest.mark.parametrize(
    ("field", "parts"),
    [
        ("metadata.labels['a']", ("metadata.labels", "a")),
        ("['']", ("", "")),
        ("a['b']['c']", ("a['b']", "c")),
        ("a['b'c']", ("a", "b'c")),
        ("[']", ("[']", None)),
        ("a['b'] ", ("a['b'] ", None)),
        ("a['b\n']", ("a", "b\n")),
    ],
)
def test_the_key_at_the_end_of_a_field(field: str, parts: tuple[str, str | None]) -> None:
    assert environment._subscripted(field) == parts


@pytest.mark.parametrize("cost", ["0", "-1", "+5", str(2**31 - 1), str(-(2**31))])
async def test_a_deletion_cost_that_is_a_number(api: Served, cost: str) -> None:
    await api.post(PODS, pod(annotations={COST: cost}))


async def test_a_manager_without_a_name(api: Served) -> None:
    made = await api.post(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    (entry,) = made["metadata"]["managedFields"]
    nameless = {key: value for key, value in entry.items() if key != "manager"}
    for number in range(12):
        owners = [{**nameless, "apiVersion": f"v{number}"} for number in range(number + 1)]
        changed = {**made, "metadata": {"name": "a", "managedFields": owners}, "data": {"k": f"{number}"}}
        await api.put(f"{CONFIGMAPS}/a", changed)
    await api.put(f"{CONFIGMAPS}/a", {**made, "metadata": {"name": "a", "managedFields": [nameless]}})
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "other"}}
    refused = await api.ask("PATCH", f"{CONFIGMAPS}/a?fieldManager=m", config, type=APPLY)
    assert (refused.status, refused.json["message"][:43]) == (409, "Apply failed with 1 conflict: conflict with")
    for _ in range(2):
        applied = await api.ask("PATCH", f"{CONFIGMAPS}/a?fieldManager=m&force=true", config, type=APPLY)
        assert applied.status == 200, applied


@pytest.mark.parametrize("path", [f".spec[{LONG}]", f".spec.rows[{'0' * 5000}1].key"])
async def test_columns_of_custom_resources(api: Served, path: str) -> None:
    column = {"name": "Rows", "type": "string", "jsonPath": path}
    await defined(api, version(additionalPrinterColumns=[column]))
    await api.post(WIDGETS, widget("a"))
    table = await api.ask("GET", WIDGETS, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
    assert table.status == 200, table


@pytest.mark.parametrize("name", [f"v{LONG}", f"v1beta{LONG}"])
async def test_versions_of_custom_resources(api: Served, name: str) -> None:
    answer = await api.ask("POST", DEFINITIONS, definition(version(name)))
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")


@pytest.mark.parametrize("rule", [f"self.size < {LONG}", "[" * 5000 + "]" * 5000, "self" + ".size" * 5000])
async def test_rules_of_custom_resources(api: Served, rule: str) -> None:
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": rule}]}
    answer = await api.ask("POST", DEFINITIONS, definition(version(spec=spec)))
    assert (answer.status, answer.json["reason"]) == (422, "Invalid"), answer


def test_ports_to_forward() -> None:
    for text in (LONG, "0", "65536", "-1", "²", ""):
        with pytest.raises(BadRequest):
            ports_of({"ports": [text]})
    assert ports_of({"ports": ["80,443"]}) == [80, 443]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/namespaces/default/events", {"involvedObject": {"namespace": "default"}}),
        ("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", {}),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", {}),
        (CONFIGMAPS, {}),
    ],
)
async def test_names_that_no_key_can_hold(api: Served, path: str, body: dict[str, Any]) -> None:
    answer = await api.ask("POST", path, {"metadata": {"name": "a\0"}, **body})
    assert (answer.status, answer.json["reason"]) == (422, "Invalid"), answer


OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def nested(levels: int, inner: Any, *around: str) -> Any:
    """``inner`` below so many levels of objects, each with its value below the keys of ``around``."""
    for _ in range(levels):
        for key in reversed(around):
            inner = {key: inner}
    return inner


@pytest.mark.parametrize("levels", [150, 250, 350, 450, 700])
async def test_objects_of_custom_kinds_that_are_nested_deep_can_be_read_in_every_way(api: Served, levels: int) -> None:
    """One that is taken can be written out as YAML, too, alone and in a list; deeper ones are refused."""
    await defined(api, version(spec=OPEN))
    deep = widget("deep", **nested(levels, 1, "a"))
    statuses = [(await api.ask("POST", WIDGETS, deep)).status]
    statuses.append((await api.ask("PATCH", f"{WIDGETS}/deep?fieldManager=m&force=true", deep, type=APPLY)).status)
    await api.post(WIDGETS, widget("w", a={}))
    longer = [{"op": "copy", "from": "/spec", "path": "/spec" + "/a" * 2**power} for power in range(12)]
    patch = longer[: levels.bit_length()]
    statuses.append((await api.ask("PATCH", f"{WIDGETS}/w", patch, type="application/json-patch+json")).status)
    stored = await api.get(f"{WIDGETS}/w")
    put = await api.ask("PUT", f"{WIDGETS}/w", stored | {"spec": nested(levels, 1, "a")})
    assert {*statuses, put.status} <= {200, 201, 400, 404, 422}
    for path in (WIDGETS, *(f"{WIDGETS}/{each['metadata']['name']}" for each in (await api.get(WIDGETS))["items"])):
        for accept in ("application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"):
            assert (await api.ask("GET", path, headers={"Accept": accept})).status == 200


@pytest.mark.parametrize("around", [("properties", "a"), ("items",), ("additionalProperties",), ("not",)])
@pytest.mark.parametrize("levels", [60, 150, 250, 450])
async def test_definitions_that_are_nested_deep(api: Served, levels: int, around: tuple[str, ...]) -> None:
    schema = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "array" if around == ("items",) else "object", **nested(1, schema, *around)}
    answer = await api.ask("POST", DEFINITIONS, definition(version(spec=schema)))
    assert answer.status in (201, 400, 422), answer.body
    if answer.status == 201:
        await established(api)
    for path in ("/openapi/v2", "/openapi/v3/apis/example.com/v1"):
        assert (await api.ask("GET", path)).status in (200, 404)
    for accept in ("application/yaml", "application/json"):
        assert (await api.ask("GET", DEFINITIONS, headers={"Accept": accept})).status == 200


# --- JSON inside other texts ---------------------------------------------------------------------------

DEEP = "[" * 5000 + "]" * 5000
ODD = (
    *(
        "",
        "x",
        "null",
        "1",
        "[1]",
        "[null]",
        "[[]]",
        "{}",
        '{"":1}',
        "[1e400]",
        f"[{LONG}]",
        DEEP,
        r'"\ud800"',
        '"\x00"',
    ),
    *(
        '[{"type":[]}]',
        '[{"type":5}]',
        '[{"type":1,"status":{}}]',
        '[{"lastTransitionTime":5,"type":"a","status":"b"}]',
    ),
    *('[{"type":"Resource","resource":5}]', '[{"type":"Resource","resource":{"current":7,"name":[]}}]'),
    '[{"type":"Resource","resource":{"name":5,"targetAverageUtilization":"x","currentAverageUtilization":[]}}]',
    '[{"type":"External","external":{"metricName":[],"metricSelector":7,"currentValue":{},"targetValue":"x"}}]',
    '[{"type":"Object","object":{"target":5,"metricName":5,"averageValue":"1","targetValue":"1","currentValue":"1"}}]',
    *('{"ScaleUp":5}', '{"ScaleUp":{"Policies":[1]}}', '{"ScaleDown":{"Policies":7,"SelectPolicy":[]}}'),
)
AUTOSCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize("word", ["metrics", "current-metrics", "conditions", "behavior"])
async def test_annotations_that_stand_for_fields(api: Served, word: str) -> None:
    """What is stored has the types of its fields, so that every reader, in every format, gets it."""
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    for number, text in enumerate(ODD):
        meta = {"name": f"h{number}", "annotations": {f"autoscaling.alpha.kubernetes.io/{word}": text}}
        sent = {"metadata": meta, "spec": {"maxReplicas": 3, "scaleTargetRef": target}}
        made = await api.ask("POST", AUTOSCALERS.format("v1"), sent)
        assert made.status in (201, 422), (text[:80], made)
        if made.status == 201:
            stored = await api.get(f"{AUTOSCALERS.format('v2')}/h{number}")
            await api.put(f"{AUTOSCALERS.format('v2')}/h{number}", stored)
            status = await api.ask("PUT", f"{AUTOSCALERS.format('v1')}/h{number}/status", {**made.json, **sent})
            assert status.status in (200, 422), (text[:80], status)
    for version_ in ("v1", "v2"):
        for accept in ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf", TABLE):
            listed = await api.ask("GET", AUTOSCALERS.format(version_), headers={"Accept": accept})
            assert listed.status == 200, (accept, listed)


@pytest.mark.parametrize("kind", "kvi")
async def test_steps_of_managed_fields(api: Served, kind: str) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}}
    for text in (*ODD, "1", "1.0", "-0", LONG, f"1{'0' * 30}", '{"a":1e400}', f'{{"a":{DEEP}}}', '{"a":{"b":[]}}'):
        await api.post(CONFIGMAPS, {"metadata": {"name": "m"}, "data": {"a": "0"}})
        entry = {"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
        fields = {"f:data": {f"{kind}:{text}": {}, "f:a": {}}}
        patch = {"metadata": {"managedFields": [{**entry, "fieldsV1": fields}]}}
        patched = await api.ask("PATCH", f"{CONFIGMAPS}/m", patch, type="application/merge-patch+json")
        assert patched.status in (200, 400, 422), (text[:80], patched)
        for query in ("fieldManager=y", "fieldManager=y&force=true"):
            applied = await api.ask("PATCH", f"{CONFIGMAPS}/m?{query}", config, type=APPLY)
            assert applied.status in (200, 409), (text[:80], applied)
        await api.delete(f"{CONFIGMAPS}/m")


async def test_what_was_applied_last(api: Served) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}}
    for text in (*ODD, f'{{"apiVersion":"v1","data":{DEEP}}}', '{"apiVersion":"v1","data":{"a":[]}}'):
        last = {"kubectl.kubernetes.io/last-applied-configuration": text}
        made = {"metadata": {"name": "m", "annotations": last}, "data": {"a": "0"}}
        await api.post(f"{CONFIGMAPS}?fieldManager=kubectl-client-side-apply", made)
        applied = await api.ask("PATCH", f"{CONFIGMAPS}/m?fieldManager=y", config, type=APPLY)
        assert applied.status in (200, 409), (text[:80], applied)
        await api.delete(f"{CONFIGMAPS}/m")


@pytest.mark.parametrize(
    "text", [*ODD, *(f'{{"v":"meta.k8s.io/v1","start":"a","rv":{rv}}}' for rv in (2**63, -(2**64)))]
)
@pytest.mark.parametrize("limit", ["", "&limit=1"])
async def test_continue_tokens(api: Served, text: str, limit: str) -> None:
    token = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    answer = await api.ask("GET", f"{CONFIGMAPS}?continue={token}{limit}")
    # An empty token is none.
    assert answer.status == (400 if text else 200)


# --- custom resources whose schema changes beneath them ------------------------------------------------

TYPES: dict[str, tuple[dict[str, Any], Any]] = {
    "text": ({"type": "string"}, "x"),
    "number": ({"type": "integer"}, 1),
    "list": ({"type": "array", "items": {"type": "string"}}, ["a"]),
    "set": ({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}, ["a"]),
    "map of lists": (
        {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
        {"a": ["b"]},
    ),
    "struct": ({"type": "object", "properties": {"name": {"type": "string"}}}, {"name": "b"}),
    "list map": (
        {
            "type": "array",
            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        [{"name": "a"}],
    ),
}


def typed_spec(type: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": TYPES[type][0], "b": {"type": "string"}}}


@pytest.mark.parametrize("before", TYPES)
@pytest.mark.parametrize("after", TYPES)
async def test_a_field_that_has_another_type_now(api: Served, before: str, after: str) -> None:
    await api.post(DEFINITIONS, definition(version(spec=typed_spec(before))))
    await established(api)
    made = await api.ask("PATCH", f"{WIDGETS}/w?fieldManager=m", widget("w", a=TYPES[before][1], b="c"), type=APPLY)
    assert made.status == 201
    changed = {"spec": {"versions": [version(spec=typed_spec(after))]}}
    shown = asyncio.Event()
    stop = api.api.operations.kinds.on_change(lambda old, new: shown.set())
    await api.merge(f"{DEFINITIONS}/widgets.example.com", changed)
    if before != after:
        await shown.wait()
    stop()
    for spec in ({"a": TYPES[after][1]}, {"b": "d"}, {}):
        applied = await api.ask("PATCH", f"{WIDGETS}/w?fieldManager=m", widget("w", **spec), type=APPLY)
        if applied.status == 500:
            assert applied.json["message"].startswith(
                "failed to create typed live object (/w; example.com/v1, Kind=Widget): "
            )
        assert applied.status in (200, 422, 500), applied
    for accept in ("application/json", "application/yaml", TABLE):
        assert (await api.ask("GET", WIDGETS, headers={"Accept": accept})).status == 200
    assert (await api.ask("DELETE", f"{WIDGETS}/w")).status == 200


@pytest.mark.parametrize("sent", TYPES)
@pytest.mark.parametrize("declared", TYPES)
async def test_what_a_policy_is_to_edit_is_not_validated_yet(api: Served, sent: str, declared: str) -> None:
    await api.post(DEFINITIONS, definition(version(spec=typed_spec(declared))))
    await established(api)
    rules = [{"apiGroups": ["example.com"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["widgets"]}]
    edit = "Object{spec: Object.spec{a: %s}}"
    value = {
        "map of lists": "{'a': ['c']}",
        "struct": "Object.spec.a{name: 'c'}",
        "list map": "[Object.spec.a{name: 'c'}]",
    }
    value |= {"text": "'c'", "number": "2", "list": "['c']", "set": "['c']"}
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "reinvocationPolicy": "Never",
        "mutations": [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": edit % value[declared]}}
        ],
    }
    group = "/apis/admissionregistration.k8s.io/v1"
    await api.post(f"{group}/mutatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec})
    await api.post(f"{group}/mutatingadmissionpolicybindings", {"metadata": {"name": "b"}, "spec": {"policyName": "p"}})
    made = await api.ask("POST", WIDGETS, widget("w", a=TYPES[sent][1]))
    assert made.status in (201, 422), made
