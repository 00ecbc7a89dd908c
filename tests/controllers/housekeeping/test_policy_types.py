"""Expressions of admission policies are checked by the types of what they match."""

import threading

from tests.api.custom_resources import definition

from seamark import haste
from seamark.kinds.registration import type_checks
from seamark.kinds.resource import DEFINITIONS, VALIDATING_POLICIES


def policy(*validations, group="apps", resources=("deployments",), **spec):
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": list(resources)}
    spec |= {"validations": list(validations), "matchConstraints": {"resourceRules": [rule]}}
    return {"metadata": {"name": "p"}, "spec": spec}


async def status(own, made):
    async with own.controlled(ending=True):
        await own.cluster.create(VALIDATING_POLICIES, made)
        await own.quiet()
        return (await own.cluster.get(VALIDATING_POLICIES, "p"))["status"]


async def test_a_policy_that_fits_has_no_warnings(own):
    fits = [
        "object.spec.replicas > 1 && object.spec.template.spec.containers.all(c, c.image.startsWith('x'))",
        "object.metadata.?labels['app'].orValue('') == params.data.app && variables.age > duration('1s')",
        "object.spec.template.spec.containers.all(c, c.ports.all(p, p.containerPort > 1024))",
    ]
    made = policy(
        *({"expression": each, "messageExpression": "object.metadata.name + '!'"} for each in fits),
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        variables=[{"name": "age", "expression": "object.metadata.creationTimestamp - timestamp(0)"}],
    )
    assert await status(own, made) == {"observedGeneration": 1, "typeChecking": {}}


async def test_fields_that_do_not_exist_and_types_that_do_not_fit_are_told_with_their_kind(own):
    found = await status(
        own,
        policy(
            {"expression": "object.foo > 1"},
            {"expression": "object.spec.replicas == '1'", "messageExpression": "string(object.nope)"},
            resources=["replicasets", "deployments", "deployments/status", "nothings"],
        ),
    )
    picture = "\n | object.foo > 1\n | ......^\n"
    kinds = ["apps/v1, Kind=Deployment", "apps/v1, Kind=ReplicaSet"]
    warnings = found["typeChecking"]["expressionWarnings"]
    assert warnings[0] == {
        "fieldRef": "spec.validations[0].expression",
        "warning": "\n".join(f"{kind}: ERROR: <input>:1:7: undefined field 'foo'{picture}" for kind in kinds),
    }
    assert "found no matching overload for '_==_' applied to '(int, string)'" in warnings[1]["warning"]
    assert [each["fieldRef"] for each in warnings[1:]] == [
        "spec.validations[1].expression",
        "spec.validations[1].messageExpression",
    ]


async def test_rules_for_everything_are_not_checked(own):
    made = policy({"expression": "object.foo > 1"}, resources=["*"])
    assert await status(own, made) == {"observedGeneration": 1, "typeChecking": {}}


async def test_a_new_generation_is_checked_again(own):
    async with own.controlled(ending=True):
        await own.cluster.create(VALIDATING_POLICIES, policy({"expression": "object.foo > 1"}))
        await own.quiet()
        right = {"spec": {"validations": [{"expression": "object.spec.replicas > 1"}]}}
        await own.cluster.patch(VALIDATING_POLICIES, "p", right)
        await own.quiet()
        found = await own.cluster.get(VALIDATING_POLICIES, "p")
        assert found["status"]["observedGeneration"] == 2
        assert "expressionWarnings" not in found["status"].get("typeChecking", {})


async def test_custom_resources_have_the_types_of_their_schemas(own):
    async with own.controlled(ending=True):
        await own.cluster.create(DEFINITIONS, definition())
        await own.quiet()
        expressions = ["object.metadata.generation > 0 && object.spec.size < 3", "object.spec.size == 'x'"]
        validations = [{"expression": expression} for expression in expressions]
        await own.cluster.create(VALIDATING_POLICIES, policy(*validations, group="example.com", resources=["widgets"]))
        await own.quiet()
        found = (await own.cluster.get(VALIDATING_POLICIES, "p"))["status"]["typeChecking"]["expressionWarnings"]
        assert [each["fieldRef"] for each in found] == ["spec.validations[1].expression"]
        assert found[0]["warning"].startswith("example.com/v1, Kind=Widget: ERROR: ")


async def test_many_expressions_are_checked_in_a_thread_and_very_many_not_at_all(own, monkeypatch):
    threads, warnings = [], type_checks.warnings

    def noting(spec, kinds):
        found = warnings(spec, kinds)
        threads.append(threading.current_thread())
        return found

    monkeypatch.setattr(type_checks, "warnings", noting)
    made = policy(*({"expression": f"object.foo > {i}"} for i in range(200)))
    assert len((await status(own, made))["typeChecking"]["expressionWarnings"]) == 200
    assert threads
    assert threading.current_thread() not in threads
    await own.cluster.delete(VALIDATING_POLICIES, "p")
    monkeypatch.setattr(haste, "STEPS_AT_LENGTH", haste.STEPS_AT_ONCE)
    made = policy(*({"expression": f"object.foo > {i}"} for i in range(100)), resources=("deployments", "replicasets"))
    assert await status(own, made) == {"observedGeneration": 1, "typeChecking": {}}
