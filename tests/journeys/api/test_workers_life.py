"""Several processes that serve as one: a worker that is killed is replaced, and none outlives the main process."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from api_calls import call, watched
from seamark_process import Seamark, Start
from waiting import until

from seamark.presence import find

MAPS = "/api/v1/namespaces/default/configmaps"


def workers(server: Seamark) -> tuple[int, ...]:
    found = find(server.directory)
    return found.workers if found is not None else ()


def gone(pid: int) -> bool:
    """Whether a process has ended; one whose parent has not waited for it yet has ended, too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def processes(pid: int) -> list[int]:
    found = [pid]
    for each in found:
        for thread in Path(f"/proc/{each}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    return found


def test_a_worker_that_is_killed_is_replaced(start: Start) -> None:
    server = start("--workers", "2")
    (before,) = workers(server)
    for number in range(4):
        assert call(server, "POST", MAPS, {"metadata": {"name": f"m{number}"}})[0] == 201
    os.kill(before, signal.SIGKILL)
    until(lambda: workers(server) not in ((), (before,)))
    for _ in range(4):
        assert len(call(server, "GET", MAPS)[1]["items"]) >= 4
    events = watched(server, f"{MAPS}?resourceVersion=0", until=lambda events: len(events) >= 5)
    names = {each["object"]["metadata"]["name"] for each in events}
    assert names == {"kube-root-ca.crt", "m0", "m1", "m2", "m3"}
    assert "worker-1 failed: the process ended; it is started again in 0.5 s" in server.log


def test_none_outlives_a_main_process_that_is_killed(start: Start) -> None:
    server = start("--workers", "3")
    all_of_them = processes(server.process.pid)
    assert len(all_of_them) == 3
    server.kill()
    for pid in all_of_them:
        until(lambda pid=pid: gone(pid))


def test_all_end_in_order_when_told_to_stop(start: Start) -> None:
    server = start("--workers", "2", "--dns-port", "0", "--nodes", "0", verb="up")
    all_of_them = processes(server.process.pid)
    for pid in all_of_them[1:]:
        for number in (signal.SIGTERM, signal.SIGHUP):  # a service manager, or the terminal, tells all of them …
            os.kill(pid, number)  # … and only the main one acts
    assert call(server, "GET", MAPS)[0] == 200
    assert server.stop() == 0
    assert all(map(gone, all_of_them))
    assert server.log == ""


DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name%3Dweb"


def deploy(server: Seamark) -> None:
    labels = {"app": "web"}
    service = {"metadata": {"name": "web"}, "spec": {"selector": labels, "ports": [{"port": 80}]}}
    assert call(server, "POST", "/api/v1/namespaces/default/services", service)[0] == 201
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "example/web:1"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    assert call(server, "POST", DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})[0] == 201


def scale(server: Seamark, replicas: int) -> None:
    body = {"spec": {"replicas": replicas}}
    assert call(server, "PATCH", f"{DEPLOYMENTS}/web", body, media="application/merge-patch+json")[0] == 200


def items(server: Seamark, path: str) -> list[Any]:
    """What a list has; nothing while the process that the connection came to is gone."""
    try:
        code, answer = call(server, "GET", path)
    except OSError:
        return []
    assert code == 200, answer
    return list(answer["items"])


def addresses(server: Seamark) -> list[str]:
    """The ready addresses in the slices, repeated if there more than once."""
    listed = (each for one in items(server, SLICES) for each in one["endpoints"] or ())
    return sorted(address for each in listed if each["conditions"]["ready"] for address in each["addresses"])


def settled(server: Seamark, replicas: int) -> None:
    """Wait until there are so many Pods, no more, and each is once in the slices."""
    pods = "/api/v1/namespaces/default/pods"
    until(lambda: len(addresses(server)) == replicas)
    until(lambda: sorted(each["status"].get("podIP") for each in items(server, pods)) == addresses(server))
    deployment = until(lambda: (items(server, DEPLOYMENTS) or [None])[0])
    assert deployment["spec"]["replicas"] == replicas


def test_a_rollout_survives_the_death_of_every_process(start: Start) -> None:
    options = ("--workers", "2", "--dns-port", "0")
    server = start(*options, verb="up")
    deploy(server)
    _, before = processes(server.process.pid)
    assert workers(server) == (before,)

    scale(server, 60)
    until(lambda: items(server, "/api/v1/namespaces/default/pods"))
    os.kill(before, signal.SIGKILL)  # it runs the controllers; another one takes its place
    settled(server, 60)
    (after,) = until(lambda: workers(server))

    scale(server, 90)
    os.kill(after, signal.SIGKILL)
    settled(server, 90)

    scale(server, 120)
    server.kill()
    again = start(*options, verb="up")
    settled(again, 120)
    assert again.stop() == 0
