"""kubectl and Jobs on simulated nodes, where work completes by itself."""

from __future__ import annotations

import json
from collections.abc import Callable

from commands import Kubectl
from seamark_process import Seamark, Start
from waiting import until


def test_jobs_and_cronjobs(start: Start, make_kubectl: Callable[[Seamark], Kubectl]) -> None:
    kubectl = make_kubectl(start("--dns-port", "0", "--nodes", "2", verb="up"))
    kubectl("create", "job", "hello", "--image=example/hello:1", "--", "echo", "hello")
    kubectl.wait("job/hello", "--for=condition=complete")
    header, row = kubectl("get", "jobs", "hello").splitlines()
    assert header.split() == ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]
    assert row.split()[:3] == ["hello", "Complete", "1/1"]
    until(lambda: "Job completed" in kubectl("describe", "job", "hello"))

    spec = {"completions": 6, "parallelism": 3, "completionMode": "Indexed"}
    containers = [{"name": "c", "image": "example/part:1"}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    indexed = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "parts"},
        "spec": {**spec, "template": template},
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(indexed))
    kubectl.wait("job/parts", "--for=condition=complete")
    assert kubectl("get", "job", "parts", "-o", "jsonpath={.status.completedIndexes}") == "0-5"

    failing = {"metadata": {"annotations": {"seamark.dev/fail-after": "10ms"}}, **template}
    kubectl(
        "apply",
        "-f",
        "-",
        stdin=json.dumps({**indexed, "metadata": {"name": "bad"}, "spec": {"backoffLimit": 0, "template": failing}}),
    )
    kubectl.wait("job/bad", "--for=condition=failed")

    kubectl("create", "cronjob", "tick", "--image=example/tick:1", "--schedule=@yearly")
    kubectl("create", "job", "now", "--from=cronjob/tick")
    kubectl.wait("job/now", "--for=condition=complete")
    assert kubectl("get", "cronjob", "tick", "--no-headers").split()[:4] == ["tick", "@yearly", "<none>", "False"]

    kubectl("delete", "job", "hello", "parts", "bad", "--wait")
    kubectl("delete", "cronjob", "tick")
    until(lambda: kubectl("get", "jobs,pods", "-o", "name") == "")
