"""Cluster DNS as its real clients see it: dig, glibc, dnspython, resolvers that ask for both families at once."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import dns.message
import dns.query
import dns.resolver
import pytest
from api_calls import Api
from dns_process import DnsProcess, dns_address
from seamark_process import Seamark, Start
from waiting import until

HEADLESS = {
    "metadata": {"name": "web"},
    "spec": {"clusterIP": "None", "selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]},
}
FOREVER = 1e6  # seconds, for clients that want a limit: a busy machine is not to be told from a broken server by time


@pytest.fixture
def server(start: Start) -> Seamark:
    return start("--nodes", "0", "--dns-port", "0", verb="up")


@pytest.fixture
def api(server: Seamark) -> Iterator[Api]:
    made = Api(server)
    made.add_node()
    yield made
    made.close()


def dig(address: tuple[str, int], *arguments: str) -> list[str]:
    patience = "+timeout=65535"  # seconds; dig takes no more
    command = ["dig", f"@{address[0]}", "-p", str(address[1]), "+short", patience, *arguments]
    return sorted(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[:-1])


def looked_up(address: tuple[str, int], name: str) -> list[str]:
    """The IPv4 addresses of a name."""
    reply = dns.query.udp(dns.message.make_query(name, "A"), address[0], port=address[1])
    return sorted(item.to_text() for rrset in reply.answer for item in rrset)


@pytest.mark.skipif(shutil.which("dig") is None, reason="there is no dig on this machine")
def test_dig_follows_a_stateful_pod_through_a_restart(server: Seamark, api: Api) -> None:
    address = dns_address(server.lines)
    name = "web-0.web.default.svc.cluster.local"
    api("POST", "/api/v1/namespaces/default/services", HEADLESS)
    assert dig(address, name) == []
    api.run_pod("web-0", "10.20.0.1", service="web")
    api.run_pod("web-1", "10.20.0.2", service="web")
    until(lambda: dig(address, "web.default.svc.cluster.local") == ["10.20.0.1", "10.20.0.2"])
    for transport in ("+notcp", "+tcp"):
        assert dig(address, transport, name) == ["10.20.0.1"]
        assert dig(address, transport, "-x", "10.20.0.1") == [f"{name}."]
        assert dig(address, transport, "SRV", "_http._tcp.web.default.svc.cluster.local") == [
            f"0 50 80 {name}.",
            "0 50 80 web-1.web.default.svc.cluster.local.",
        ]
    path = "/api/v1/namespaces/default/pods/web-0?gracePeriodSeconds=0"
    api("DELETE", path)
    until(lambda: dig(address, name) == [])
    assert dig(address, "web.default.svc.cluster.local") == ["10.20.0.2"]
    api.run_pod("web-0", "10.20.0.9", service="web")
    until(lambda: dig(address, name) == ["10.20.0.9"])
    api.report("web-0", "10.20.0.9", ready=False)
    until(lambda: dig(address, name) == [])


def test_dnspythons_resolver_walks_the_search_path(server: Seamark, api: Api) -> None:
    spec = {"ports": [{"port": 80}]}
    made = api("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "shop"}, "spec": spec})
    host, port = dns_address(server.lines)
    resolver = dns.resolver.Resolver(configure=False)
    resolver.nameservers, resolver.port, resolver.ndots = [host], port, 5
    resolver.timeout = resolver.lifetime = FOREVER
    resolver.search = [
        dns.name.from_text(n) for n in ("default.svc.cluster.local", "svc.cluster.local", "cluster.local")
    ]
    until(lambda: _resolved(resolver, "shop") == [made["spec"]["clusterIP"]])
    assert _resolved(resolver, "shop.default") == [made["spec"]["clusterIP"]]
    assert _resolved(resolver, "nope") == []


def _resolved(resolver: dns.resolver.Resolver, name: str) -> list[str]:
    try:
        return sorted(item.to_text() for item in resolver.resolve(name, "A", search=True))
    except (dns.resolver.NXDOMAIN, dns.resolver.NoNameservers):
        # After the search path the bare name is asked for, which this server refuses: it has no resolver to ask.
        return []


def test_both_families_asked_at_once_from_one_socket(server: Seamark, api: Api) -> None:
    """As Go and musl do: two questions on one socket, replies in either order; NODATA must not look like failure."""
    for name, policy in (("four", "SingleStack"), ("both", "RequireDualStack")):
        spec = {"ports": [{"port": 80}], "ipFamilyPolicy": policy}
        api("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": name}, "spec": spec})
    address = dns_address(server.lines)
    until(lambda: len(looked_up(address, "both.default.svc.cluster.local")) == 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(address)
        for name, families in (("four", {"A"}), ("both", {"A", "AAAA"})):
            queries = [dns.message.make_query(f"{name}.default.svc.cluster.local", kind) for kind in ("A", "AAAA")]
            for query in queries:
                sock.send(query.to_wire())
            replies = {reply.id: reply for reply in (dns.message.from_wire(sock.recv(4096)) for _ in queries)}
            for query in queries:
                reply = replies[query.id]
                assert reply.rcode() == 0
                kind = dns.rdatatype.to_text(query.question[0].rdtype)
                assert bool(reply.answer) == (kind in families)


def test_glibc_resolves_through_resolv_conf(start: Start, tmp_path: Path) -> None:
    """getaddrinfo in a mount namespace of its own, whose resolv.conf is a Pod's."""
    host = f"127.83.{random.randrange(1, 255)}.{random.randrange(1, 255)}"
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind((host, 53))
    except OSError as problem:
        pytest.skip(f"port 53, the only one glibc asks, is not ours to bind: {problem}")
    resolv = tmp_path / "resolv.conf"
    search = "search default.svc.cluster.local svc.cluster.local cluster.local"
    resolv.write_text(f"nameserver {host}\n{search}\noptions ndots:5 timeout:30 attempts:5\n")
    script = "import socket,sys;print(sorted({a[4][0] for a in socket.getaddrinfo(sys.argv[1],80)}))"
    inside = f"mount --bind {resolv} /etc/resolv.conf && exec {sys.executable} -c '{script}' $0"
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("mount namespaces are not ours to make")
    server = start("--nodes", "0", "--dns-host", host, "--dns-port", "53", verb="up")
    api = Api(server)
    try:
        for name, policy in (("four", "SingleStack"), ("both", "RequireDualStack")):
            spec = {"ports": [{"port": 80}], "ipFamilyPolicy": policy}
            made = api("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": name}, "spec": spec})
            until(lambda name=name: len(looked_up((host, 53), f"{name}.default.svc.cluster.local")) == 1)
            for asked in (name, f"{name}.default", f"{name}.default.svc.cluster.local"):
                done = subprocess.run(
                    ["unshare", "-m", "sh", "-c", inside, asked], capture_output=True, text=True, check=False
                )
                assert done.stdout.strip() == str(sorted(made["spec"]["clusterIPs"])), done.stderr
    finally:
        api.close()


def test_a_readiness_change_is_never_answered_wrongly_afterwards(server: Seamark, api: Api) -> None:
    """From the first right answer on there is no wrong one, however many ask at the same time."""
    address = dns_address(server.lines)
    api("POST", "/api/v1/namespaces/default/services", HEADLESS)
    api.run_pod("web-0", "10.20.0.1", service="web")
    api.run_pod("web-1", "10.20.0.2", service="web")
    query = dns.message.make_query("web.default.svc.cluster.local", "A").to_wire()
    seen: list[frozenset[str]] = []
    ended = threading.Event()

    def ask() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.connect(address)
            while not ended.is_set():
                sock.send(query)
                reply = dns.message.from_wire(sock.recv(4096))
                seen.append(frozenset(item.to_text() for rrset in reply.answer for item in rrset))

    until(lambda: looked_up(address, "web.default.svc.cluster.local") == ["10.20.0.1", "10.20.0.2"])
    asking = threading.Thread(target=ask)
    asking.start()
    both, one = frozenset({"10.20.0.1", "10.20.0.2"}), frozenset({"10.20.0.1"})
    try:
        for ready in (False, True, False):
            api.report("web-1", "10.20.0.2", ready=ready)
            until(lambda ready=ready: seen[-1] == (both if ready else one))
            right = len(seen)
            until(lambda right=right: len(seen) > right + 100)
    finally:
        ended.set()
        asking.join()
    order = [answer for at, answer in enumerate(seen) if at == 0 or answer != seen[at - 1]]
    assert order == [both, one, both, one]


def test_several_workers_share_the_port_and_one_may_die(server: Seamark, api: Api) -> None:
    made = api(
        "POST",
        "/api/v1/namespaces/default/services",
        {"metadata": {"name": "shop"}, "spec": {"ports": [{"port": 80}]}},
    )
    process = DnsProcess(server.kubeconfig, "--workers", "2", "--status", "127.0.0.1:0")
    try:
        query = dns.message.make_query("shop.default.svc.cluster.local", "A")

        def ask() -> str:
            reply = dns.query.udp(query, process.address[0], port=process.address[1])
            return reply.answer[0][0].to_text()

        assert {ask() for _ in range(40)} == {made["spec"]["clusterIP"]}
        workers = subprocess.run(
            ["pgrep", "-P", str(process.process.pid)], capture_output=True, text=True, check=True
        ).stdout.split()
        assert len(workers) == 2
        killed = Path(f"/proc/{workers[0]}")
        os.kill(int(workers[0]), signal.SIGKILL)
        until(lambda: not killed.exists())  # until then it might still take a question with it
        assert {ask() for _ in range(40)} == {made["spec"]["clusterIP"]}, "queries wait for the worker to come back"
        until(lambda: 'seamark_dns_worker_restarts_total{worker="' in _page(process, "/metrics"))
        assert 'worker="0"} 1\n' in _page(process, "/metrics") or 'worker="1"} 1\n' in _page(process, "/metrics")
        until(lambda: _page(process, "/ready").splitlines()[-2:] == ["worker 0: OK", "worker 1: OK"])
        served = [line for line in _page(process, "/metrics").splitlines() if line.startswith("seamark_dns_replies")]
        assert {line.split('worker="')[1][0] for line in served} <= {"0", "1"}
    finally:
        assert process.stop() == 0


def _page(process: DnsProcess, path: str) -> str:
    with socket.create_connection(process.status) as sock:
        sock.sendall(f"GET {path} HTTP/1.1\r\n\r\n".encode())
        return b"".join(iter(lambda: sock.recv(65536), b"")).decode()


def test_resolve_says_why(server: Seamark, api: Api) -> None:
    api("POST", "/api/v1/namespaces/default/services", HEADLESS)
    host, port = dns_address(server.lines)
    command = [sys.executable, "-m", "seamark", "resolve", "--kubeconfig", str(server.kubeconfig), "--forward", "none"]

    def resolve(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)

    empty = resolve("web", "-t", "A")
    assert empty.returncode == 1
    assert "Service web in namespace default is headless and has no ready endpoints" in empty.stdout
    assert "there is no namespace web" in empty.stdout
    api.run_pod("web-0", "10.20.0.1", service="web")
    until(lambda: looked_up((host, port), "web.default.svc.cluster.local") == ["10.20.0.1"])
    found = resolve("web", "-t", "A", "--server", f"{host}:{port}")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "web.default.svc.cluster.local. 5 IN A 10.20.0.1" in found.stdout
    assert resolve("web", "--from", "kube-system", "-t", "A").returncode == 1
    assert resolve("web.default", "--from", "kube-system", "-t", "SRV").returncode == 0
    wrong = resolve("web", "-t", "NONSENSE")
    assert (wrong.returncode, wrong.stderr) == (2, "seamark: there is no record type NONSENSE\n")
