"""TokenRequests and CertificateSigningRequests that are refused, in Kubernetes' words."""

from __future__ import annotations

from typing import Any

import pytest
from served import Served
from signing import pem, signing_request

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
SIGNING = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def bound(kind: str, name: str = "x", version: str = "v1", **more: Any) -> Any:
    return {"spec": {"boundObjectRef": {"apiVersion": version, "kind": kind, "name": name, **more}}}


@pytest.mark.parametrize(
    ("account", "body", "code", "sentence"),
    [
        ("none", {"spec": {}}, 404, 'serviceaccounts "none" not found'),
        ("robot", {"spec": {"expirationSeconds": 599}}, 422, "may not specify a duration less than 10 minutes"),
        ("robot", {"spec": {"expirationSeconds": 0}}, 422, "Invalid value: 0: may not specify a duration less than"),
        (
            "robot",
            {"spec": {"expirationSeconds": (1 << 32) + 1}},
            422,
            "may not specify a duration larger than 2^32 seconds",
        ),
        ("robot", {"metadata": {"name": "other"}}, 422, "must match the service account name if specified"),
        (
            "robot",
            {"metadata": {"namespace": "kube-system"}},
            400,
            "the namespace of the provided object does not match",
        ),
        ("robot", bound("ConfigMap"), 400, "cannot bind token to object of type /v1, Kind=ConfigMap"),
        ("robot", bound("Pod", version="apps/v1"), 400, "cannot bind token to object of type apps/v1, Kind=Pod"),
        ("robot", bound("Pod", ""), 400, "Name parameter required."),
        ("robot", bound("Pod"), 404, 'pods "x" not found'),
        ("robot", bound("Node"), 404, 'nodes "x" not found'),
        ("robot", bound("Pod", "p"), 400, "to pod running with different serviceaccount name."),
        ("robot", bound("Secret", "s", uid="1"), 409, "the UID in the bound object reference (1) does not match"),
    ],
)
async def test_token_requests(api: Served, account: str, body: Any, code: int, sentence: str) -> None:
    for name in ("robot", "other"):
        await api.post(ACCOUNTS, {"metadata": {"name": name}})
    await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
    spec = {"serviceAccountName": "other", "containers": [{"name": "c", "image": "i"}]}
    await api.post("/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec})
    answer = await api.ask("POST", f"{ACCOUNTS}/{account}/token", body)
    assert answer.status == code, answer
    assert sentence in answer.json["message"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"request": "bm90IHBlbQ=="}, "spec.request: Invalid value"),
        ({"usages": []}, "spec.usages: Required value"),
        ({"usages": ["juggling"]}, 'spec.usages[0]: Unsupported value: "juggling"'),
        ({"usages": ["any", "any"]}, 'spec.usages[1]: Duplicate value: "any"'),
        ({"signerName": ""}, "spec.signerName: Required value"),
        ({"signerName": "kubernetes.io/legacy-unknown"}, "the legacy signerName is not allowed via this API version"),
        ({"expirationSeconds": 599}, "may not specify a duration less than 600 seconds (10 minutes)"),
    ],
)
async def test_signing_requests(api: Served, change: Any, sentence: str) -> None:
    asked = signing_request(pem(), "example.com/signer", ["client auth"])
    asked["spec"] |= change
    answer = await api.ask("POST", SIGNING, asked)
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")
    assert sentence in answer.json["message"]


@pytest.mark.parametrize(
    ("conditions", "sentence"),
    [
        ([{"status": "True"}], "status.conditions[0].type: Required value"),
        ([{"type": "Approved"}], "status.conditions[0].status: Required value"),
        ([{"type": "Approved", "status": "False"}], 'status.conditions[0].status: Unsupported value: "False"'),
        (
            [{"type": "A", "status": "True"}, {"type": "A", "status": "False"}],
            'conditions[1].type: Duplicate value: "A"',
        ),
    ],
)
async def test_decisions(api: Served, conditions: Any, sentence: str) -> None:
    await api.post(SIGNING, signing_request(pem(), "example.com/signer", ["client auth"], expirationSeconds=7200))
    patch = {"status": {"conditions": conditions}}
    answer = await api.ask("PATCH", f"{SIGNING}/r/approval", patch, type="application/merge-patch+json")
    assert answer.status == 422
    assert sentence in answer.json["message"]
    table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    (row,) = (await api.get(SIGNING, headers=table, query="fieldSelector=spec.signerName%3Dexample.com/signer"))["rows"]
    assert row["cells"][2:] == ["example.com/signer", "admin", "120m", "Pending"]
