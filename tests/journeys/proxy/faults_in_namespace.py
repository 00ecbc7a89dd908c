"""Run by ``test_proxy_faults`` inside its own user and network namespaces, with a directory to write to and a mode."""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from seamark_process import Process, Seamark

OBJECTS = """
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {clusterIP: 10.96.0.10, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: default, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: "", port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.244.1.1]}]
---
apiVersion: v1
kind: Service
metadata: {name: gone, namespace: default}
spec: {clusterIP: 10.96.0.11, ports: [{port: 80}]}
"""


def reached() -> bool:
    try:
        with urllib.request.urlopen("http://10.96.0.10", timeout=10) as answer:
            return bool(answer.status == 200)
    except urllib.error.URLError:
        return False


def seamark(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "seamark", *arguments], check=True, stdout=subprocess.DEVNULL)


def shown(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main(directory: Path, mode: str) -> None:
    for command in ("link set lo up", "addr add 10.244.1.1/32 dev lo"):
        shown("ip", *command.split())
    backend = http.server.ThreadingHTTPServer(("10.244.1.1", 8080), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=backend.serve_forever, daemon=True).start()
    api = Seamark(directory / "cluster", "--ephemeral", "--profile", "plain", "--service-range", "10.96.0.0/16")
    (directory / "web.yaml").write_text(OBJECTS)
    seamark("apply", "--kubeconfig", str(api.kubeconfig), "-f", str(directory / "web.yaml"))
    asked = ["proxy", "--kubeconfig", str(api.kubeconfig), "--node-name", "n", "--cluster-cidr", "10.244.0.0/16"]
    asked += ["--mode", mode]
    faults = by_nftables if mode == "nftables" else by_userspace
    faults(api, asked, directory / "proxy.log")
    print("everything held")


def by_nftables(api: Seamark, asked: list[str], log: Path) -> None:
    shown("ip", "route", "add", "10.96.0.0/16", "dev", "lo")
    proxy = Process(*asked, log=log)
    assert reached(), "a cluster IP leads to its endpoint"
    proxy.kill()
    assert reached(), "the rules outlive the proxy"
    proxy = Process(*asked, log=log)
    assert reached(), "the next proxy takes them over"
    api.kill()
    assert reached(), "the rules outlive the API server"
    assert proxy.process.poll() is None, "and the proxy goes on"
    proxy.stop()
    seamark("proxy", "--cleanup")
    assert "seamark" not in shown("nft", "list", "tables"), "nothing is left after cleaning up"


def by_userspace(api: Seamark, asked: list[str], log: Path) -> None:
    ours = ("ip", "route", "show", "table", "local", "proto", "83")
    proxy = Process(*asked, log=log)
    assert reached(), "a cluster IP leads to its endpoint"
    proxy.kill()
    assert "10.96.0.11" in shown(*ours), "a proxy that is killed leaves its routes behind"
    assert not reached(), "nothing answers there"
    seamark("delete", "--kubeconfig", str(api.kubeconfig), "service", "gone")
    proxy = Process(*asked, log=log)
    assert "10.96.0.11" not in shown(*ours), "the next proxy removes those that nothing needs"
    assert reached(), "and serves again"
    api.kill()
    assert reached(), "it goes on without the API server"
    assert proxy.process.poll() is None
    proxy.stop()
    assert not shown(*ours), "a proxy that ends leaves nothing behind"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
