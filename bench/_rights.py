"""What RBAC costs a request: the same requests to a server without it and to one with it, in turns.

The server with RBAC is asked by its admin, who may do everything without a look at roles, and by a ServiceAccount that
has a Role.  ConfigMaps are used because admission adds nothing to them; to a Pod it adds a volume with a token.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import urllib.request
from pathlib import Path
from typing import Any

import msgspec
from bench._load import Result, Server, drive, request, seamark_server
from bench._report import Report

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
PLAIN = "without RBAC"


def post(server: Server, path: str, body: Any) -> Any:
    url = f"https://{server.host}:{server.port}{path}"
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    sent = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(sent, context=server.tls) as answer:
        return json.load(answer)


def account_of(server: Server) -> Server:
    """The server as a ServiceAccount sees it that may work on ConfigMaps."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    post(server, accounts, {"metadata": {"name": "bench"}})
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch"]}
    post(server, f"{ROLES}/roles", {"metadata": {"name": "bench"}, "rules": [rule]})
    subject = {"kind": "ServiceAccount", "name": "bench", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "bench"}
    post(server, f"{ROLES}/rolebindings", {"metadata": {"name": "bench"}, "subjects": [subject], "roleRef": role})
    token = post(server, f"{accounts}/bench/token", {"spec": {}})["status"]["token"]
    return msgspec.structs.replace(server, token=token)


async def compare(folder: Path, rounds: int, clients: int, report: Report) -> None:
    with (
        seamark_server(folder / "plain", "apiserver", "--profile", "plain") as plain,
        seamark_server(folder / "full", "apiserver") as full,
    ):
        account = await asyncio.to_thread(account_of, full)
        senders = {PLAIN: plain, "with it, admin": full, "with it, ServiceAccount": account}
        costs: dict[tuple[str, str], list[Result]] = {}
        for number in range(rounds):
            for at, (sender, server) in enumerate(senders.items()):
                for verb, requests in work(server, f"c{number}-{at}").items():
                    costs.setdefault((verb, sender), []).append(await drive(server, requests, clients))
    for (verb, sender), results in sorted(costs.items(), key=lambda item: item[0][0]):
        cpu, without = _median(results), _median(costs[verb, PLAIN])
        rate = statistics.median(result.rate for result in results)
        report.show(f"{verb}, {sender}", Result(rate, cpu, 0.0))
        print(f"  {'':<28} {cpu / without:11.3f} × without RBAC")


def work(server: Server, name: str, count: int = 1000) -> dict[str, list[bytes]]:
    """Requests for new ConfigMaps, to be sent in this order."""
    names = [f"{name}-{number}" for number in range(count)]
    patch = b'{"data":{"a":"c"}}'
    return {
        "create": [
            request(server, "POST", CONFIG_MAPS, msgspec.json.encode({"metadata": {"name": each}, "data": {"a": "b"}}))
            for each in names
        ],
        "get": [request(server, "GET", f"{CONFIG_MAPS}/{each}") for each in names * 5],
        "patch": [
            request(server, "PATCH", f"{CONFIG_MAPS}/{each}", patch, "application/merge-patch+json") for each in names
        ],
    }


def _median(results: list[Result]) -> float:
    return statistics.median(result.cpu or 0.0 for result in results)
