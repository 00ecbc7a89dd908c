"""The demo is a test: its scenes must come out, with simulated nodes and without, on any Seamark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import Command

TITLES = (
    "1. A Service with a selector and no Pods",
    "2. A Service without a selector",
    "3. Three replicas",
    "4. A Pod turns not ready",
    "5. Endpoints by hand",
    "6. A headless Service and its names",
    "7. ExternalName",
)


def scenes(said: str) -> list[str]:
    assert [line for line in said.splitlines() if re.match(r"\d\. ", line)] == list(TITLES)
    return re.split(r"(?m)^\d\. .*$", said)[1:]


def check(said: str) -> None:
    """What the mission promises, in the outputs themselves."""
    empty, without, three, not_ready, by_hand, headless, alias = scenes(said)
    assert re.search(r"^web +<none> +\d+s$", empty, re.MULTILINE)
    assert re.search(r"^web-\S+ +IPv4 +<unset> +<unset> ", empty, re.MULTILINE)
    assert 'Error from server (NotFound): endpoints "database" not found' in without
    assert re.search(r"^web +(10\.244\.\d+\.\d+:8080,){2}10\.244\.\d+\.\d+:8080 ", three, re.MULTILINE)
    (pod,) = re.findall(r"^(web-\S+) +0/1 ", not_ready, re.MULTILINE)
    ready, _, rest = not_ready.partition("notReadyAddresses:")
    assert ready.count("- ip: 10.244.") == 2
    assert rest.partition("seamark why")[0].count("- ip: 10.244.") == 1
    assert f"name: {pod}" in rest
    assert re.search(rf"^{pod} +not ready +10\.244\.", rest, re.MULTILINE)
    assert re.search(r"^database +192\.0\.2\.10:5432 ", by_hand, re.MULTILINE)
    assert re.search(r"^database-\S+ +IPv4 +5432 +192\.0\.2\.10 ", by_hand, re.MULTILINE)
    assert len(re.findall(r"peers\.demo\.svc\.cluster\.local\. 5 IN A 10\.244\.", headless)) == 2
    assert len(re.findall(r"IN SRV 0 50 8080 \S+\.peers\.demo\.svc\.cluster\.local\.", headless)) == 2
    assert "docs.demo.svc.cluster.local. 5 IN CNAME docs.example.org." in alias
    assert 'namespace "demo" deleted' in said


@pytest.mark.parametrize("nodes", ["3", "0"])
def test_on_a_seamark_of_its_own(tmp_path: Path, nodes: str) -> None:
    seamark = Command(tmp_path)
    said = seamark("demo", "--ephemeral", "--nodes", nodes)
    assert said.startswith("On a Seamark of its own")
    check(said)
    assert list(tmp_path.iterdir()) == []


def test_on_the_seamark_that_runs(tmp_path: Path) -> None:
    seamark = Command(tmp_path)
    with seamark.up("--nodes", "1"):
        said = seamark("demo", "--keep")
        assert said.startswith("On the Seamark that runs in")
        assert "namespace/demo" in seamark("get", "ns", "-o", "name")
        again = seamark.run("demo")
        assert (again.returncode, again.stderr.count("\n")) == (1, 1)
        assert "there is a namespace demo already" in again.stderr
        assert "web" in seamark("get", "svc", "-n", "demo")
        seamark("delete", "ns", "demo")
        kubeconfig = str(seamark.data / "kubeconfig")
        check(seamark("demo", "--kubeconfig", kubeconfig))
        assert "namespace/demo" not in seamark("get", "ns", "-o", "name")


def test_on_what_is_no_seamark(tmp_path: Path) -> None:
    seamark = Command(tmp_path)
    with seamark.up("--nodes", "0"):
        seamark("apply", "-f", "-", stdin="apiVersion: v1\nkind: Node\nmetadata: {name: real}\n")
        done = seamark.run("demo")
        assert done.returncode == 1
        assert "real is a real Node" in done.stderr
        assert "namespace/demo" not in seamark("get", "ns", "-o", "name")
