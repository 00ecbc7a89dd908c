"""Logs, commands, files and ports of Pods that run, by the real kubectl."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Kubectl
from machines import PYTHON, require_machine
from seamark_process import Seamark
from waiting import until

PODS = f"""
apiVersion: v1
kind: Pod
metadata: {{name: web, labels: {{app: web}}}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: here
    command: ["{PYTHON}", -u, -m, http.server, "8080"]
    ports: [{{containerPort: 8080}}]
    readinessProbe: {{tcpSocket: {{port: 8080}}, periodSeconds: 1, timeoutSeconds: 60}}
---
apiVersion: v1
kind: Service
metadata: {{name: web}}
spec: {{selector: {{app: web}}, ports: [{{port: 80, targetPort: 8080}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: counts}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {{name: one, image: here, command: [sh, -c, "for n in 1 2 3; do echo line $n; done; exit 1"]}}
  - {{name: two, image: here, command: [sh, -c, "echo other; exec sleep 1000"]}}
"""


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """One cluster for all: each test has Pods of its own, or leaves them as they are."""
    require_machine()
    home = tmp_path_factory.mktemp("streams")
    options = ("--ephemeral", "--dns-port", "0", "--nodes", "1", "--pods", "processes", "--image", "here=host")
    up = Seamark(home / "data", *options, verb="up")
    try:
        made = Kubectl(up.kubeconfig, home)
        made("apply", "-f", "-", stdin=PODS)
        made.wait("pod/web", "--for=condition=Ready")
        yield made
    finally:
        up.stop()


@pytest.fixture(params=["websockets", "spdy"])
def either(request: pytest.FixtureRequest, kubectl: Kubectl) -> Kubectl:
    """kubectl in each of its two ways into Pods: WebSockets since 1.31, SPDY before and in most clients in Go."""
    ways = ("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "KUBECTL_PORT_FORWARD_WEBSOCKETS")
    on = str(request.param == "websockets").lower()
    return kubectl.with_environment(**dict.fromkeys(ways, on))


def test_logs(kubectl: Kubectl) -> None:
    kubectl.wait("pod/counts", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1")
    kubectl.wait("pod/counts", "--for=jsonpath={.status.containerStatuses[0].lastState.terminated.exitCode}=1")
    assert kubectl("logs", "counts", "-c", "one", "--previous", "-f") == "line 1\nline 2\nline 3\n"
    assert kubectl("logs", "counts", "-c", "one", "--previous", "--tail", "1") == "line 3\n"
    assert kubectl("logs", "counts", "-c", "one", "--previous", "--limit-bytes", "6") == "line 1"
    assert "Z other\n" in kubectl("logs", "counts", "--all-containers", "--timestamps", "--since", "1h")
    refused = kubectl.run("logs", "counts", "-c", "two", "--previous")
    assert 'previous terminated container "two" in pod "counts" not found' in refused.stderr


def test_commands_and_files(either: Kubectl, tmp_path: Path) -> None:
    done = either.run("exec", "-i", "web", "--", "sh", "-c", "cat; echo wrong >&2; exit 3", stdin="typed")
    assert (done.returncode, done.stdout) == (3, "typed")
    assert done.stderr == "wrong\ncommand terminated with exit code 3\n"
    missing = either.run("exec", "web", "--", "no-such-program")
    assert (missing.returncode, "executable file not found in $PATH" in missing.stderr) == (1, True)
    content = os.urandom(3_000_000)
    (tmp_path / "sent").write_bytes(content)
    either("cp", str(tmp_path / "sent"), "web:/tmp/kept")
    either("cp", "web:/tmp/kept", str(tmp_path / "got"))
    assert (tmp_path / "got").read_bytes() == content


def test_a_pod_for_one_conversation(either: Kubectl) -> None:
    run = ("run", "--image=here", "--restart=Never", "--rm", "-q")
    words = ("--command", "--", "sh", "-c", "read word; echo got $word; exit 4")
    said = either.run(*run, "talk", "-i", *words, stdin="hello\n")
    assert "got hello" in said.stdout
    program = shutil.which("script")
    if program is None:
        pytest.skip("there is no script on this machine, which gives kubectl a terminal")
    line = " ".join([either.words[0], *run, "shell", "-it", "--command", "--", "sh", "-c", "'read word; tty; exit 4'"])
    done = subprocess.run(
        [program, "-qec", line, "/dev/null"],
        input=b"hello\n",
        env=either.environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 4, done.stdout
    assert b"/dev/pts/" in done.stdout


def test_a_container_to_look_into_a_pod(kubectl: Kubectl) -> None:
    kubectl("run", "seen", "--image=here", "--command", "--", "sleep", "1000")
    kubectl("debug", "seen", "--image=here", "--container=look", "-q", "--", "sh", "-c", "hostname; exec sleep 1000")
    kubectl.wait("pod/seen", "--for=jsonpath={.status.ephemeralContainerStatuses[0].state.running.startedAt}")
    with kubectl.beside("logs", "-f", "seen", "-c", "look", stdout=subprocess.PIPE) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "seen\n"


def test_ports(either: Kubectl) -> None:
    with either.beside("port-forward", "service/web", ":80", stdout=subprocess.PIPE) as forwarding:
        assert forwarding.stdout is not None
        port = forwarding.stdout.readline().split()[2].rpartition(":")[2]
        for _ in range(2):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=120) as answer:
                assert b"Directory listing" in answer.read()


def test_proxies(kubectl: Kubectl) -> None:
    for path in ("pods/web", "pods/http:web:8080", "services/web:80"):
        assert "Directory listing" in kubectl("get", "--raw", f"/api/v1/namespaces/default/{path}/proxy/")
    assert '"name":"web"' in kubectl("get", "--raw", "/api/v1/nodes/node-1/proxy/pods")
    refused = kubectl.run("get", "--raw", "/api/v1/namespaces/default/services/web:81/proxy/")
    assert 'no service port 81 found for service "web"' in refused.stderr


SIZED = """
apiVersion: v1
kind: Pod
metadata: {name: sized}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: stays
    image: here
    command: [sleep, "1000"]
    resources: {requests: {cpu: 10m, memory: 16Mi}}
  - name: restarts
    image: here
    command: [sleep, "1000"]
    resources: {requests: {cpu: 10m, memory: 16Mi}}
    resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]
"""


def test_other_resources(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=SIZED)
    kubectl.wait("pod/sized", "--for=condition=Ready")

    def resize(**requests: str) -> None:
        containers = [{"name": name, "resources": {"requests": requests}} for name in ("stays", "restarts")]
        patch = json.dumps({"spec": {"containers": containers}})
        kubectl("patch", "pod", "sized", "--subresource", "resize", "-p", patch)

    resize(memory="32Mi")
    kubectl.wait("pod/sized", "--for=jsonpath={.status.containerStatuses[1].restartCount}=1")
    shown = "{.status.containerStatuses[*].resources.requests.memory} {.status.containerStatuses[*].restartCount}"
    kubectl.wait("pod/sized", "--for=condition=Ready")
    assert kubectl("get", "pod", "sized", "-o", f"jsonpath={shown}") == "32Mi 32Mi 0 1"
    resize(cpu="5k")
    kubectl.wait("pod/sized", "--for=condition=PodResizePending")
    assert kubectl("get", "pod", "sized", "-o", f"jsonpath={shown}") == "32Mi 32Mi 0 1"
    resize(cpu="20m")
    kubectl.wait("pod/sized", "--for=jsonpath={.status.containerStatuses[0].resources.requests.cpu}=20m")
    assert "PodResizePending" not in kubectl("get", "pod", "sized", "-o", "yaml")


def test_top(kubectl: Kubectl) -> None:
    def measured() -> bool:
        return kubectl.run("top", "pod", "web").returncode == 0

    until(measured)
    head, *lines = kubectl("top", "pod", "web", "--containers").splitlines()
    assert head.split() == ["POD", "NAME", "CPU(cores)", "MEMORY(bytes)"]
    (memory,) = [line.split()[3] for line in lines if line.split()[:2] == ["web", "main"]]
    assert int(memory.removesuffix("Mi")) > 0
    assert "node-1" in kubectl("top", "nodes")
