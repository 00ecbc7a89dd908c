"""kube-proxy's recordings against ``seamark proxy --mode userspace``: all that a userspace proxy can meet.

Backends see the node instead of the client there, so the recordings are changed to expect that; nothing else is.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from seamark_process import Start

from conformance_files import CONFORMANCE

# What docs/compatibility.md says about the userspace proxy, by the scenarios that show it.
CANNOT = {
    "changes/tcp-stays": "the address of a deleted Service is kept for its open connections, so new ones are refused",
    "changes/udp-node-port": "a UDP flow ends when no endpoint is left",
    "changes/udp-service-deleted": "a UDP flow ends with its Service",
    "clusterip/ports": "a program of the node that listens on all addresses answers on a cluster IP, too",
    "external/external-ips": "other ports of an external address are the node's",
    "lifecycle/restart": "connections end with the process",
    "lifecycle/changes-while-stopped": "cluster IPs end with the process",
    "lifecycle/foreign-tables": "no packet is translated, so rules for translated ones match nothing",
    "lifecycle/cleanup": "nothing is left behind that could be cleaned up",
    "nodeport/listener-below": "the program that has a port keeps it",
}
LONG = {  # more than ten seconds each, and tested without packets in tests/proxy/userspace and tests/rules/routing
    "affinity/timeout",
    "clusterip/unallocated",
    "policy/internal-local",
    "scale/300-services",
}
PARTS = [
    ["affinity", "changes", "endpoints", "nodeport", "scale"],
    ["clusterip", "external", "lifecycle", "nat", "policy", "topology"],
]
WITHOUT_SERVICES = "nat/not-a-service"  # replayed as it was recorded
PODS = ("10.244.", "fd00:10:244:")

needs_namespaces = pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.geteuid() != 0 or shutil.which("ip") is None,
    reason="network namespaces cannot be made here: needs Linux, root and `ip`",
)


def seen_as_node(step: dict[str, Any]) -> dict[str, Any]:
    """A step in which backends see the node, unless the client connects to a Pod without any Service."""
    expected = step.get("expect", {})
    if "source" not in expected or str(step.get("probe", {}).get("to", "")).startswith(PODS):
        return step
    return {**step, "expect": {**expected, "source": ["node"]}}


def for_userspace(topic: str) -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads((CONFORMANCE / "proxy" / f"{topic}.json").read_text())
    scenarios = []
    for each in recorded["scenarios"]:
        name = f"{topic}/{each['name']}"
        if name not in CANNOT and name not in LONG:
            changed = {**each, "steps": [seen_as_node(step) for step in each["steps"]]}
            scenarios.append(each if name == WITHOUT_SERVICES else changed)
    return {**recorded, "scenarios": scenarios}


def test_every_recording_is_replayed_or_named() -> None:
    topics = {file.stem for file in (CONFORMANCE / "proxy").glob("*.json")}
    assert {topic for part in PARTS for topic in part} == topics
    known = {
        f"{topic}/{each['name']}"
        for topic in topics
        for each in json.loads((CONFORMANCE / "proxy" / f"{topic}.json").read_text())["scenarios"]
    }
    assert {*CANNOT, *LONG} <= known


@needs_namespaces
@pytest.mark.parametrize("part", range(len(PARTS)))
def test_connections_go_where_kube_proxy_sent_them(part: int, start: Start, tmp_path: Path) -> None:
    count, files = 0, []
    for topic in PARTS[part]:
        recording = for_userspace(topic)
        if recording["scenarios"]:
            count += len(recording["scenarios"])
            files.append(tmp_path / f"{topic}.json")
            files[-1].write_text(json.dumps(recording))
    server = start("--ephemeral", "--profile", "plain", "--service-range", "10.96.0.0/16,fd00:96::/112")
    seamark = f"{shlex.quote(sys.executable)} -m seamark proxy --kubeconfig {{kubeconfig}} --hostname-override {{node}}"
    command = [sys.executable, str(CONFORMANCE / "replay_proxy.py"), "--server", server.url, "--token", server.token]
    command += ["--ca", str(server.ca), "--prefix", f"u{os.getpid()}{part}"]
    command += ["--proxy-command", f"{seamark} --mode userspace --cluster-cidr {{cluster_cidr}}"]
    done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, check=False)
    said = [line for line in done.stdout.splitlines() if not line.startswith("ok ")]
    if done.returncode == 2:
        pytest.skip(f"network namespaces cannot be made here: {done.stderr or done.stdout}")
    assert said[-1:] == [f"{count} passed, 0 failed"], "\n".join([*said[:120], done.stderr, server.log[-2000:]])
