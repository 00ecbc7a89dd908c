"""Webhook configurations, admission policies and their bindings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from refusing import made, patched, refusals

from seamark.cel import Environment
from seamark.cel.types import Type
from seamark.errors import Object
from seamark.kinds.registration.policies import (
    MUTATING_POLICY,
    MUTATING_POLICY_BINDING,
    VALIDATING_POLICY,
    VALIDATING_POLICY_BINDING,
)
from seamark.kinds.registration.webhooks import MUTATING_WEBHOOK, VALIDATING_WEBHOOK

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}


def webhook(**more: Any) -> Object:
    return {
        "name": "h.example.com",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1/x"},
        "sideEffects": "None",
        "rules": [RULE],
        **more,
    }


def wrong_with(*webhooks: Object) -> list[str]:
    return refusals(VALIDATING_WEBHOOK, webhooks=list(webhooks))


def test_what_a_webhook_is_filled_up_with() -> None:
    obj = made(MUTATING_WEBHOOK, webhooks=[webhook(clientConfig={"service": {"name": "s", "namespace": "n"}})])
    (found,) = obj["webhooks"]
    assert found["clientConfig"]["service"]["port"] == 443
    assert found["rules"][0]["scope"] == "*"
    usual = {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10, "reinvocationPolicy": "Never"}
    assert {field: found[field] for field in usual} == usual
    assert (found["namespaceSelector"], found["objectSelector"]) == ({}, {})
    assert obj["metadata"]["generation"] == 1
    assert patched(MUTATING_WEBHOOK, obj, {"webhooks": []})["metadata"]["generation"] == 2
    assert MUTATING_WEBHOOK.row(obj, 0.0)[1] == 1


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({"name": "short.com"}, ['name: Invalid value: "short.com": should be a domain with at least three segments']),
        ({"name": "A_.b.c"}, ['name: Invalid value: "A_.b.c": a lowercase RFC 1123 subdomain']),
        ({"name": ""}, ["name: Required value"]),
        ({"sideEffects": None}, ["sideEffects: Required value: must specify one of None, NoneOnDryRun"]),
        ({"sideEffects": "Some"}, ['sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"']),
        (
            {"timeoutSeconds": 31},
            ["timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"],
        ),
        ({"failurePolicy": "x"}, ['failurePolicy: Unsupported value: "x": supported values: "Fail", "Ignore"']),
        ({"matchPolicy": "x"}, ['matchPolicy: Unsupported value: "x": supported values: "Equivalent", "Exact"']),
        ({"admissionReviewVersions": []}, ["admissionReviewVersions: Required value: must specify one of v1, v1beta1"]),
        (
            {"admissionReviewVersions": ["v1", "v1"]},
            ['admissionReviewVersions[1]: Invalid value: "v1": duplicate version'],
        ),
        (
            {"admissionReviewVersions": ["no good"]},
            [
                'admissionReviewVersions[0]: Invalid value: "no good": a DNS-1035 label',
                'admissionReviewVersions: Invalid value: ["no good"]: must include at least one of v1, v1beta1',
            ],
        ),
        (
            {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
            ["objectSelector.matchExpressions"],
        ),
        (
            {"matchConditions": [{"name": "a", "expression": ""}, {"name": "a", "expression": "true"}]},
            ["matchConditions[0].expression: Required value", 'matchConditions[1].name: Duplicate value: "a"'],
        ),
        (
            {"matchConditions": [{"name": "", "expression": "true"}, {"name": "a b", "expression": "true"}]},
            ["matchConditions[0].name: Required value", 'matchConditions[1].name: Invalid value: "a b": name part'],
        ),
    ],
)
def test_webhooks_that_are_refused(more: Object, wrong: list[str]) -> None:
    found = wrong_with(webhook(**more))
    assert len(found) == len(wrong), found
    for sentence, start in zip(found, wrong, strict=True):
        assert sentence.startswith(f"webhooks[0].{start}"), sentence


def test_names_of_webhooks_are_unique() -> None:
    assert wrong_with(webhook(), webhook()) == ['webhooks[1].name: Duplicate value: "h.example.com"']


@pytest.mark.parametrize(
    ("client", "wrong"),
    [
        ({}, ["Required value: exactly one of url or service is required"]),
        ({"url": "http://h/x"}, ["url: Invalid value: \"http\": 'https' is the only allowed URL scheme"]),
        ({"url": "https://u:p@h/x"}, ['url: Invalid value: "u:p": user information is not permitted in the URL']),
        ({"url": "https://h/x?y=1#z"}, ['url: Invalid value: "z": fragments', 'url: Invalid value: "y=1": query']),
        ({"url": "https:///x"}, ['url: Invalid value: "": host must be specified']),
        ({"url": "127.0.0.1:80"}, ['url: Required value: url must be a valid URL: parse "127.0.0.1:80": first path']),
        ({"url": ":x"}, ['url: Required value: url must be a valid URL: parse ":x": missing protocol scheme']),
        (
            {"url": "https://%zz"},
            ['url: Required value: url must be a valid URL: parse "https://%zz": invalid URL escape'],
        ),
        ({"service": {}}, ["service.name: Required value", "service.namespace: Required value"]),
        (
            {"service": {"name": "s", "namespace": "n", "port": 0, "path": "x"}},
            [
                "service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
                "service.path: Invalid value: \"x\": must start with a '/'",
                'service.path: Invalid value: "x": segment[0] may not be empty',
            ],
        ),
        ({"service": {"name": "s", "namespace": "n", "path": "//"}}, ['service.path: Invalid value: "//": segment[0]']),
        (
            {"service": {"name": "s", "namespace": "n", "path": "/a//B/"}},
            [
                'service.path: Invalid value: "/a//B/": segment[1] may',
                'service.path: Invalid value: "/a//B/": segment[2]: a',
            ],
        ),
    ],
)
def test_clients_that_are_refused(client: Object, wrong: list[str]) -> None:
    found = wrong_with(webhook(clientConfig=client))
    assert len(found) == len(wrong), found
    for sentence, start in zip(found, wrong, strict=True):
        assert sentence.removeprefix("webhooks[0].clientConfig").lstrip(".: ").startswith(start), sentence


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ({"operations": ["CREATE", "*"]}, 'operations: Invalid value: ["CREATE","*"]: if \'*\' is present'),
        ({"operations": ["create"]}, 'operations[0]: Unsupported value: "create"'),
        (
            {"apiGroups": ["*", "a"]},
            'apiGroups: Invalid value: ["*","a"]: if \'*\' is present, must not specify other API gr',
        ),
        ({"apiVersions": ["*", "a"]}, 'apiVersions: Invalid value: ["*","a"]'),
        ({"apiVersions": [""]}, "apiVersions[0]: Required value"),
        ({"resources": ["*", "pods"]}, 'resources: Invalid value: ["*","pods"]'),
        ({"resources": ["*/*", "pods"]}, 'resources: Invalid value: ["*/*","pods"]'),
        ({"resources": ["pods/*", "pods/x"]}, "resources[1]: Invalid value: \"pods/x\": if 'pods/*' is present"),
        ({"resources": ["*/x", "pods/x"]}, "resources[1]: Invalid value: \"pods/x\": if '*/x' is present"),
        ({"resources": [""]}, "resources[0]: Required value"),
        ({"resources": []}, "resources: Required value"),
        ({"scope": "Galaxy"}, 'scope: Unsupported value: "Galaxy"'),
    ],
)
def test_rules_that_are_refused(rule: Object, wrong: str) -> None:
    (found,) = wrong_with(webhook(rules=[{**RULE, **rule}]))
    assert found.startswith(f"webhooks[0].rules[0].{wrong}"), found


# --- policies -------------------------------------------------------------------------------------------------------


def policy(**more: Any) -> Object:
    return {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "true"}], **more}


def test_what_a_policy_is_filled_up_with() -> None:
    obj = made(VALIDATING_POLICY, spec=policy(paramKind={"apiVersion": "v1", "kind": "ConfigMap"}))
    match = obj["spec"]["matchConstraints"]
    assert (match["matchPolicy"], match["namespaceSelector"], match["objectSelector"]) == ("Equivalent", {}, {})
    assert obj["spec"]["failurePolicy"] == "Fail"
    assert VALIDATING_POLICY.row(obj, 0.0)[1:3] == [1, "v1/ConfigMap"]


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({"validations": []}, ["validations: Required value: validations", "auditAnnotations: Required value: valid"]),
        ({"failurePolicy": "x"}, ['failurePolicy: Unsupported value: "x"']),
        ({"paramKind": {}}, ["paramKind.apiVersion: Required value", "paramKind.kind: Required value"]),
        ({"matchConstraints": None}, ["matchConstraints: Required value"]),
        (
            {"matchConstraints": {"matchPolicy": "x"}},
            ["matchConstraints.matchPolicy", "matchConstraints.resourceRules: Req"],
        ),
        (
            {"validations": [{"expression": " ", "reason": "Teapot"}]},
            ["validations[0].expression: Req", "validations[0].reason"],
        ),
        (
            {"validations": [{"expression": "true", "message": "a\nb"}]},
            ['validations[0].message: Invalid value: "a\\nb": must not'],
        ),
        (
            {"validations": [{"expression": "true", "message": " ", "messageExpression": " "}, {"expression": "1"}]},
            [
                'validations[0].messageExpression: Invalid value: " ": must be non-empty if specified',
                'validations[0].message: Invalid value: " ": message must be non-empty if specified',
                'validations[1].expression: Invalid value: "1": must evaluate to bool but got int',
            ],
        ),
        (
            {"validations": [{"expression": "true", "messageExpression": "string(authorizer != null)"}]},
            ['validations[0].messageExpression: Invalid value: "string(authorizer != null)": compil'],
        ),
        (
            {"paramKind": {"apiVersion": "a/b/c", "kind": "a b"}},
            [
                'paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
                'paramKind.kind: Invalid value: "a b": may have mixed case, but should otherwise match: a DNS-1035',
            ],
        ),
        (
            {"paramKind": {"apiVersion": "A_/V1", "kind": "ConfigMap"}},
            ['paramKind.apiVersion: Invalid value: "A_": a', 'paramKind.apiVersion: Invalid value: "V1": a DNS-1035'],
        ),
        (
            {"paramKind": {"apiVersion": "a/", "kind": "K"}},
            ['paramKind.apiVersion: Invalid value: "a/": version must be'],
        ),
        (
            {"auditAnnotations": [{"key": "a b", "valueExpression": "1"}]},
            [
                'auditAnnotations[0].key: Invalid value: "x/a b": name part must consist of',
                'auditAnnotations[0].valueExpression: Invalid value: "1": must evaluate to one of [string null_type]',
            ],
        ),
        (
            {"variables": [{"name": "in", "expression": "1"}]},
            ['variables[0].name: Invalid value: "in": must be a valid CEL'],
        ),
        (
            {"auditAnnotations": [{"key": f"k{i}", "valueExpression": "'v'"} for i in range(21)]},
            ['auditAnnotations: Invalid value: [{"Key":"k0","ValueExpression":"\'v\'"},'],
        ),
        (
            {"validations": [{"expression": "true", "message": " "}]},
            ['validations[0].message: Invalid value: " ": message'],
        ),
        (
            {"auditAnnotations": [{"key": "a", "valueExpression": "'b'"}, {"key": "a"}]},
            ["auditAnnotations[1].valueEx", "auditAnnotations[1].key: Dup"],
        ),
        (
            {"variables": [{"name": "a", "expression": "1"}, {"name": "a"}, {"name": "1"}, {}]},
            [
                "variables[1].name: Duplicate",
                "variables[1].expression: Req",
                "variables[2].name: Invalid",
                "variables[2].expression: Req",
                "variables[3].name: Required",
                "variables[3].expression: Req",
            ],
        ),
        (
            {"matchConstraints": {"resourceRules": [{**RULE, "resourceNames": ["a", "a", "b/c"], "scope": "x"}]}},
            [
                'matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: "a"',
                "matchConstraints.resourceRules[0].resourceNames[2]: Invalid value: \"b/c\": may not contain '/'",
                'matchConstraints.resourceRules[0].scope: Unsupported value: "x"',
            ],
        ),
    ],
)
def test_policies_that_are_refused(more: Object, wrong: list[str]) -> None:
    found = refusals(VALIDATING_POLICY, spec=policy(**more))
    assert len(found) == len(wrong), found
    for sentence, start in zip(found, wrong, strict=True):
        assert sentence.startswith(f"spec.{start}"), sentence


def test_an_expression_may_have_several_lines() -> None:
    assert made(VALIDATING_POLICY, spec=policy(validations=[{"expression": "true\n&& true"}]))


def test_mutations() -> None:
    match = {"matchConstraints": {"resourceRules": [RULE]}}
    good = {"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}
    obj = made(MUTATING_POLICY, spec={**match, "mutations": [good], "reinvocationPolicy": "Never"})
    assert MUTATING_POLICY.row(obj, 0.0)[1:3] == [1, "<unset>"]
    bad = [{"patchType": "JSONPatch"}, {"patchType": "Odd"}]
    assert refusals(MUTATING_POLICY, spec={**match, "mutations": bad, "reinvocationPolicy": "Odd"}) == [
        "spec.mutations[0].jsonPatch.expression: Required value",
        'spec.mutations[1].patchType: Unsupported value: "Odd": supported values: "ApplyConfiguration", "JSONPatch"',
        'spec.reinvocationPolicy: Unsupported value: "Odd": supported values: "IfNeeded", "Never"',
    ]
    assert refusals(MUTATING_POLICY, spec=match) == [
        "spec.mutations: Required value: mutations must contain at least one item",
        "spec.reinvocationPolicy: Required value",
    ]


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({"validationActions": []}, ["validationActions: Required value"]),
        (
            {"validationActions": ["Deny", "Warn"]},
            ['validationActions: Invalid value: ["Deny","Warn"]: must not contain'],
        ),
        ({"validationActions": ["Deny", "Deny"]}, ['validationActions[1]: Duplicate value: "Deny"']),
        ({"validationActions": ["Explode"]}, ['validationActions[0]: Unsupported value: "Explode"']),
        ({"policyName": ""}, ["policyName: Required value"]),
        ({"policyName": "A_"}, ['policyName: Invalid value: "A_"']),
        ({"paramRef": {}}, ["paramRef: Required value", "paramRef.parameterNotFoundAction: Required value"]),
        (
            {"paramRef": {"name": "x", "selector": {}, "parameterNotFoundAction": "Odd"}},
            [
                "paramRef.name: Forbidden",
                "paramRef.selector: Forbidden",
                "paramRef.parameterNotFoundAction: Unsupported",
            ],
        ),
    ],
)
def test_bindings_that_are_refused(more: Object, wrong: list[str]) -> None:
    found = refusals(VALIDATING_POLICY_BINDING, spec={"policyName": "p", "validationActions": ["Deny"], **more})
    assert len(found) == len(wrong), found
    for sentence, start in zip(found, wrong, strict=True):
        assert sentence.startswith(f"spec.{start}"), sentence


def test_bindings_in_tables() -> None:
    reference = {"name": "n", "parameterNotFoundAction": "Deny"}
    obj = made(MUTATING_POLICY_BINDING, spec={"policyName": "p", "paramRef": reference, "matchResources": {}})
    assert MUTATING_POLICY_BINDING.row(obj, 0.0)[1:3] == ["p", "*/n"]
    expressions = [{"key": "b", "operator": "In", "values": ["1", "2"]}, {"key": "c", "operator": "Exists"}]
    obj["spec"]["paramRef"] = {"selector": {"matchLabels": {"y": "z", "a": "b"}, "matchExpressions": expressions}}
    assert MUTATING_POLICY_BINDING.row(obj, 0.0)[2] == (
        "&LabelSelector{MatchLabels:map[string]string{a: b,y: z,},MatchExpressions:[]LabelSelectorRequirement{"
        "LabelSelectorRequirement{Key:b,Operator:In,Values:[1 2],},"
        "LabelSelectorRequirement{Key:c,Operator:Exists,Values:[],},},}"
    )
    bare = made(MUTATING_POLICY_BINDING, spec={"policyName": "p"})
    assert MUTATING_POLICY_BINDING.row(bare, 0.0)[2] == "<unset>"


def test_thousands_of_variables_share_one_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sees those before it; to copy them for each would take minutes."""
    variables = [{"name": f"v{i}", "expression": f"variables.v{i - 1} + 1" if i else "1"} for i in range(50)]
    spec = {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "variables.v49 == 50"}]}
    environments: list[object] = []
    original = Environment.with_variables

    def counted(self: Environment, more: Mapping[str, Type]) -> Environment:
        environments.append(more)
        return original(self, more)

    monkeypatch.setattr(Environment, "with_variables", counted)
    made(VALIDATING_POLICY, spec={**spec, "variables": variables})
    assert len(environments) < 10
    wrong = refusals(VALIDATING_POLICY, spec={**spec, "variables": variables[::-1]})
    assert "undefined field 'v48'" in wrong[0]
