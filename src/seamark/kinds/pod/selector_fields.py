"""The values of a Pod for field selectors.

Many watches select Pods by fields (kubelets by node, DNS by phase), so only the needed fields are decoded from the
stored bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from seamark.errors import Object

NAMES = (
    "spec.nodeName",
    "spec.host",  # the name of spec.nodeName before v1
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",  # accepted but always empty, as in Kubernetes
    "status.nominatedNodeName",
)


class _Spec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    restart_policy: str = ""
    scheduler_name: str = ""
    service_account_name: str = ""
    host_network: bool = False


class _Address(msgspec.Struct, gc=False):
    ip: str = ""


class _Status(msgspec.Struct, rename="camel", gc=False):
    phase: str = ""
    pod_ips: list[_Address] = msgspec.field(default_factory=list, name="podIPs")
    nominated_node_name: str = ""


class _Pod(msgspec.Struct, gc=False):
    spec: _Spec
    status: _Status


_pod = msgspec.json.Decoder(_Pod)


def of(pod: Object) -> Mapping[str, str]:
    return _values(msgspec.convert(pod, _Pod))


def of_stored(value: bytes) -> Mapping[str, str]:
    return _values(_pod.decode(value))


def _values(pod: _Pod) -> Mapping[str, str]:
    spec, status = pod.spec, pod.status
    return {
        "spec.nodeName": spec.node_name,
        "spec.host": spec.node_name,
        "spec.restartPolicy": spec.restart_policy,
        "spec.schedulerName": spec.scheduler_name,
        "spec.serviceAccountName": spec.service_account_name,
        "spec.hostNetwork": "true" if spec.host_network else "false",
        "status.phase": status.phase,
        "status.podIP": status.pod_ips[0].ip if status.pod_ips else "",
        "status.nominatedNodeName": status.nominated_node_name,
    }
