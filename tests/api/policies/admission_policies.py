"""Policies, bindings and Secrets for the tests of admission policies."""

from __future__ import annotations

from typing import Any

from tests.api.served import Served

GROUP = "/apis/admissionregistration.k8s.io/v1"
SECRETS = "/api/v1/namespaces/default/secrets"
RULES = [
    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["secrets", "pods"]}
]


def secret(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **more}


async def policy(api: Served, name: str, *, kind: str = "validating", **spec: Any) -> None:
    """A policy about Secrets and Pods."""
    made = {"metadata": {"name": name}, "spec": {"matchConstraints": {"resourceRules": RULES}, **spec}}
    await api.post(f"{GROUP}/{kind}admissionpolicies", made)


async def bind(api: Served, name: str, of: str, *, kind: str = "validating", **spec: Any) -> None:
    actions = {"validationActions": ["Deny"]} if kind == "validating" else {}
    made = {"metadata": {"name": name}, "spec": {"policyName": of, **actions, **spec}}
    await api.post(f"{GROUP}/{kind}admissionpolicybindings", made)
