"""``seamark run``: the objects it makes, and what it refuses."""

from __future__ import annotations

from contextlib import asynccontextmanager

import msgspec
import pytest

from seamark.cli.failure import Failure
from seamark.cli.running import run
from seamark.config import settled
from seamark.daemon import EVERYTHING, Daemon
from seamark.kinds.resource import DEPLOYMENTS, NAMESPACES, SERVICES
from seamark.presence import RUNNING, Presence


def asked(*arguments):
    return run.parser().parse_args(list(arguments))


def test_a_program_with_a_port():
    options = asked(
        "web", "--replicas", "3", "--port", "8080", "--health", "/ok", "--env", "A=b=c", "--", "./serve", "-v"
    )
    made = run.deployment(options)
    (container,) = made["spec"]["template"]["spec"]["containers"]
    assert made["spec"]["replicas"] == 3
    assert container["command"] == ["./serve", "-v"]
    assert container["readinessProbe"]["httpGet"] == {"path": "/ok", "port": "main"}
    variables = {each["name"]: each["value"] for each in container["env"]}
    assert (variables["PORT"], variables["A"]) == ("8080", "b=c")
    served = run.service(options)["spec"]
    assert served["selector"] == made["spec"]["template"]["metadata"]["labels"]
    assert served["ports"] == [{"name": "main", "port": 8080, "targetPort": "main"}]


def test_a_program_without_a_port_has_no_probe():
    (container,) = run.deployment(asked("worker", "--", "./work"))["spec"]["template"]["spec"]["containers"]
    assert not container.keys() & {"ports", "readinessProbe"}


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({}, False),
        ({"observedGeneration": 2, "updatedReplicas": 3, "availableReplicas": 3}, True),
        ({"observedGeneration": 1, "updatedReplicas": 3, "availableReplicas": 3}, False),
        ({"observedGeneration": 2, "updatedReplicas": 3, "availableReplicas": 2}, False),
        ({"observedGeneration": 2, "updatedReplicas": 1, "availableReplicas": 3}, False),
    ],
)
def test_when_it_is_ready(status, ready):
    assert run.is_ready({"metadata": {"generation": 2}, "spec": {"replicas": 3}, "status": status}) is ready


def test_mistakes_are_one_line(tmp_path):
    with pytest.raises(Failure, match="--health needs a --port"):
        run.main(["web", "--health", "/", "--", "true"])
    with pytest.raises(Failure, match="no Seamark runs in"):
        run.main(["web", "--data-dir", str(tmp_path), "--", "true"])
    with pytest.raises(Failure, match="--env A: NAME=VALUE is needed"):
        run.deployment(asked("web", "--env", "A", "--", "true"))


# --- which cluster ---------------------------------------------------------------------------------


@asynccontextmanager
async def cluster(directory, *, nodes):
    said = {
        "data_dir": str(directory),
        "ephemeral": True,
        "api": {"port": 0},
        "dns": {"listen": ["127.0.0.1:0"]},
        "userspace": {"enabled": False},
        "nodes": {"count": nodes},
    }
    async with Daemon(settled(said), EVERYTHING).running() as made:
        yield made


async def test_it_writes_to_the_cluster_of_the_kubeconfig_and_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SEAMARK_DATA_DIR", str(tmp_path / "none"))
    async with cluster(tmp_path / "one", nodes=1) as made:
        await made.api.cluster("apiserver").create(NAMESPACES, {"metadata": {"name": "shop"}})
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text((tmp_path / "one" / "kubeconfig").read_text())
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        await run._run(asked("web", "--port", "80", "-n", "shop", "--wait=false", "--", "./serve"))
        told = capsys.readouterr()
        assert told.err.startswith("seamark: writing to https://127.0.0.1:")
        assert "service/web leads to it: in the cluster http://web:80\n" in told.out
        for resource in (DEPLOYMENTS, SERVICES):
            assert await made.api.cluster("apiserver").get(resource, "web", namespace="shop")


async def test_what_is_not_ready_in_time_is_told_with_who_knows_why(tmp_path, monkeypatch):
    monkeypatch.setenv("SEAMARK_DATA_DIR", str(tmp_path / "none"))
    async with cluster(tmp_path / "one", nodes=1):
        where = ["--kubeconfig", str(tmp_path / "one" / "kubeconfig"), "--timeout", "0.001"]
        with pytest.raises(Failure, match="`seamark why svc/web -n default` says why"):
            await run._run(asked("web", "--port", "80", *where, "--", "./serve"))
        with pytest.raises(
            Failure, match=r"`kubectl describe pods -l app\.kubernetes\.io/name=work -n default` says why"
        ):
            await run._run(asked("work", *where, "--", "./work"))


async def test_a_cluster_that_cannot_run_it_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("SEAMARK_DATA_DIR", str(tmp_path / "none"))
    async with cluster(tmp_path / "one", nodes=0):
        options = asked("web", "--kubeconfig", str(tmp_path / "one" / "kubeconfig"), "--", "true")
        with pytest.raises(Failure, match="is not a cluster of `seamark up --pods processes`"):
            await run._run(options)
        present = Presence(1, ready=True, pods="simulated")
        with pytest.raises(Failure, match="only simulates Pods"):
            await run._refuse_others(None, "https://x", present)
        monkeypatch.setattr("seamark.cli.clusters.running_in", lambda directory: present)
        (tmp_path / "one" / RUNNING).write_bytes(msgspec.json.encode(present))
        with pytest.raises(Failure, match="only simulates Pods"):
            await run._run(options)
