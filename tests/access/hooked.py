"""A webhook on loopback for a server in this process, and configurations that name it."""

from __future__ import annotations

import base64
import json
from typing import Any

from called_servers import Trusted

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
SECRETS = "/api/v1/namespaces/default/secrets"
LONGEST = 30  # seconds that a webhook may take; the usual ten were too few on a machine that stood still for a while
ON_SECRETS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["secrets"]}


class Hooks:
    """Answers each path as ``answers`` says: fields of the response, or a function of the review; keeps the reviews."""

    def __init__(self, trusted: Trusted) -> None:
        self._trusted = trusted
        self.answers: dict[str, Any] = {}
        self.reviews: list[tuple[str, Any]] = []
        self._server = trusted.server(self._answer, "0.0.0.0")

    async def __aenter__(self) -> Hooks:
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._server.__aexit__(*exc)

    @property
    def port(self) -> int:
        return int(self._server.port)

    async def _answer(self, exchange: Any) -> None:
        name, asked = exchange.request.path[1:], exchange.request.json
        self.reviews.append((name, asked["request"]))
        answer = self.answers.get(name, {})
        if callable(answer):
            answer = await answer(exchange)
            if answer is None:
                return
        said = {"uid": asked["request"]["uid"], "allowed": True, **answer}
        await exchange.answer(200, {"apiVersion": asked["apiVersion"], "kind": "AdmissionReview", "response": said})

    def asked(self) -> list[str]:
        """Which paths were called since this was asked last."""
        names = [name for name, _ in self.reviews]
        self.reviews.clear()
        return names

    def hook(self, path: str, *, name: str = "", rules: Any = (ON_SECRETS,), **fields: Any) -> dict[str, Any]:
        return {
            "name": name or f"{path}.example.com",
            "clientConfig": {"url": f"https://127.0.0.1:{self.port}/{path}", "caBundle": self._trusted.bundle},
            "rules": list(rules),
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": LONGEST,
            **fields,
        }


def configuration(*hooks: Any, kind: str = "Validating", name: str = "own") -> tuple[str, dict[str, Any]]:
    """Where a configuration is posted to, and the configuration."""
    path = f"{CONFIGURATIONS}/{kind.lower()}webhookconfigurations"
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{kind}WebhookConfiguration"}
    return path, {**head, "metadata": {"name": name}, "webhooks": list(hooks)}


def patch(*operations: Any) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def labelled(**labels: str) -> dict[str, Any]:
    """A patch that adds labels."""
    return patch({"op": "add", "path": "/metadata/labels", "value": labels})


def secret(name: str = "a", **meta: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, **meta}, "data": {"k": "dg=="}}
