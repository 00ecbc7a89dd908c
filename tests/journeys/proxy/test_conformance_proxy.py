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
    "tables": ["lifecycle"],
}
SCENARIOS = {"affinity": 6, "changes": 31, "addresses": 31, "policies": 9, "tables": 2}
# They look at the kernel's tables with `nft`, which Seamark itself does not need.
TABLES = ("foreign-tables", "cleanup")
LEFT_OUT = {"policies": TABLES, "tables": ("restart", "changes-while-stopped")}

needs_namespaces = pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.geteuid() != 0 or shutil.which("ip") is None,
    reason="network namespaces cannot be made here: needs Linux, root and `ip`",
)
needs_nft = pytest.mark.skipif(shutil.which("nft") is None, reason="needs `nft` to look at the kernel's tables")


def test_every_recording_is_in_a_part() -> None:
    named = {name for names in PARTS.values() for name in names}
    assert sorted(named) == sorted(file.stem for file in (CONFORMANCE / "proxy").glob("*.json"))


@needs_namespaces
@pytest.mark.parametrize(
    "part", [part for part in PARTS if part != "tables"] + [pytest.param("tables", marks=needs_nft)]
)
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
        *(option for name in LEFT_OUT.get(part, ()) for option in ("--skip", name)),
    ]
    passed = replay(server, "replay_proxy.py", "proxy", *options, only=PARTS[part])
    assert passed == SCENARIOS[part]
