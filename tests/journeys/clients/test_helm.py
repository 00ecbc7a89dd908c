"""A chart with what charts usually have, through its whole life by helm."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Kubectl, Program
from seamark_process import Seamark, Start

CHART = str(Path(__file__).parent / "chart")
# helm gives up after five minutes otherwise, which a busy machine may need.
PATIENT = ("--wait", "--timeout", "24h")


@pytest.fixture
def server(start: Start, tmp_path: Path) -> Seamark:
    config = tmp_path / "seamark.toml"
    config.write_text('[nodes]\nfailing_images = ["*/broken:*"]\n')
    return start("--dns-port", "0", "--nodes", "2", "--config", str(config), verb="up")


@pytest.fixture
def kubectl(server: Seamark, make_kubectl: Callable[[Seamark], Kubectl]) -> Kubectl:
    return make_kubectl(server)


@pytest.fixture
def helm(server: Seamark, tmp_path: Path) -> Program:
    found = shutil.which("helm", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        pytest.skip("there is no helm on this machine")
    return Program([found, "--namespace", "web"], {"KUBECONFIG": str(server.kubeconfig), "HOME": str(tmp_path)})


def names(kubectl: Kubectl, kinds: str) -> set[str]:
    return set(kubectl("get", kinds, "-n", "web", "-o", "name").split())


def image(kubectl: Kubectl) -> str:
    return kubectl("get", "deployment", "one-shop", "-n", "web", "-o", "jsonpath={..containers[0].image}")


def history(helm: Program) -> list[tuple[int, str]]:
    found: list[Any] = json.loads(helm("history", "one", "-o", "json"))
    return [(each["revision"], each["status"]) for each in found]


def test_the_life_of_a_release(helm: Program, kubectl: Kubectl) -> None:
    said = helm("install", "one", CHART, "--create-namespace", "--wait-for-jobs", *PATIENT)
    assert "STATUS: deployed" in said
    assert "http://shop.example.com" in said
    ready = kubectl("get", "deployment", "one-shop", "-n", "web", "-o", "jsonpath={.status.readyReplicas}")
    assert ready == "2"
    made = "ingress,cronjob,pdb,pvc,role,rolebinding,serviceaccount,service,configmap"
    assert len([name for name in names(kubectl, made) if name.endswith("/one-shop")]) == 9
    # The hook ran before everything else, and is not part of the release.
    assert kubectl("get", "job", "one-shop-migrate", "-n", "web", "-o", "jsonpath={.status.succeeded}") == "1"
    assert "migrate" not in helm("get", "manifest", "one")

    assert "Succeeded" in helm("test", "one", "--timeout", "24h")
    helm("upgrade", "one", CHART, "--set", "test.image=registry.example/broken:1", *PATIENT)
    failed = helm.run("test", "one", "--timeout", "24h")
    assert (failed.returncode, "Phase:          Failed" in failed.stdout) == (1, True)

    password = kubectl("get", "secret", "one-shop", "-n", "web", "-o", "jsonpath={.data.password}")
    helm("upgrade", "one", CHART, "--set", "image.tag=43,ingress.enabled=false,autoscaling.enabled=true", *PATIENT)
    assert image(kubectl).endswith(":43")
    assert names(kubectl, "ingress,hpa") == {"horizontalpodautoscaler.autoscaling/one-shop"}
    assert kubectl("get", "secret", "one-shop", "-n", "web", "-o", "jsonpath={.data.password}") == password

    helm("rollback", "one", "1", *PATIENT)
    assert image(kubectl).endswith(":42")
    assert names(kubectl, "ingress,hpa") == {"ingress.networking.k8s.io/one-shop"}
    assert history(helm) == [(1, "superseded"), (2, "superseded"), (3, "superseded"), (4, "deployed")]

    helm("uninstall", "one", *PATIENT)
    assert json.loads(helm("list", "-o", "json")) == []
    # Hooks that a policy does not delete stay; all that is part of the release is gone.
    assert names(kubectl, "deployment,replicaset,service,ingress,cronjob,pdb,pvc,role") == set()
    assert names(kubectl, "jobs") == {"job.batch/one-shop-migrate"}


def test_an_upgrade_that_is_refused_changes_nothing(helm: Program, kubectl: Kubectl) -> None:
    helm("install", "one", CHART, "--create-namespace", *PATIENT)
    refused = helm.run("upgrade", "one", CHART, "--set", "image.tag=43,persistence.size=none", "--atomic", *PATIENT)
    assert refused.returncode == 1
    assert "quantities must match the regular expression" in refused.stderr
    assert image(kubectl).endswith(":42")
    assert history(helm)[-1][1] == "deployed"
