"""A Deployment whose new Pods cannot start, on simulated nodes where images can be missing."""

from __future__ import annotations

import json
from collections.abc import Callable

from commands import Kubectl
from seamark_process import Seamark, Start
from waiting import until


def test_a_stuck_rollout_is_scaled_in_proportion(start: Start, make_kubectl: Callable[[Seamark], Kubectl]) -> None:
    kubectl = make_kubectl(start("--dns-port", "0", "--nodes", "1", verb="up"))
    template = {"metadata": {"labels": {"name": "httpd"}}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "webserver"},
        "spec": {
            "replicas": 10,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}},
            "selector": {"matchLabels": {"name": "httpd"}},
            "template": {**template, "spec": {"containers": [{"name": "httpd", "image": "example/httpd:2"}]}},
        },
    }

    def sizes() -> dict[str, tuple[int, int, int]]:
        """Of each ReplicaSet, by its image: how many Pods it should have, has, and has available."""
        found = json.loads(kubectl("get", "replicasets", "-o", "json"))["items"]
        return {
            each["spec"]["template"]["spec"]["containers"][0]["image"]: (
                each["spec"]["replicas"],
                each["status"]["replicas"],
                each["status"].get("availableReplicas", 0),
            )
            for each in found
        }

    kubectl("apply", "-f", "-", stdin=json.dumps(deployment))
    kubectl("rollout", "status", "deployment/webserver")
    kubectl("set", "image", "deployment/webserver", "httpd=webserver:404")
    until(lambda: sizes() == {"example/httpd:2": (8, 8, 8), "webserver:404": (5, 5, 0)})
    kubectl("scale", "deployment/webserver", "--replicas=30")
    until(lambda: sizes() == {"example/httpd:2": (20, 20, 20), "webserver:404": (13, 13, 0)})
    waiting = "jsonpath={.items[*].status.containerStatuses[*].state.waiting.reason}"
    assert set(kubectl("get", "pods", "-o", waiting).split()) <= {"ErrImagePull", "ImagePullBackOff"}
    kubectl("set", "image", "deployment/webserver", "httpd=example/httpd:3")
    kubectl("rollout", "status", "deployment/webserver")
    until(lambda: sizes()["example/httpd:3"] == (30, 30, 30))
