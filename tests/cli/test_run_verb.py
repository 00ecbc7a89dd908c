"""``seamark run``: the objects it makes, and what it refuses."""

from __future__ import annotations

import pytest

from seamark.cli.failure import Failure
from seamark.cli.running import run


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
