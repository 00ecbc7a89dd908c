"""Who may name parameters in policies and bindings: those who may read them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from admission_policies import GROUP, RULES, bind, policy
from served import OTHER, Served, served

from seamark.api.authorization import Attributes, Decision, GroupAuthorizer, User

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap"}
DONE = {
    "validating": {"validations": [{"expression": "true"}]},
    "mutating": {
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}],
    },
}
WHO = "&{other  [system:authenticated] map[]}"
KINDS = ("validating", "mutating")


class Readers(GroupAuthorizer):
    """Everyone may write policies; ``other`` may read what is listed here."""

    def __init__(self) -> None:
        self.rights: set[tuple[str, str, str, str, str]] = set()

    def trusts(self, user: User) -> bool:
        return "system:masters" in user.groups

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        asked = attributes
        key = (asked.verb, asked.group, asked.resource, asked.namespace, asked.name)
        return Decision(self.trusts(user) or asked.group == "admissionregistration.k8s.io" or key in self.rights)


RIGHTS = Readers()


@pytest_asyncio.fixture
async def api() -> AsyncIterator[Served]:
    RIGHTS.rights.clear()
    async with served(authorizer=RIGHTS) as server:
        yield server


async def refusal(api: Served, plural: str, name: str, **spec: object) -> str:
    """What is said to a user who makes this object; "" if nothing."""
    body = {"metadata": {"name": name}, "spec": spec}
    answer = await api.ask("POST", f"{GROUP}/{plural}", body, token=OTHER)
    if answer.status == 201:
        return ""
    assert answer.status == 422, answer.json
    (cause,) = answer.json["details"]["causes"]
    return f"{cause['field']}: {cause['message']}"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_kind_of_parameters_must_be_readable_everywhere(api: Served, kind: str) -> None:
    spec = {"matchConstraints": {"resourceRules": [{**RULES[0], "operations": ["CREATE"]}]}, **DONE[kind]}
    plural = f"{kind}admissionpolicies"
    assert not await refusal(api, plural, "none", **spec)
    sentence = f'user {WHO} must have "get" permission on all objects of the referenced paramKind'
    assert await refusal(api, plural, "a", paramKind=CONFIG, **spec) == (
        f"spec.paramKind: Forbidden: {sentence} (kind=ConfigMap, apiVersion=v1)"
    )
    RIGHTS.rights.add(("get", "", "configmaps", "*", "*"))
    assert not await refusal(api, plural, "a", paramKind=CONFIG, **spec)
    odd = {"apiVersion": "example.com/v1", "kind": "Odd"}
    assert "(kind=Odd, apiVersion=example.com/v1)" in await refusal(api, plural, "b", paramKind=odd, **spec)
    RIGHTS.rights.add(("get", "example.com", "*", "*", "*"))
    assert not await refusal(api, plural, "b", paramKind=odd, **spec)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_named_parameter_must_be_readable(api: Served, kind: str) -> None:
    spec = {"validationActions": ["Deny"]} if kind == "validating" else {}
    plural = f"{kind}admissionpolicybindings"
    await policy(api, "p", kind=kind, paramKind=CONFIG, **DONE[kind])
    await policy(api, "q", kind=kind, paramKind={"apiVersion": "example.com/v1", "kind": "Odd"}, **DONE[kind])
    one = {"name": "x", "namespace": "default", "parameterNotFoundAction": "Deny"}
    some = {"selector": {}, "parameterNotFoundAction": "Deny"}
    lacking = f'user {WHO} does not have "%s" permission'
    least = "to determine minimum required permissions and"
    assert not await refusal(api, plural, "none", policyName="p", **spec)
    for name, reference, said in (
        ("p", one, f"{lacking % 'get'} on the object referenced by paramRef"),
        ("p", some, f"{lacking % 'list'} on the object referenced by paramRef"),
        ("r", one, f"unable to get policy r {least} {lacking % 'get'} for all groups, versions and resources"),
        (
            "q",
            one,
            f"unable to resolve paramKind &{{example.com/v1 Odd}} {least} {lacking % 'get'} for all groups, "
            "versions and resources",
        ),
    ):
        found = await refusal(api, plural, "b", policyName=name, paramRef=reference, **spec)
        assert found == f"spec.paramRef: Forbidden: {said}"
    RIGHTS.rights |= {("get", "", "configmaps", "default", "x"), ("list", "", "configmaps", "", "")}
    assert not await refusal(api, plural, "one", policyName="p", paramRef=one, **spec)
    assert not await refusal(api, plural, "some", policyName="p", paramRef=some, **spec)


async def test_what_stays_as_it_was_is_not_asked_about(api: Served) -> None:
    await policy(api, "p", paramKind=CONFIG, **DONE["validating"])
    await bind(api, "b", "p", paramRef={"name": "x", "namespace": "default", "parameterNotFoundAction": "Deny"})
    labelled = {"metadata": {"labels": {"a": "b"}}}
    await api.merge(f"{GROUP}/validatingadmissionpolicies/p", labelled, token=OTHER)
    await api.merge(f"{GROUP}/validatingadmissionpolicybindings/b", labelled, token=OTHER)
    other = {"spec": {"policyName": "q"}}
    merge = "application/merge-patch+json"
    answer = await api.ask("PATCH", f"{GROUP}/validatingadmissionpolicybindings/b", other, type=merge, token=OTHER)
    assert answer.status == 422
