"""What RBAC costs a request: the same requests to a server without it and to one with it, in turns.

The server with RBAC is asked by its admin, who may do everything without a look at roles, by a user whose token is as
long as the admin's and who has a Role, and by a ServiceAccount with that Role, whose token has some 900 bytes.
ConfigMaps are used because admission adds nothing to them; to a Pod it adds a volume with a token.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from bench.rig.load import Result, Server, drive, request, seamark_server
from bench.rig.report import Report

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
OFF = "without RBAC"
USER = "bench"
STARTS = 3
CLIENTS = 8


def post(server: Server, path: str, body: Any) -> Any:
    url = f"https://{server.host}:{server.port}{path}"
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    sent = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(sent, context=server.tls) as answer:
        return json.load(answer)


def account_of(server: Server) -> Server:
    """The server as a ServiceAccount sees it that may work on ConfigMaps, as may the user."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    post(server, accounts, {"metadata": {"name": "bench"}})
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch"]}
    post(server, f"{ROLES}/roles", {"metadata": {"name": "bench"}, "rules": [rule]})
    subjects = [{"kind": "ServiceAccount", "name": "bench", "namespace": "default"}, {"kind": "User", "name": USER}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "bench"}
    post(server, f"{ROLES}/rolebindings", {"metadata": {"name": "bench"}, "subjects": subjects, "roleRef": role})
    token = post(server, f"{accounts}/bench/token", {"spec": {}})["status"]["token"]
    return msgspec.structs.replace(server, token=token)


@contextmanager
def senders(folder: Path, under: Callable[[Path], Sequence[str]] = lambda _: ()) -> Iterator[dict[str, Server]]:
    """The servers without and with RBAC, as those see them who send requests."""
    folder.mkdir()
    users, token = folder / "users.csv", "0" * 43
    users.write_text(f"{token},{USER},,\n")
    options = ["apiserver", "--ephemeral"]
    with (
        seamark_server(folder / "off", *options, "--profile", "plain", under=under(folder / "off")) as off,
        seamark_server(folder / "on", *options, "--token-file", str(users), under=under(folder / "on")) as on,
    ):
        account, user = account_of(on), msgspec.structs.replace(on, token=token)
        yield {OFF: off, "admin": on, "user with a Role": user, "ServiceAccount with a Role": account}


async def compare(folder: Path, rounds: int, report: Report) -> None:
    """CPU time, in short rounds in which all senders take turns, on servers that are started several times.

    Other processes can make a round slower but never faster, so the cheapest tenth of the rounds is the figure.  The
    servers are started anew because two processes with the same code differ: their memory is laid out otherwise.
    """
    costs: dict[tuple[str, str], list[Result]] = {}
    for start in range(STARTS):
        with senders(folder / str(start)) as found:
            order = list(found.items())
            for number in range(rounds):
                at = number % len(order)
                for turn, (sender, server) in enumerate(order[at:] + order[:at]):
                    for verb, requests in work(server, f"c{number:03}-{turn}").items():
                        costs.setdefault((verb, sender), []).append(await drive(server, requests, CLIENTS))
    for (verb, sender), results in sorted(costs.items(), key=lambda item: item[0][0]):
        rate = statistics.median(result.rate for result in results)
        cpu, without = cheapest(results), cheapest(costs[verb, OFF])
        report.show(f"{verb}, {sender}", Result(rate, cpu, 0.0))
        print(f"  {'':<34} {cpu / without:11.3f} × without RBAC")


def cheapest(results: list[Result]) -> float:
    return statistics.quantiles((result.cpu or 0.0 for result in results), n=10)[0]


# --- instructions, which do not depend on what else the machine does ------------------------------------------


def callgrind(folder: Path) -> list[str]:
    """The command that counts the instructions of a server with this folder; it writes them beside the folder."""
    return ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={folder}.count"]


def counted(server: Server, folder: Path) -> int:
    """How many instructions the server has executed since this was asked last."""
    subprocess.run(["callgrind_control", "--dump", str(server.pids[0])], capture_output=True, check=True)
    newest = max(folder.parent.glob(f"{folder.name}.count.*"), key=lambda path: int(path.suffix[1:]))
    return next(int(line.split()[1]) for line in newest.read_text().splitlines() if line.startswith("totals:"))


async def count(folder: Path) -> None:
    """Instructions of a request, by callgrind: there and back through the senders, as the later find more objects."""
    with senders(folder / "counted", callgrind) as found:
        counts: dict[tuple[str, str], int] = {}
        order = list(enumerate(found.items()))
        for turn, passed in enumerate((order, order[::-1])):
            for at, (sender, server) in passed:
                place = folder / "counted" / ("off" if sender == OFF else "on")
                for requests in work(server, f"first-{turn}{at}", 10).values():  # what is kept from the first use on
                    await drive(server, requests, 1)
                for verb, requests in work(server, f"count-{turn}{at}", 50).items():
                    counted(server, place)
                    await drive(server, requests, 1)
                    counts[verb, sender] = counts.get((verb, sender), 0) + counted(server, place) // len(requests)
    for (verb, sender), number in sorted(counts.items(), key=lambda item: item[0][0]):
        ratio = number / counts[verb, OFF]
        print(f"  {verb + ', ' + sender:<34} {number / 2000:9.1f} thousand instructions {ratio:7.3f} × without RBAC")


def work(server: Server, name: str, number: int = 200) -> dict[str, list[bytes]]:
    """Requests for new ConfigMaps, to be sent in this order."""
    names = [f"{name}-{at}" for at in range(number)]
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
