"""Pods that run, as a person meets them: manifests, kubectl, curl from the host, a rollout under load, kill -9."""

from __future__ import annotations

import subprocess
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from commands import Command, Kubectl
from machines import PYTHON, require_machine
from waiting import until

from free_ports import free_node_port

PORT = free_node_port()

SERVER = """
import http.server, os, signal, sys, threading
name, version = os.environ["HOSTNAME"], os.environ.get("VERSION", "1")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        healthy = not os.path.exists("/tmp/sick")
        if self.path == "/break":
            open("/tmp/sick", "w").close()
        body = f"{name} {version}\\n".encode()
        self.send_response(200 if healthy or self.path != "/health" else 503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments): pass
server = http.server.ThreadingHTTPServer(("", 8080), Handler)
def leave(*_):
    threading.Thread(target=server.shutdown).start()
signal.signal(signal.SIGTERM, leave)
server.serve_forever()
server.server_close()
"""

MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: program}
data:
  server.py: |
%(server)s
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: python:3
        command: ["%(python)s", /program/server.py]
        env: [{name: VERSION, value: "%(version)s"}]
        ports: [{containerPort: 8080, name: http}]
        readinessProbe:
          {httpGet: {path: /health, port: http}, periodSeconds: 1, timeoutSeconds: 60, failureThreshold: 1}
        lifecycle: {preStop: {sleep: {seconds: 20}}}
        volumeMounts: [{name: program, mountPath: /program}]
      volumes: [{name: program, configMap: {name: program}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: NodePort
  selector: {app: web}
  ports: [{port: 80, targetPort: http, nodePort: %(port)s}]
---
apiVersion: v1
kind: Service
metadata: {name: web-all}
spec: {clusterIP: None, selector: {app: web}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: python:3, command: [sleep, "1000"]}]}
"""
CLIENT = """
import socket, urllib.request
print(*{urllib.request.urlopen("http://web", timeout=120).read().split()[0].decode() for _ in range(20)})
print(*{found[4][0] for found in socket.getaddrinfo("web-all", 80, socket.AF_INET)})
"""

PEERS = """
apiVersion: v1
kind: Service
metadata: {name: peers}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {app: peer}, ports: [{port: 8080, name: main}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: peer}
spec:
  serviceName: peers
  replicas: 3
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: peer}}
  template:
    metadata: {labels: {app: peer}}
    spec:
      containers:
      - name: main
        image: python:3
        command: ["%(python)s", /program/server.py]
        readinessProbe: {httpGet: {path: /health, port: 8080}, periodSeconds: 1, timeoutSeconds: 60}
        volumeMounts: [{name: program, mountPath: /program}]
      volumes: [{name: program, configMap: {name: program}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: meet}
spec:
  backoffLimit: 100
  template:
    spec:
      restartPolicy: OnFailure
      containers:
      - name: main
        image: python:3
        command: ["%(python)s", -c]
        args:
        - |
          import urllib.request
          for number in range(3):
              name = f"peer-{number}"
              answer = urllib.request.urlopen(f"http://{name}.peers:8080", timeout=120).read().decode()
              assert answer.split()[0] == name, answer
"""


@pytest.fixture(scope="module", autouse=True)
def machine() -> None:
    require_machine()


def manifest(version: str) -> str:
    indented = "".join(f"    {line}\n" for line in SERVER.splitlines())
    return MANIFEST % {"server": indented, "version": version, "python": PYTHON, "port": PORT}


@pytest.fixture
def up(start):
    options = ("--ephemeral", "--dns-port", "0", "--nodes", "2", "--pods", "processes", "--image", "python*=host")
    return start(*options, verb="up")


@pytest.fixture
def kubectl(up, tmp_path: Path) -> Kubectl:
    return Kubectl(up.kubeconfig, tmp_path)


def ask(url: str) -> str:
    with urllib.request.urlopen(url, timeout=120) as answer:
        return str(answer.read().decode())


def asked(url: str) -> str:
    """Like ``ask``, for who waits until there is an answer."""
    try:
        return ask(url)
    except OSError:
        return ""


class Load:
    """Requests one after the other, until it is stopped."""

    def __init__(self, url: str) -> None:
        self.answers: list[str] = []
        self.failures: list[str] = []
        self._url, self._over = url, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self.answers.append(ask(self._url).strip())
            except (OSError, urllib.error.URLError) as error:
                self.failures.append(str(error))

    def stop(self) -> None:
        self._over.set()
        self._thread.join()


def test_a_deployment_serves_heals_and_rolls_out(up, kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=manifest("1"))
    kubectl("rollout", "status", "deployment/web")
    url = f"http://127.0.0.1:{PORT}"
    until(lambda: asked(url))
    seen = set(kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].metadata.name}").split())
    until(lambda: {ask(url).split()[0] for _ in range(12)} == seen)

    kubectl.wait("--for=condition=Ready", "pod/client")

    def inside() -> tuple[set[str], set[str]]:
        """The Pods that a Pod reaches by the Service's name, and the addresses that DNS gives for all of them."""
        by_name, by_dns = kubectl("exec", "client", "--", PYTHON, "-c", CLIENT).splitlines()
        return set(by_name.split()), set(by_dns.split())

    addresses = set(kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].status.podIP}").split())
    until(lambda: inside() == (seen, addresses))

    sick = ask(f"{url}/break").split()[0]  # its readiness probe fails from now on
    kubectl.wait("--for=condition=Ready=false", f"pod/{sick}")
    until(lambda: sick not in {ask(url).split()[0] for _ in range(12)})
    ready = "jsonpath={.items[*].endpoints[?(@.conditions.ready==true)].targetRef.name}"
    assert sick not in kubectl("get", "endpointslices", "-l", "kubernetes.io/service-name=web", "-o", ready).split()
    at = kubectl("get", "pod", sick, "-o", "jsonpath={.status.podIP}")
    until(lambda: inside() == (seen - {sick}, addresses - {at}))
    until(lambda: "Readiness probe failed" in kubectl("events", "--for", f"pod/{sick}"))
    kubectl("delete", "pod", sick, "--wait=false")
    kubectl.wait("--for=jsonpath={.status.readyReplicas}=3", "deployment/web")
    kubectl("rollout", "status", "deployment/web")

    load = Load(url)
    until(lambda: load.answers)
    kubectl("apply", "-f", "-", stdin=manifest("2"))
    kubectl("rollout", "status", "deployment/web")
    until(lambda: load.answers and load.answers[-1].endswith(" 2"))
    load.stop()
    assert load.failures == []
    assert load.answers[0].endswith(" 1")


def test_peers_find_each_other_by_name(up, kubectl: Kubectl) -> None:
    """A StatefulSet with stable names, and a Job that asks each of them."""
    program = manifest("1").split("---")[0]
    kubectl("apply", "-f", "-", stdin=program + "---\n" + PEERS % {"python": PYTHON})
    kubectl.wait("--for=condition=Complete", "job/meet")


PLACED = """
apiVersion: v1
kind: Pod
metadata: {name: web-%(number)s, labels: {app: placed}}
spec:
  nodeName: node-%(number)s
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: python:3
    command: ["%(python)s", /program/server.py]
    readinessProbe: {httpGet: {path: /health, port: 8080}, periodSeconds: 1, timeoutSeconds: 60}
    volumeMounts: [{name: program, mountPath: /program}]
  volumes: [{name: program, configMap: {name: program}}]
---
apiVersion: v1
kind: Pod
metadata: {name: on-node-%(number)s}
spec:
  nodeName: node-%(number)s
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: python:3, command: [sleep, "1000"]}]
"""
LOCAL = """
apiVersion: v1
kind: Service
metadata: {name: inside}
spec: {internalTrafficPolicy: Local, selector: {app: placed}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: outside}
spec: {type: NodePort, externalTrafficPolicy: Local, selector: {app: placed}, ports: [{port: 80, targetPort: 8080}]}
"""
ASK = """
import sys, urllib.request
print(*(urllib.request.urlopen(sys.argv[1], timeout=20).read().split()[0].decode() for _ in range(6)))
"""


def test_local_policies_and_a_node_that_is_stopped(up, kubectl: Kubectl, tmp_path: Path) -> None:
    """Local policies keep to their node; without the other node, names and ClusterIPs lead to what is left."""
    placed = [PLACED % {"number": number, "python": PYTHON} for number in (1, 2)]
    kubectl("apply", "-f", "-", stdin="---\n".join([manifest("1").split("---")[0], *placed, LOCAL]))
    kubectl.wait("--for=condition=Ready", *(f"pod/{each}-{number}" for number in (1, 2) for each in ("web", "on-node")))

    def from_pod(pod: str, url: str) -> set[str]:
        done = kubectl.run("exec", pod, "--", PYTHON, "-c", ASK, url)
        return set(done.stdout.split()) or {done.stderr.strip().splitlines()[-2]}

    service = kubectl("get", "service", "inside", "-o", "jsonpath={.spec.clusterIP}")
    port = kubectl("get", "service", "outside", "-o", "jsonpath={.spec.ports[0].nodePort}")
    nodes = kubectl("get", "nodes", "-o", "jsonpath={.items[*].status.addresses[0].address}").split()
    until(lambda: from_pod("web-1", "http://outside") == {"web-1", "web-2"})
    for number in (1, 2):
        until(lambda n=number: from_pod(f"web-{n}", "http://inside") == {f"web-{n}"})
        until(lambda n=number: from_pod(f"on-node-{n}", f"http://{service}") == {f"web-{n}"})
    until(lambda: from_pod("on-node-1", f"http://{nodes[1]}:{port}") == {"web-2"})

    Command(tmp_path)("node", "stop", "node-2", SEAMARK_DATA_DIR=str(up.directory), KUBECONFIG=str(up.kubeconfig))
    kubectl.wait("--for=condition=Ready=false", "pod/web-2")
    until(lambda: from_pod("web-1", "http://outside") == {"web-1"})
    assert from_pod("web-1", "http://inside") == {"web-1"}
    assert "web-2" not in "".join(from_pod("on-node-1", f"http://{nodes[1]}:{port}"))


def test_a_program_and_a_shell(up, kubectl: Kubectl, tmp_path: Path) -> None:
    """``seamark run`` makes a Service of a program, and ``seamark shell`` reaches it by its name."""
    seamark = Command(tmp_path)
    here = {"SEAMARK_DATA_DIR": str(up.directory), "KUBECONFIG": str(up.kubeconfig)}
    program = tmp_path / "server.py"
    program.write_text(SERVER)
    words = ("--replicas", "2", "--port", "8080", "--health", "/health", "--", PYTHON, str(program))
    assert "deployment/hello runs" in seamark("run", "hello", *words, **here)
    ask = "import urllib.request as u; print(u.urlopen('http://hello:8080').read().decode())"
    until(lambda: seamark.run("shell", "-c", f'{PYTHON} -c "{ask}"', **here).stdout.startswith("hello-"))
    ended = seamark.run("shell", stdin="echo to the other side >&2; exit 7", **here)
    assert (ended.returncode, ended.stderr.strip().splitlines()[-1]) == (7, "to the other side")
    pod = kubectl("get", "pods", "-o", "name").splitlines()[0]
    assert seamark("shell", "--in", pod, "-c", "hostname", **here).strip() == pod.removeprefix("pod/")
    assert not [name for name in kubectl("get", "pods", "-o", "name").splitlines() if name.startswith("pod/shell-")]


def test_nothing_is_left_after_a_kill(up, kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=manifest("1"))
    kubectl("rollout", "status", "deployment/web")
    servers = [each for each in below(up.process.pid) if "/program/server.py" in command_line(each)]
    assert len(servers) == 3
    up.kill()
    until(lambda: not any(command_line(each) for each in servers))


def below(process: int) -> list[int]:
    """Its children, their children, and so on."""
    pairs = [line.split() for line in subprocess.check_output(["ps", "-eo", "pid=,ppid="], text=True).splitlines()]
    found = [process]
    for each in found:
        found += [int(pid) for pid, parent in pairs if int(parent) == each]
    return found[1:]


def command_line(process: int) -> str:
    """Empty once it has ended, also while its parent has not asked how."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""
