"""The ports of a Service: what may stand in one, and what may not be twice."""

from __future__ import annotations

from seamark.errors import Object
from seamark.kinds.service.types import CLUSTER_IP
from seamark.kinds.values.fields import Errors, duplicate, forbidden, invalid, required
from seamark.kinds.values.metadata import dns_label
from seamark.kinds.values.ports import app_protocol_mistakes, port_mistakes, port_number_mistakes, protocol_mistakes


def own_port_mistakes(ports: list[Object], path: str) -> Errors:
    """What is wrong with each port by itself, and with their names together."""
    errors: Errors = []
    names = set()
    for i, port in enumerate(ports):
        at = f"{path}[{i}]"
        name = port.get("name", "")
        if name:
            errors += [invalid(f"{at}.name", name, sentence) for sentence in dns_label(name)]
            if name in names:
                errors.append(duplicate(f"{at}.name", name))
            names.add(name)
        elif len(ports) > 1:
            errors.append(required(f"{at}.name"))
        errors += port_number_mistakes(f"{at}.port", port.get("port", 0))
        errors += protocol_mistakes(f"{at}.protocol", port.get("protocol", ""))
        errors += port_mistakes(f"{at}.targetPort", port.get("targetPort", 0))
        errors += app_protocol_mistakes(f"{at}.appProtocol", port.get("appProtocol"))
    return errors


def node_port_mistakes(spec: Object, path: str) -> Errors:
    """Node ports where there may be none, and one given to two ports of the same protocol."""
    ports = spec.get("ports") or ()
    errors: Errors = []
    if spec.get("type") == CLUSTER_IP:
        for i, port in enumerate(ports):
            if port.get("nodePort"):
                errors.append(forbidden(f"{path}[{i}].nodePort", "may not be used when `type` is 'ClusterIP'"))
    seen = set()
    for i, port in enumerate(ports):
        if node_port := port.get("nodePort"):
            key = (port.get("protocol"), node_port)
            if key in seen:
                errors.append(duplicate(f"{path}[{i}].nodePort", node_port))
            seen.add(key)
    return errors


def same_port_mistakes(ports: list[Object], path: str) -> Errors:
    """One port number offered twice over the same protocol."""
    errors: Errors = []
    seen = set()
    for i, port in enumerate(ports):
        protocol, number = port.get("protocol", ""), port.get("port", 0)
        if (protocol, number) in seen:
            # Kubernetes prints its internal struct here, with only the two fields that count.
            shown = {
                "Name": "",
                "Protocol": protocol,
                "AppProtocol": None,
                "Port": number,
                "TargetPort": 0,
                "NodePort": 0,
            }
            errors.append(duplicate(f"{path}[{i}]", shown))
        seen.add((protocol, number))
    return errors
