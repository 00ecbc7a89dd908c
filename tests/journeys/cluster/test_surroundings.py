"""What ``seamark up`` has around Services: furnished namespaces, addresses for load balancers, after a restart too."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from commands import Kubectl
from seamark_process import Seamark
from waiting import until

ARGUMENTS = ("--dns-port", "0", "--nodes", "1", "--load-balancer-pool", "192.0.2.40-192.0.2.49")


def addresses(kubectl: Kubectl, *names: str) -> list[str]:
    services = json.loads(kubectl("get", "services", *names, "-o", "json"))
    items = services.get("items", [services])
    return [each["ip"] for item in items for each in item["status"]["loadBalancer"].get("ingress", [])]


def test_namespaces_are_furnished_and_load_balancers_keep_their_addresses(
    start: Callable[..., Seamark], make_kubectl: Callable[[Seamark], Kubectl]
) -> None:
    server = start(*ARGUMENTS, verb="up")
    kubectl = make_kubectl(server)
    kubectl("create", "namespace", "shop")
    until(lambda: "kube-root-ca.crt" in kubectl("get", "configmaps", "-n", "shop"))
    found = json.loads(kubectl("get", "configmap", "kube-root-ca.crt", "-n", "shop", "-o", "json"))
    assert found["data"] == {"ca.crt": Path(server.ca).read_text()}
    until(lambda: "default" in kubectl("get", "serviceaccounts", "-n", "shop"))

    for name in ("one", "two"):
        kubectl("create", "service", "loadbalancer", name, "--tcp=80:80")
        until(lambda n=name: addresses(kubectl, n))
    assert addresses(kubectl, "one", "two") == ["192.0.2.40", "192.0.2.41"]
    assert "192.0.2.40" in kubectl("get", "service", "one")
    kubectl.wait("service/one", "--for=jsonpath={.status.loadBalancer.ingress[0].ipMode}=VIP")
    kubectl("delete", "service", "one")

    assert server.stop() == 0
    kubectl = make_kubectl(start(*ARGUMENTS, verb="up"))
    kubectl("create", "service", "loadbalancer", "three", "--tcp=80:80")
    until(lambda: addresses(kubectl, "three"))
    assert addresses(kubectl, "three", "two") == ["192.0.2.40", "192.0.2.41"]
