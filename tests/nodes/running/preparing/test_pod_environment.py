"""Environment and command line of containers, by the examples of Kubernetes' documentation and their corners."""

from __future__ import annotations

import msgspec
import pytest

from seamark.nodes.running.preparing.environment import (
    Around,
    Unmakeable,
    command_line,
    environment,
    expanded,
    linked_services,
    service_variables,
)
from seamark.nodes.running.spec import PodToRun
from seamark.rules.objects.service import Service

AROUND = Around(
    {"config": {"a": "1", "b": "2"}}.get,
    {"secret": {"password": "hidden"}}.get,
    pod_ips=("10.244.1.5", "fd00::5"),
    host_ips=("172.18.0.2",),
    allocatable={"cpu": "4", "memory": "8Gi"},
)


def pod(**container):
    return msgspec.convert(
        {
            "metadata": {
                "name": "web-1",
                "namespace": "shop",
                "uid": "u",
                "labels": {"app": "web"},
                "annotations": {"note": 'says "hi"'},
            },
            "spec": {
                "nodeName": "node-1",
                "serviceAccountName": "runner",
                "containers": [{"name": "main", "image": "web", **container}],
            },
        },
        PodToRun,
    )


def made(**container):
    about = pod(**container)
    return environment(about, about.spec.containers[0], AROUND)


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(B)", "x1y2"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A ${A}", "$A ${A}"),
        ("$(A", "$(A"),
        ("cost: 5$", "cost: 5$"),
        ("", ""),
    ],
)
def test_references(text, becomes):
    assert expanded(text, {"A": "1", "B": "2"}) == becomes


def test_later_variables_refer_to_earlier_ones():
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)$(C)"}, {"name": "C", "value": "3"}]
    assert made(env=env) == {"A": "1", "B": "1$(C)", "C": "3"}


def test_sources():
    env = [
        {"name": name, "valueFrom": source}
        for name, source in {
            "NAME": {"fieldRef": {"fieldPath": "metadata.name"}},
            "LABEL": {"fieldRef": {"fieldPath": "metadata.labels['app']"}},
            "ABSENT": {"fieldRef": {"fieldPath": "metadata.labels['none']"}},
            "NODE": {"fieldRef": {"fieldPath": "spec.nodeName"}},
            "IP": {"fieldRef": {"fieldPath": "status.podIP"}},
            "IPS": {"fieldRef": {"fieldPath": "status.podIPs"}},
            "HOST": {"fieldRef": {"fieldPath": "status.hostIP"}},
            "KEY": {"configMapKeyRef": {"name": "config", "key": "a"}},
            "SECRET": {"secretKeyRef": {"name": "secret", "key": "password"}},
            "OPTIONAL": {"configMapKeyRef": {"name": "none", "key": "a", "optional": True}},
            "CPU": {"resourceFieldRef": {"resource": "limits.cpu"}},
            "MILLI": {"resourceFieldRef": {"resource": "requests.cpu", "divisor": "1m"}},
            "MEMORY": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}},
        }.items()
    ]
    assert made(env=env, resources={"requests": {"cpu": "250m"}, "limits": {"memory": "64Mi"}}) == {
        "NAME": "web-1",
        "LABEL": "web",
        "ABSENT": "",
        "NODE": "node-1",
        "IP": "10.244.1.5",
        "IPS": "10.244.1.5,fd00::5",
        "HOST": "172.18.0.2",
        "KEY": "1",
        "SECRET": "hidden",
        "CPU": "4",
        "MILLI": "250",
        "MEMORY": "64",
    }


def test_whole_objects_come_first_and_are_overridden():
    found = made(
        envFrom=[{"prefix": "P_", "configMapRef": {"name": "config"}}, {"secretRef": {"name": "secret"}}],
        env=[{"name": "P_a", "value": "own"}],
    )
    assert found == {"P_a": "own", "P_b": "2", "password": "hidden"}


@pytest.mark.parametrize(
    ("container", "words"),
    [
        ({"envFrom": [{"configMapRef": {"name": "none"}}]}, 'configmap "none" not found'),
        ({"envFrom": [{"secretRef": {"name": "none"}}]}, 'secret "none" not found'),
        (
            {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "config", "key": "x"}}}]},
            "couldn't find key x in ConfigMap shop/config",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "none", "key": "x"}}}]},
            'secret "none" not found',
        ),
    ],
)
def test_what_is_missing_is_said(container, words):
    with pytest.raises(Unmakeable, match=words):
        made(**container)


def test_the_command_line():
    about = pod(command=["serve", "$(A)"], args=["--port", "$(PORT)", "$$(A)"]).spec.containers[0]
    assert command_line(about, {"A": "1", "PORT": "80"}) == ("serve", "1", "--port", "80", "$(A)")


def service(name, namespace, *, ip="10.96.0.9", ports=({"port": 80},)):
    return msgspec.convert(
        {"metadata": {"name": name, "namespace": namespace}, "spec": {"clusterIP": ip, "ports": list(ports)}}, Service
    )


def test_services_of_the_namespace_and_the_api():
    known = [
        service("web", "shop"),
        service("headless", "shop", ip="None"),
        service("other", "elsewhere"),
        service("kubernetes", "default", ip="10.96.0.1"),
    ]
    assert [s.metadata.name for s in linked_services("shop", known, links=True)] == ["kubernetes", "web"]
    assert [s.metadata.name for s in linked_services("shop", known, links=False)] == ["kubernetes"]


def test_variables_of_a_service():
    about = service("redis-main", "shop", ports=[{"port": 6379, "name": "db"}, {"port": 53, "protocol": "UDP"}])
    assert service_variables([about]) == {
        "REDIS_MAIN_SERVICE_HOST": "10.96.0.9",
        "REDIS_MAIN_SERVICE_PORT": "6379",
        "REDIS_MAIN_SERVICE_PORT_DB": "6379",
        "REDIS_MAIN_PORT": "tcp://10.96.0.9:6379",
        "REDIS_MAIN_PORT_6379_TCP": "tcp://10.96.0.9:6379",
        "REDIS_MAIN_PORT_6379_TCP_PROTO": "tcp",
        "REDIS_MAIN_PORT_6379_TCP_PORT": "6379",
        "REDIS_MAIN_PORT_6379_TCP_ADDR": "10.96.0.9",
        "REDIS_MAIN_PORT_53_UDP": "udp://10.96.0.9:53",
        "REDIS_MAIN_PORT_53_UDP_PROTO": "udp",
        "REDIS_MAIN_PORT_53_UDP_PORT": "53",
        "REDIS_MAIN_PORT_53_UDP_ADDR": "10.96.0.9",
    }
