"""What kube-proxy did to packets, replayed against ``seamark proxy`` in namespaces that play nodes and Pods."""

from __future__ import annotations

import os
import shlex
import shutil
import sys

import pytest
from replaying import replay
from seamark_process import Start

from conformance_files import CONFORMANCE

# In parts of about the same length, which run at the same time: most of it is waiting for packets that do not come.
PARTS = {
    "affinity": ["affinity"],
    "changes": ["changes", "scale", "endpoints", "topology"],
    "addresses": ["clusterip", "external", "nat", "nodeport"],
    "policies": ["policy", "lifecycle"],
}
SCENARIOS = {"affinity": 6, "changes": 31, "addresses": 31, "policies": 11}

needs_namespaces = pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.geteuid() != 0 or shutil.which("ip") is None,
    reason="network namespaces cannot be made here: needs Linux, root and `ip`",
)


def test_every_recording_is_in_one_part() -> None:
    named = [name for names in PARTS.values() for name in names]
    assert sorted(named) == sorted(file.stem for file in (CONFORMANCE / "proxy").glob("*.json"))


@needs_namespaces
@pytest.mark.parametrize("part", PARTS)
def test_packets_go_where_kube_proxy_sent_them(part: str, start: Start) -> None:
    server = start("--ephemeral", "--profile", "plain", "--service-range", "10.96.0.0/16,fd00:96::/112")
    seamark = f"{shlex.quote(sys.executable)} -m seamark proxy --kubeconfig {{kubeconfig}} --hostname-override {{node}}"
    options = [
        "--prefix",
        f"t{os.getpid()}{part[:2]}",
        "--proxy-command",
        f"{seamark} --proxy-mode nftables --cluster-cidr {{cluster_cidr}}",
        "--cleanup-command",
        f"{seamark} --cleanup",
        *(["--skip", "foreign-tables"] if shutil.which("nft") is None else []),
    ]
    passed = replay(server, "replay_proxy.py", "proxy", *options, only=PARTS[part])
    assert passed >= SCENARIOS[part] - (part == "policies" and shutil.which("nft") is None)
