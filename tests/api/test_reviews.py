"""Reviews: questions with answers, never stored."""

import pytest
from served import ADMIN, OTHER

AUTHN, AUTHZ = "/apis/authentication.k8s.io/v1", "/apis/authorization.k8s.io/v1"
LOCAL = f"{AUTHZ}/namespaces/default/localsubjectaccessreviews"


def access(**spec):
    return {"spec": spec}


async def test_token_reviews(api):
    found = await api.post(f"{AUTHN}/tokenreviews", {"spec": {"token": OTHER}})
    assert found["status"] == {
        "authenticated": True,
        "user": {"username": "other", "groups": ["system:authenticated"]},
        "audiences": ["https://kubernetes.default.svc.cluster.local"],
    }
    unknown = await api.post(f"{AUTHN}/tokenreviews", {"spec": {"token": "x"}})
    assert unknown["status"] == {"user": {}, "error": "invalid bearer token"}
    answer = await api.ask("POST", f"{AUTHN}/tokenreviews", {})
    assert (answer.status, answer.json["message"]) == (400, "token is required for TokenReview in authentication")


async def test_who_am_i(api):
    found = await api.post(f"{AUTHN}/selfsubjectreviews", {})
    assert found["status"]["userInfo"]["username"] == "admin"
    assert found["status"]["userInfo"]["uid"] == "admin-uid"


@pytest.mark.parametrize(
    ("token", "spec", "allowed"),
    [
        (ADMIN, {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}, True),
        (OTHER, {"resourceAttributes": {"verb": "get", "resource": "pods"}}, False),
        (OTHER, {"nonResourceAttributes": {"verb": "get", "path": "/version"}}, True),
        (OTHER, {"nonResourceAttributes": {"verb": "get"}}, False),
    ],
)
async def test_may_i(api, token, spec, allowed):
    found = await api.post(f"{AUTHZ}/selfsubjectaccessreviews", {"spec": spec}, token=token)
    assert found["status"]["allowed"] is allowed


async def test_may_they(api):
    attributes = {"resourceAttributes": {"verb": "get", "resource": "pods"}}
    for spec, allowed in (({"user": "x"}, False), ({"groups": ["system:masters"]}, True)):
        asked = {"spec": {**spec, **attributes}}
        assert (await api.post(f"{AUTHZ}/subjectaccessreviews", asked))["status"]["allowed"] is allowed
        asked["spec"]["resourceAttributes"] = {**attributes["resourceAttributes"], "namespace": "default"}
        found = await api.post(LOCAL, asked)
        assert (found["status"]["allowed"], found["metadata"]) == (allowed, {"namespace": "default"})
    assert (await api.ask("POST", f"{AUTHZ}/subjectaccessreviews", {"spec": {"user": "x"}}, token=OTHER)).status == 403


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"resourceAttributes": {}, "nonResourceAttributes": {}},
        {"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"verb": "get"}},
    ],
)
async def test_questions_about_nothing_or_two_things(api, spec):
    for path in ("selfsubjectaccessreviews", "subjectaccessreviews"):
        answer = await api.ask("POST", f"{AUTHZ}/{path}", {"spec": spec})
        assert (answer.status, answer.json["reason"]) == (422, "Invalid")


@pytest.mark.parametrize(
    ("path", "review", "fields"),
    [
        (f"{AUTHZ}/selfsubjectaccessreviews", {"metadata": {"name": "x"}}, ["metadata"]),
        (f"{AUTHZ}/subjectaccessreviews", {"metadata": {"labels": {"a": "b"}}}, ["metadata"]),
        (LOCAL, {"metadata": {"name": "x"}}, ["metadata", "spec.resourceAttributes.namespace"]),
        (LOCAL, {}, ["spec.resourceAttributes.namespace"]),
    ],
)
async def test_questions_are_about_one_place_and_have_no_name(api, path, review, fields):
    spec = {"user": "x", "resourceAttributes": {"verb": "get", "resource": "pods"}}
    if path.endswith("selfsubjectaccessreviews"):
        del spec["user"]
    answer = await api.ask("POST", path, {**review, "spec": spec})
    assert answer.status == 422
    assert [cause["field"] for cause in answer.json["details"]["causes"]] == fields


async def test_selectors_of_questions_are_whole(api):
    labels = [{"key": "a b", "operator": "In"}, {"key": "c", "operator": "Exists", "values": ["d"]}, {"key": "e"}]
    asked = {"verb": "list", "resource": "pods", "labelSelector": {"rawSelector": "x", "requirements": labels}}
    for selector in ({}, {"requirements": [{"operator": "In"}]}):
        spec = {"user": "x", "resourceAttributes": {**asked, "fieldSelector": selector}}
        found = await api.ask("POST", f"{AUTHZ}/subjectaccessreviews", {"spec": spec})
        assert found.status == 422
        causes = [(cause["field"], cause["message"]) for cause in found.json["details"]["causes"]]
        at = "spec.resourceAttributes"
        needed = f"when {at}.fieldSelector is specified, requirements or rawSelector is required"
        first = (
            [(f"{at}.fieldSelector.requirements", f"Required value: {needed}")]
            if not selector
            else [
                (f"{at}.fieldSelector.requirements[0].key", "Required value: must be specified"),
                (
                    f"{at}.fieldSelector.requirements[0].values",
                    "Required value: must be specified when `operator` is 'In' or 'NotIn'",
                ),
            ]
        )
        assert causes[: len(first)] == first
        assert [field.removeprefix(f"{at}.labelSelector.") for field, _ in causes[len(first) :]] == [
            "rawSelector",
            "requirements[0].values",
            "requirements[0].key",
            "requirements[1].values",
        ]


async def test_rules(api):
    answer = await api.ask("POST", f"{AUTHZ}/selfsubjectrulesreviews", {"spec": {}})
    assert (answer.status, answer.json["message"]) == (400, "no namespace on request")
    mine = await api.post(f"{AUTHZ}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    assert mine["status"]["resourceRules"] == [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    theirs = await api.post(f"{AUTHZ}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}, token=OTHER)
    assert theirs["status"]["incomplete"] is False
    assert theirs["status"]["resourceRules"][0]["verbs"] == ["create"]


async def test_nothing_is_kept(api):
    before = await api.store.revision()
    await api.post(f"{AUTHN}/tokenreviews", {"spec": {"token": "x"}})
    assert await api.store.revision() == before
    assert (await api.ask("GET", f"{AUTHN}/tokenreviews")).status == 405
