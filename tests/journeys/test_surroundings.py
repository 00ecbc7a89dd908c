"""What ``seamark up`` has around Services: furnished namespaces, addresses for load balancers, after a restart too."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seamark_process import Seamark

Kubectl = Callable[..., str]

ARGUMENTS = ("--dns-port", "0", "--nodes", "1", "--load-balancer-pool", "192.0.2.40-192.0.2.49")


def until(ask: Callable[[], Any], what: str) -> Any:
    """Wait for something that must come; a minute without it means that it does not."""
    end = time.monotonic() + 300
    while not (found := ask()):
        assert time.monotonic() < end, f"in vain: {what}"
        time.sleep(0.05)
    return found


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
    until(lambda: "kube-root-ca.crt" in kubectl("get", "configmaps", "-n", "shop"), "the CA's certificate")
    found = json.loads(kubectl("get", "configmap", "kube-root-ca.crt", "-n", "shop", "-o", "json"))
    assert found["data"] == {"ca.crt": Path(server.ca).read_text()}
    until(lambda: "default" in kubectl("get", "serviceaccounts", "-n", "shop"), "the default ServiceAccount")

    for name in ("one", "two"):
        kubectl("create", "service", "loadbalancer", name, "--tcp=80:80")
        until(lambda n=name: addresses(kubectl, n), f"an address of {name}")
    assert addresses(kubectl, "one", "two") == ["192.0.2.40", "192.0.2.41"]
    assert "192.0.2.40" in kubectl("get", "service", "one")
    kubectl("wait", "service/one", "--for=jsonpath={.status.loadBalancer.ingress[0].ipMode}=VIP", "--timeout=30s")
    kubectl("delete", "service", "one")

    assert server.stop() == 0
    kubectl = make_kubectl(start(*ARGUMENTS, verb="up"))
    kubectl("create", "service", "loadbalancer", "three", "--tcp=80:80")
    until(lambda: addresses(kubectl, "three"), "an address after the restart")
    assert addresses(kubectl, "three", "two") == ["192.0.2.40", "192.0.2.41"]
