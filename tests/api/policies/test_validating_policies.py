"""ValidatingAdmissionPolicies: what recordings do not show."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.policies.admission_policies import SECRETS, bind, policy, secret
from tests.api.served import Answer, Served


async def created(api: Served, name: str, **more: Any) -> Answer:
    return await api.ask("POST", SECRETS, secret(name, **more))


async def test_a_policy_without_a_binding_does_nothing(api: Served) -> None:
    await policy(api, "p", validations=[{"expression": "false"}])
    assert (await created(api, "a")).status == 201


async def test_a_policy_that_changes_or_goes_is_evaluated_so_from_the_next_write_on(api: Served) -> None:
    await policy(api, "p", validations=[{"expression": "false"}])
    await bind(api, "b", "p")
    assert (await created(api, "a")).status == 422
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/p"
    await api.merge(path, {"spec": {"validations": [{"expression": "object.metadata.name == 'a'"}]}})
    assert (await created(api, "a")).status == 201
    assert (await created(api, "b")).status == 422
    await api.delete(path)
    assert (await created(api, "b")).status == 201


async def test_a_variable_that_fails_is_told_with_its_name(api: Served) -> None:
    variables = [{"name": "v", "expression": "object.metadata.labels.none"}]
    await policy(api, "p", variables=variables, validations=[{"expression": "variables.v == 'x'"}])
    await bind(api, "b", "p")
    said = (await created(api, "a")).json["message"]
    assert 'composited variable "v" fails to evaluate: no such key: labels' in said


async def test_parameters_are_selected_by_label_and_each_has_to_be_satisfied(api: Served) -> None:
    for name, most in (("one", "3"), ("two", "1")):
        meta = {"name": name, "labels": {"limit": "yes"}}
        await api.post("/api/v1/namespaces/default/configmaps", {"metadata": meta, "data": {"most": most}})
    expression = "size(object.data) <= int(params.data.most)"
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    await policy(api, "p", paramKind=kind, validations=[{"expression": expression, "message": "too many"}])
    chosen = {"selector": {"matchLabels": {"limit": "yes"}}, "parameterNotFoundAction": "Deny"}
    await bind(api, "b", "p", paramRef=chosen)
    assert (await created(api, "a", data={"x": "eA=="})).status == 201
    assert (await created(api, "b", data={"x": "eA==", "y": "eA=="})).status == 422


@pytest.mark.parametrize(
    ("kind", "reference", "sentence"),
    [
        (
            {"apiVersion": "example.com/v1", "kind": "Limit"},
            {"name": "x"},
            "failed to configure policy: failed to find resource referenced by paramKind: 'example.com/v1, Kind=Limit'",
        ),
        (
            {"apiVersion": "v1", "kind": "Node"},
            {"name": "x", "namespace": "default"},
            "failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped `paramKind`",
        ),
    ],
)
async def test_parameters_that_cannot_be_had(api: Served, kind: Any, reference: Any, sentence: str) -> None:
    await policy(api, "p", paramKind=kind, validations=[{"expression": "true"}])
    await bind(api, "b", "p", paramRef={**reference, "parameterNotFoundAction": "Deny"})
    said = (await created(api, "a")).json["message"]
    which = "'p'" if sentence.startswith("failed to configure policy") else "'p' with binding 'b'"
    assert said.endswith(f"ValidatingAdmissionPolicy {which} denied request: {sentence}")


async def test_a_condition_that_fails_refuses_unless_failures_are_ignored(api: Served) -> None:
    conditions = [{"name": "c", "expression": "object.metadata.labels.x == 'y'"}]
    await policy(api, "p", matchConditions=conditions, validations=[{"expression": "true"}])
    await bind(api, "b", "p")
    refused = await created(api, "a")
    assert refused.json["message"].endswith(
        "expression 'object.metadata.labels.x == 'y'' resulted in error: no such key: labels"
    )
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/p"
    await api.merge(path, {"spec": {"failurePolicy": "Ignore"}})
    assert (await created(api, "a")).status == 201


async def test_the_request_and_its_rights_can_be_asked(api: Served) -> None:
    expressions = [
        "request.userInfo.username == 'admin' && 'system:masters' in request.userInfo.groups",
        "request.operation == 'CREATE' && request.resource.resource == 'secrets' && request.namespace == 'default'",
        "authorizer.requestResource.check('create').allowed()",
        "!authorizer.serviceAccount('default', 'nobody').group('').resource('secrets').check('get').allowed()",
        "!authorizer.serviceAccount('default', 'nobody').path('/metrics').check('get').allowed()",
    ]
    await policy(api, "p", validations=[{"expression": expression} for expression in expressions])
    await bind(api, "b", "p")
    answer = await created(api, "a")
    assert answer.status == 201, answer


async def test_expressions_that_cost_too_much_are_stopped(api: Served) -> None:
    many = "[" + ",".join(map(str, range(60))) + "]"
    loops = f"{many}.all(a, {many}.all(b, {many}.all(c, {many}.all(d, a + b + c + d >= 0))))"
    await policy(api, "p", validations=[{"expression": loops}])
    await bind(api, "b", "p")
    refused = await created(api, "a")
    assert refused.status == 422
    assert "cost" in refused.json["message"]


async def test_all_libraries_of_kubernetes_can_be_used(api: Served) -> None:
    expressions = [
        "quantity('1Gi').isGreaterThan(quantity('500Mi'))",
        "!format.dns1123Label().validate(object.metadata.name).hasValue()",
    ]
    await policy(api, "p", validations=[{"expression": expression} for expression in expressions])
    await bind(api, "b", "p")
    assert (await created(api, "a")).status == 201


async def test_what_cannot_be_configured_refuses_whatever_the_actions(api: Served) -> None:
    await policy(api, "p", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}, validations=[{"expression": "true"}])
    none = {"name": "none", "parameterNotFoundAction": "Deny"}
    await bind(api, "b", "p", paramRef=none, validationActions=["Warn"])
    assert (await created(api, "a")).status == 422


async def test_an_annotation_that_fails_refuses_unless_failures_are_ignored(api: Served) -> None:
    notes = [{"key": "k", "valueExpression": "string(object.metadata.labels.none)"}]
    await policy(api, "p", validations=[{"expression": "true"}], auditAnnotations=notes)
    await bind(api, "b", "p", validationActions=["Audit"])
    refused = await created(api, "a")
    assert refused.status == 422
    assert refused.json["message"].endswith(
        "denied request: expression 'string(object.metadata.labels.none)' resulted in error: no such key: labels"
    )
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/p"
    await api.merge(path, {"spec": {"failurePolicy": "Ignore"}})
    assert (await created(api, "a")).status == 201
