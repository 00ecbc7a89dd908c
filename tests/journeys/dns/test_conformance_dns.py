"""What CoreDNS answered, replayed against ``seamark dns`` over a real API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from dns_process import DnsProcess
from replaying import replay
from seamark_process import Seamark, Start

from free_ports import free_port

PROFILES = {
    "verified": ["--pods", "verified", "--ttl", "30", "--forward", "none"],
    "disabled": ["--forward", "none"],
    "kubeadm": ["--pods", "insecure", "--ttl", "30", "--fallthrough", "in-addr.arpa,ip6.arpa"],
}


@pytest.fixture
def everything(start: Start) -> Seamark:
    """API server and controllers."""
    return start("--nodes", "0", "--dns-port", "0", verb="up")


@pytest.fixture
def profiles(everything: Seamark) -> Iterator[tuple[dict[str, DnsProcess], int]]:
    """A DNS server for each profile of the recordings, and the port of their upstream resolver."""
    upstream = free_port()
    running: dict[str, DnsProcess] = {}
    try:
        for profile, options in PROFILES.items():
            # The recordings were made without a cache, and each file has an upstream resolver of its own.
            more = ["--forward", f"127.0.0.1:{upstream}", "--cache", "0"] if profile == "kubeadm" else []
            running[profile] = DnsProcess(everything.kubeconfig, *options, *more)
        yield running, upstream
    finally:
        for process in running.values():
            process.stop()


def test_every_recorded_answer_is_repeated(everything: Seamark, profiles: tuple[dict[str, DnsProcess], int]) -> None:
    servers, upstream = profiles
    options = ["-q", "--upstream", f"127.0.0.1:{upstream}", "--metrics", f"{everything.url}/metrics"]
    for profile, process in servers.items():
        options += ["--dns", f"{profile}={process.address[0]}:{process.address[1]}"]
    assert replay(everything, "replay_dns.py", "dns", *options) >= 346
