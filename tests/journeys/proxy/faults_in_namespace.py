"""Run by ``test_proxy_faults`` inside its own user and network namespaces, with a directory to write to."""

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
"""


def reached() -> bool:
    try:
        with urllib.request.urlopen("http://10.96.0.10", timeout=10) as answer:
            return bool(answer.status == 200)
    except urllib.error.URLError:
        return False


def seamark(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "seamark", *arguments], check=True, stdout=subprocess.DEVNULL)


def main(directory: Path) -> None:
    for command in ("link set lo up", "addr add 10.244.1.1/32 dev lo", "route add 10.96.0.0/16 dev lo"):
        subprocess.run(["ip", *command.split()], check=True)
    backend = http.server.ThreadingHTTPServer(("10.244.1.1", 8080), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=backend.serve_forever, daemon=True).start()
    api = Seamark(directory / "cluster", "--ephemeral", "--profile", "plain", "--service-range", "10.96.0.0/16")
    (directory / "web.yaml").write_text(OBJECTS)
    seamark("apply", "--kubeconfig", str(api.kubeconfig), "-f", str(directory / "web.yaml"))
    asked = ["proxy", "--kubeconfig", str(api.kubeconfig), "--node-name", "n", "--cluster-cidr", "10.244.0.0/16"]

    proxy = Process(*asked, log=directory / "proxy.log")
    assert reached(), "a cluster IP leads to its endpoint"
    proxy.kill()
    assert reached(), "the rules outlive the proxy"
    proxy = Process(*asked, log=directory / "proxy.log")
    assert reached(), "the next proxy takes them over"
    api.kill()
    assert reached(), "the rules outlive the API server"
    assert proxy.process.poll() is None, "and the proxy goes on"
    proxy.stop()
    seamark("proxy", "--cleanup")
    found = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=True).stdout
    assert "seamark" not in found, "nothing is left after cleaning up"
    print("everything held")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
