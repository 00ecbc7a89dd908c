"""The manifests in ``deploy``: they say what they should, and ask for no more than what is needed."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from own_cluster import own_cluster

from recording_cluster import RecordingCluster
from seamark import __version__
from seamark.access.cluster import Listing
from seamark.access.informers import Informers
from seamark.cli.running import dns as dns_command
from seamark.cli.running import proxy as proxy_command
from seamark.cli.settings import config_of
from seamark.dns.server import DnsServer
from seamark.kinds.podsecurity.checks import violations
from seamark.kinds.podsecurity.policy import policy_of
from seamark.kinds.podsecurity.subject import subject
from seamark.kinds.resource import SERVICES, Resource
from seamark.metrics import Registry
from seamark.proxy.engine import Problem, Update
from seamark.proxy.events import ProblemEvents
from seamark.proxy.server import ProxyServer
from seamark.proxy.settings import ProxySettings

DEPLOY = Path(__file__).parents[2] / "deploy"
DIRECTORIES = ("controllers", "dns", "dns-new-cluster", "why")


def built(directory: str) -> list[dict[str, Any]]:
    """What ``kubectl kustomize`` makes of a directory."""
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl on this machine")
    done = subprocess.run(["kubectl", "kustomize", DEPLOY / directory], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def of_kind(documents: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = [document for document in documents if document["kind"] == kind]
    return found


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_what_is_built_fits_together(directory: str) -> None:
    documents = built(directory)
    account = of_kind(documents, "ServiceAccount")["metadata"]
    deployment = of_kind(documents, "Deployment")
    template = deployment["spec"]["template"]
    assert template["spec"]["serviceAccountName"] == account["name"]
    assert deployment["metadata"]["namespace"] == account["namespace"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    roles = {(d["kind"], d["metadata"]["name"]) for d in documents if d["kind"] in ("Role", "ClusterRole")}
    bindings = [document for document in documents if document["kind"].endswith("RoleBinding")]
    assert {(b["roleRef"]["kind"], b["roleRef"]["name"]) for b in bindings} == roles
    for binding in bindings:
        subject = {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
        assert binding["subjects"] == [subject]


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_pods_have_no_privileges_and_are_probed(directory: str) -> None:
    spec = of_kind(built(directory), "Deployment")["spec"]
    pod = spec["template"]["spec"]
    assert spec["replicas"] == 2
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = pod["containers"]
    assert container["image"] == f"seamark:{__version__}"
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    (status,) = [argument for argument in container["args"] if argument.startswith("--status=")]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert status == f"--status=:{ports['status']}"
    assert container["livenessProbe"]["httpGet"] == {"path": "/health", "port": "status"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/ready", "port": "status"}


@pytest.mark.parametrize("directory", ["controllers", "proxy", "why"])
def test_pods_comply_with_the_level_of_their_namespace(directory: str) -> None:
    documents = built(directory)
    enforced = policy_of(of_kind(documents, "Namespace")["metadata"]["labels"]).enforce
    (template,) = [each["spec"]["template"] for each in documents if each["kind"] in ("DaemonSet", "Deployment")]
    assert violations(enforced, subject(template["metadata"], template["spec"])) == []
    assert enforced.level == ("privileged" if directory == "proxy" else "restricted")


def test_dns_pods_are_those_that_kube_dns_selects() -> None:
    documents = built("dns-new-cluster")
    service, deployment = of_kind(documents, "Service"), of_kind(documents, "Deployment")
    assert (service["metadata"]["namespace"], service["metadata"]["name"]) == ("kube-system", "kube-dns")
    assert service["metadata"]["namespace"] == deployment["metadata"]["namespace"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    offered = {(port["containerPort"], port["protocol"]) for port in container["ports"]}
    assert {(53, "UDP"), (53, "TCP")} <= offered


class EmptyCluster:
    """Lists nothing and never changes."""

    async def list(self, resource: Resource, *, as_: type[Any] = dict, **more: str) -> Listing[Any]:
        return Listing([], "1")

    async def watch(self, resource: Resource, **more: Any) -> Any:
        for never in _nothing():
            yield never


def _nothing() -> Iterator[Any]:
    yield from ()


def test_the_proxy_runs_on_every_node_with_one_capability() -> None:
    documents = built("proxy")
    account, pod = of_kind(documents, "ServiceAccount"), of_kind(documents, "DaemonSet")["spec"]["template"]["spec"]
    (binding,) = [document for document in documents if document["kind"] == "ClusterRoleBinding"]
    subject = {"kind": "ServiceAccount", "name": account["metadata"]["name"], "namespace": "seamark-proxy"}
    assert (pod["serviceAccountName"], binding["subjects"]) == (subject["name"], [subject])
    assert pod["hostNetwork"] is True
    assert pod["tolerations"] == [{"operator": "Exists"}]
    (container,) = pod["containers"]
    assert container["image"] == f"seamark:{__version__}"
    assert container["securityContext"] == {
        "runAsUser": 0,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
    }
    verb, *arguments = container["args"]
    settings = config_of(proxy_command.parser().parse_args(arguments), "proxy").proxy
    assert verb == "proxy"
    assert settings.healthz.endswith(f":{container['ports'][0]['containerPort']}")
    assert container["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "healthz"}


class IdleEngine:
    rules = 0

    async def start(self) -> None: ...

    async def apply(self, update: Update) -> None: ...

    async def close(self) -> None: ...


async def test_the_role_of_the_proxy_is_what_it_calls() -> None:
    """Every call of a proxy that finds a port in use, twice, so that the second time the Event is counted."""
    expected = {
        (verb, group, resource)
        for rule in of_kind(built("proxy"), "ClusterRole")["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    async with own_cluster() as own:
        service = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
        await own.cluster.create(SERVICES, service, namespace="default")
        recorder = RecordingCluster(own.api.cluster("proxy"))
        informers = Informers(recorder)
        events = ProblemEvents(recorder, informers)
        settings = ProxySettings(healthz="127.0.0.1:0", metrics="")
        server = ProxyServer(informers, IdleEngine(), settings, node_name="node-a", metrics=Registry())
        started = asyncio.Event()
        running = asyncio.create_task(server.run(started.set))
        await started.wait()
        for _ in range(2):
            events.record(Problem("default/web", "it cannot be served"))
        while recorder.calls != expected and not running.done():
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.wait([running])
        await events.stop()
    assert recorder.calls == expected


async def test_the_role_of_dns_is_what_dns_calls() -> None:
    documents = built("dns")
    (container,) = of_kind(documents, "Deployment")["spec"]["template"]["spec"]["containers"]
    verb, *arguments = container["args"]
    assert verb == "dns"
    elsewhere = {"--listen=:53": "--listen=127.0.0.1:0", "--status=:8181": "--status=127.0.0.1:0"}
    options = dns_command.parser().parse_args([elsewhere.get(each, each) for each in arguments] + ["--forward", "none"])
    recorder = RecordingCluster(EmptyCluster())
    server = DnsServer(config_of(options, "dns").dns, recorder)
    async with server.running():
        await server.synced()
    granted = {
        (verb, group, resource)
        for rule in of_kind(documents, "ClusterRole")["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert recorder.calls == granted
