"""Representations: the same object as JSON, YAML, a Table and bare metadata."""

import asyncio

import pytest
import yaml

from seamark.api.http.negotiate import AVAILABLE
from seamark.haste import LARGE_STORED

BASE = "/api/v1/namespaces/default/configmaps"
META = "application/json;as=PartialObjectMetadata{};v=v1;g=meta.k8s.io"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
async def two(api):
    for name in ("a", "b"):
        await api.post(BASE, {"metadata": {"name": name}, "data": {"k": "v"}})
    return api


async def test_yaml_is_the_same_object(two):
    for path in (BASE, f"{BASE}/a"):
        answer = await two.ask("GET", path, headers={"accept": "application/yaml"})
        assert answer.type == "application/yaml"
        assert yaml.safe_load(answer.body) == await two.get(path)


async def test_lists_leave_out_what_all_items_share(two):
    listing = await two.get(BASE)
    assert listing["kind"] == "ConfigMapList"
    assert all("kind" not in item and "apiVersion" not in item for item in listing["items"])
    single = await two.get(f"{BASE}/a")
    assert {**listing["items"][0], "kind": "ConfigMap", "apiVersion": "v1"} == single


async def test_metadata_only(two):
    single = await two.get(f"{BASE}/a", headers={"accept": META.format("")})
    assert set(single) == {"kind", "apiVersion", "metadata"}
    listing = await two.get(BASE, headers={"accept": META.format("List")})
    assert listing["kind"] == "PartialObjectMetadataList"
    assert [set(item) for item in listing["items"]] == [{"kind", "apiVersion", "metadata"}] * 2


@pytest.mark.parametrize(
    ("path", "list", "sentence"),
    [
        (BASE, "", "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"),
        (
            f"{BASE}/a",
            "List",
            "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)",
        ),
        (
            "/apis/apps/v1/deployments",
            "",
            "you requested PartialObjectMetadata, but the requested object is a list (*apps.DeploymentList)",
        ),
    ],
)
async def test_metadata_in_the_wrong_form(two, path, list, sentence):
    for accept in (META.format(list), f"{META.format(list)},application/json"):
        answer = await two.ask("GET", path, headers={"accept": accept})
        assert (answer.status, answer.json["message"]) == (406, sentence)


async def test_what_is_missing_is_missing_in_every_form(two):
    assert (await two.ask("GET", f"{BASE}/c", headers={"accept": META.format("List")})).status == 404


async def test_a_review_has_no_table(api):
    review = {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = await api.ask("POST", path, review, headers={"accept": TABLE})
    sentence = f"only the following media types are accepted: {AVAILABLE}"
    assert (answer.status, answer.json["reason"], answer.json["message"]) == (406, "NotAcceptable", sentence)
    either = await api.ask("POST", path, review, headers={"accept": f"{TABLE},application/json"})
    assert (either.status, either.json["kind"]) == (201, "SelfSubjectAccessReview")


async def test_a_scale_has_a_table_of_its_own(api):
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await api.post(deployments, {"metadata": {"name": "d"}, "spec": spec})
    table = await api.get(f"{deployments}/d/scale", headers={"accept": TABLE})
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    assert table["rows"][0]["cells"][:3] == ["d", 3, 0]
    metadata = await api.get(f"{deployments}/d/scale", headers={"accept": META.format("")})
    assert metadata["kind"] == "PartialObjectMetadata"


@pytest.mark.parametrize(
    ("include", "kind"),
    [("", "PartialObjectMetadata"), ("Metadata", "PartialObjectMetadata"), ("Object", "ConfigMap"), ("None", None)],
)
async def test_tables(two, include, kind):
    table = await two.get(f"{BASE}?includeObject={include}", headers={"accept": TABLE})
    assert [row["cells"][0] for row in table["rows"]] == ["a", "b"]
    assert len(table["columnDefinitions"]) == len(table["rows"][0]["cells"])
    shown = table["rows"][0]["object"]
    assert (shown and shown["kind"]) == kind
    single = await two.get(f"{BASE}/a", headers={"accept": TABLE})
    assert single["metadata"]["resourceVersion"] == single["rows"][0]["object"]["metadata"]["resourceVersion"]


async def test_tables_that_cannot_be(two):
    answer = await two.ask("GET", f"{BASE}?includeObject=Half", headers={"accept": TABLE})
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")
    assert (await two.ask("GET", f"{BASE}?includeObject=Half")).status == 200


async def test_every_kind_in_every_representation(api):
    from random_requests import kinds

    for _, path in kinds():
        for accept in ("application/json", "application/yaml", TABLE, META.format("List")):
            answer = await api.ask("GET", path, headers={"accept": accept})
            assert (answer.status, answer.type) == (200, accept.partition(";")[0]), (path, accept, answer)


@pytest.mark.parametrize(
    "accept",
    [
        TABLE,
        META.format("List"),
        "application/vnd.kubernetes.protobuf",
        META.format("List").replace("json", "vnd.kubernetes.protobuf"),
    ],
)
async def test_others_are_answered_while_a_long_list_is_made(api, accept):
    for n in range(40):
        await api.post(BASE, {"metadata": {"name": f"m{n:02d}"}, "data": {"a": "x" * (LARGE_STORED // 10)}})
    listing = asyncio.ensure_future(api.ask("GET", BASE, headers={"accept": accept}))
    turns = 0
    while not listing.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 3
    answer = listing.result()
    pages, token = [], ""
    while not pages or token:
        page = await api.ask("GET", f"{BASE}?limit=5&continue={token}", headers={"accept": accept})
        plain = await api.get(f"{BASE}?limit=5&continue={token}")
        token = plain["metadata"].get("continue", "")
        pages.append(page)
    assert answer.status == 200
    if accept == TABLE:
        rows = [row for page in pages for row in page.json["rows"]]
        assert [row["object"] for row in answer.json["rows"]] == [row["object"] for row in rows]
    elif "protobuf" in accept:
        assert answer.body.startswith(b"k8s\0")
        assert all(b"m%02d" % n in answer.body for n in range(40))
    else:
        assert answer.json["items"] == [item for p in pages for item in p.json["items"]]


async def test_the_schemas_in_a_table_are_in_the_order_in_which_they_are_matched(api):
    path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
    for name, precedence in (("a", 9000), ("b", 100), ("c", 100)):
        spec = {"matchingPrecedence": precedence, "priorityLevelConfiguration": {"name": "l"}}
        await api.post(path, {"metadata": {"name": name}, "spec": spec})
    shown = await api.get(path, headers={"accept": TABLE})
    assert [row["cells"][0] for row in shown["rows"]] == ["b", "c", "a"]
    assert [item["metadata"]["name"] for item in (await api.get(path))["items"]] == ["a", "b", "c"]
