"""Pods for the tests of Pod security."""

from __future__ import annotations

from typing import Any

from seamark.kinds.podsecurity.checks import violations
from seamark.kinds.podsecurity.policy import Standard
from seamark.kinds.podsecurity.subject import subject

# What a container has to say to comply with the level "restricted", whatever its Pod says.
HARDENED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def container(name: str, *, privileged: Any = None, ports: Any = None, more: Any = None, **context: Any) -> Any:
    """A container with this security context; ``more`` are other fields."""
    made = {"name": name, "image": "i", **(more or {})}
    if privileged is not None:
        context["privileged"] = privileged
    if ports:
        made["ports"] = [{"containerPort": 80, "hostPort": port} for port in ports]
    return {**made, "securityContext": context} if context else made


def hardened(name: str, **context: Any) -> Any:
    """A container that complies with every level, but for what this context says otherwise."""
    return container(name, **{**HARDENED, **context})


def pod(*containers: Any, annotations: Any = None, context: Any = None, **spec: Any) -> Any:
    made: Any = {"metadata": {"name": "p"}, "spec": {"containers": list(containers), **spec}}
    if annotations:
        made["metadata"]["annotations"] = annotations
    if context is not None:
        made["spec"]["securityContext"] = context
    return made


def said(level: str, version: str, made: Any) -> list[str]:
    """What a level says about a Pod."""
    judged = subject(made["metadata"], made["spec"])
    return [str(found) for found in violations(Standard(level, version), judged)]
