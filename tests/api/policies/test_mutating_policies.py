"""MutatingAdmissionPolicies: what they make of objects, and when they refuse."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.policies.admission_policies import GROUP, RULES, SECRETS, bind, policy, secret
from tests.api.served import Served


def merged(expression: str) -> dict[str, Any]:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patched(expression: str) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


async def mutating(api: Served, name: str, *mutations: dict[str, Any], **more: Any) -> None:
    spec = {"reinvocationPolicy": "Never", **more}
    await policy(api, name, kind="mutating", mutations=list(mutations), **spec)
    await bind(api, name, name, kind="mutating")


async def test_an_object_is_merged_in(api: Served) -> None:
    await mutating(api, "p", merged("Object{metadata: Object.metadata{labels: {'made': object.metadata.name}}}"))
    made = await api.post(SECRETS, secret("a") | {"metadata": {"name": "a", "labels": {"own": "1"}}})
    assert made["metadata"]["labels"] == {"own": "1", "made": "a"}


async def test_lists_of_the_object_are_merged_by_their_keys(api: Served) -> None:
    expression = (
        "Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: 'mesh', image: 'mesh:1', "
        "restartPolicy: 'Always'}]}}"
    )
    conditions = [
        {"name": "once", "expression": "!object.spec.?initContainers.orValue([]).exists(c, c.name == 'mesh')"}
    ]
    await mutating(api, "p", merged(expression), matchConditions=conditions)
    spec = {"initContainers": [{"name": "own", "image": "i"}], "containers": [{"name": "c", "image": "i"}]}
    pod = {"metadata": {"name": "a"}, "spec": spec}
    made = await api.post("/api/v1/namespaces/default/pods", pod)
    found = {each["name"]: each for each in made["spec"]["initContainers"]}
    assert set(found) == {"own", "mesh"}
    assert found["mesh"]["terminationMessagePolicy"] == "File", "it has its defaults"


async def test_a_patch_is_applied_and_later_mutations_see_it(api: Served) -> None:
    first = patched(
        "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}, JSONPatch{op: 'add', "
        "path: '/metadata/annotations/' + jsonpatch.escapeKey('example.com/a'), value: 'b'}]"
    )
    second = merged("Object{metadata: Object.metadata{labels: {'saw': object.metadata.annotations['example.com/a']}}}")
    await mutating(api, "p", first, second)
    made = await api.post(SECRETS, secret("a"))
    assert made["metadata"]["annotations"] == {"example.com/a": "b"}
    assert made["metadata"]["labels"] == {"saw": "b"}


async def test_variables_and_parameters_can_be_used(api: Served) -> None:
    await api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "team"}, "data": {"team": "blue"}})
    await policy(
        api,
        "p",
        kind="mutating",
        reinvocationPolicy="Never",
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        variables=[{"name": "team", "expression": "params.data.team"}],
        mutations=[merged("Object{metadata: Object.metadata{labels: {'team': variables.team}}}")],
    )
    await bind(api, "b", "p", kind="mutating", paramRef={"name": "team", "parameterNotFoundAction": "Deny"})
    made = await api.post(SECRETS, secret("a"))
    assert made["metadata"]["labels"] == {"team": "blue"}


@pytest.mark.parametrize(("again", "seen"), [("IfNeeded", "2"), ("Never", "0")])
async def test_a_policy_is_evaluated_again_if_another_changed_the_object_after_it(
    api: Served, again: str, seen: str
) -> None:
    """The policy counts labels: in the second round it sees its own and the one that was added after it."""
    sees = "Object{metadata: Object.metadata{labels: {'seen': string(size(object.metadata.?labels.orValue({})))}}}"
    await mutating(api, "a", merged(sees), reinvocationPolicy=again)
    await mutating(api, "b", merged("Object{metadata: Object.metadata{labels: {'later': 'yes'}}}"))
    made = await api.post(SECRETS, secret("a"))
    assert made["metadata"]["labels"] == {"later": "yes", "seen": seen}


async def test_a_view_of_an_object_is_mutated(api: Served) -> None:
    rules = [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments/scale"]}]
    most = merged("Object{spec: Object.spec{replicas: 3}}")
    conditions = [{"name": "many", "expression": "object.kind == 'Scale' && object.spec.replicas > 3"}]
    await mutating(api, "p", most, matchConstraints={"resourceRules": rules}, matchConditions=conditions)
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    await api.post("/apis/apps/v1/namespaces/default/deployments", {"metadata": {"name": "web"}, "spec": spec})
    path = "/apis/apps/v1/namespaces/default/deployments/web"
    assert (await api.merge(f"{path}/scale", {"spec": {"replicas": 50}}))["spec"]["replicas"] == 3
    assert (await api.get(path))["spec"]["replicas"] == 3


async def test_patches_can_have_objects_as_values(api: Served) -> None:
    container = "Object.spec.initContainers{name: 'mesh', image: 'mesh:' + object.metadata.name}"
    adds = f"[JSONPatch{{op: 'add', path: '/spec/initContainers', value: [{container}]}}]"
    await mutating(api, "p", patched(adds))
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    made = await api.post("/api/v1/namespaces/default/pods", pod)
    assert [each["image"] for each in made["spec"]["initContainers"]] == ["mesh:a"]


async def test_a_patch_whose_test_fails_is_left_out(api: Served) -> None:
    test = "JSONPatch{op: 'test', path: '/metadata/name', value: 'b'}"
    add = "JSONPatch{op: 'add', path: '/metadata/labels', value: {'tested': 'yes'}}"
    await mutating(api, "p", patched(f"[{test}, {add}]"))
    assert "labels" not in (await api.post(SECRETS, secret("a")))["metadata"]
    assert (await api.post(SECRETS, secret("b")))["metadata"]["labels"] == {"tested": "yes"}


async def test_mutations_after_one_that_failed_are_made_if_failures_are_ignored(api: Served) -> None:
    bad = patched("[JSONPatch{op: 'remove', path: '/metadata/labels/none'}]")
    good = merged("Object{metadata: Object.metadata{labels: {'good': 'yes'}}}")
    await mutating(api, "p", bad, good, failurePolicy="Ignore")
    assert (await api.post(SECRETS, secret("a")))["metadata"]["labels"] == {"good": "yes"}


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        (
            "Object{spec: Object.spec{nope: 1}}",
            "error applying patch: failed to convert patch object to typed object: .spec.nope: field not declared in "
            "schema",
        ),
        (
            "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'c', args: ['x']}]}}",
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
            ".spec.containers[0].args",
        ),
    ],
)
async def test_what_cannot_be_merged_in_refuses(api: Served, expression: str, sentence: str) -> None:
    await mutating(api, "p", merged(expression))
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    refused = await api.ask("POST", "/api/v1/namespaces/default/pods", pod)
    assert refused.status == 422
    assert refused.json["message"].endswith(f"policy 'p' with binding 'p' denied request: {sentence}")


async def test_what_fails_refuses_unless_failures_are_ignored(api: Served) -> None:
    await mutating(api, "p", patched("[JSONPatch{op: 'remove', path: '/metadata/labels/none'}]"))
    refused = await api.ask("POST", SECRETS, secret("a"))
    assert refused.status == 422
    assert "policy 'p' with binding 'p' denied request: " in refused.json["message"]
    await api.merge(f"{GROUP}/mutatingadmissionpolicies/p", {"spec": {"failurePolicy": "Ignore"}})
    assert (await api.ask("POST", SECRETS, secret("a"))).status == 201


@pytest.mark.parametrize(
    ("mutation", "field", "sentence"),
    [
        (merged("'x'"), "applyConfiguration", "must evaluate to Object but got string"),
        (patched("1"), "jsonPatch", "must evaluate to list(JSONPatch) but got int"),
        (
            merged("nope"),
            "applyConfiguration",
            "<input>:1:1: undeclared reference to 'nope'",
        ),
    ],
)
async def test_expressions_are_checked_when_the_policy_is_made(
    api: Served, mutation: Any, field: str, sentence: str
) -> None:
    spec = {
        "reinvocationPolicy": "Never",
        "mutations": [mutation],
        "matchConstraints": {"resourceRules": RULES},
    }
    refused = await api.ask("POST", f"{GROUP}/mutatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec})
    assert refused.status == 422
    assert refused.json["details"]["causes"][0]["field"] == f"spec.mutations[0].{field}.expression"
    assert sentence in refused.json["message"]


@pytest.mark.parametrize(
    "mutation",
    [
        patched("[JSONPatch{op: 'add', path: '/metadata/annotations', value: variables.v40}]"),
        merged("Object{metadata: Object.metadata{annotations: variables.v40}}"),
    ],
)
async def test_what_is_too_large_to_be_written_out_is_not_merged(api: Served, mutation: dict[str, Any]) -> None:
    """Each variable has the one before twice in it: the last would have a million million entries."""
    doubled = (f"{{'a': variables.v{i}, 'b': variables.v{i}}}" for i in range(40))
    variables = [{"name": f"v{i}", "expression": each} for i, each in enumerate(["{'a': 'b'}", *doubled])]
    await mutating(api, "p", mutation, variables=variables)
    answer = await api.ask("POST", SECRETS, secret("a"))
    assert answer.status == 422
    assert "actual cost limit exceeded" in answer.json["message"]
