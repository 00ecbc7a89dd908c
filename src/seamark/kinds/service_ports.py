"""The ports of a Service: what may stand in one, and what may not be twice."""

from __future__ import annotations

import re
from typing import Any

from seamark.errors import Object
from seamark.kinds.fields import Errors, duplicate, forbidden, invalid, not_supported, required
from seamark.kinds.metadata import dns_label, qualified_name
from seamark.kinds.service_types import CLUSTER_IP

PROTOCOLS = ("SCTP", "TCP", "UDP")
_port_name = re.compile(r"[-a-z0-9]+")
_letter = re.compile(r"[a-z]")


def port_number_mistakes(path: str, number: int) -> Errors:
    if 1 <= number <= 65535:
        return []
    return [invalid(path, number, "must be between 1 and 65535, inclusive")]


def port_name_mistakes(name: str) -> list[str]:
    """What is wrong with this as an IANA service name, which is how container ports are called; empty if nothing."""
    wrong = []
    if len(name) > 15:
        wrong.append("must be no more than 15 characters")
    if not _port_name.fullmatch(name):
        wrong.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _letter.search(name):
        wrong.append("must contain at least one letter (a-z)")
    if "--" in name:
        wrong.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        wrong.append("must not begin or end with a hyphen")
    return wrong


def protocol_mistakes(path: str, protocol: str) -> Errors:
    if not protocol:
        return [required(path)]
    return [] if protocol in PROTOCOLS else [not_supported(path, protocol, PROTOCOLS)]


def app_protocol_mistakes(path: str, protocol: str | None) -> Errors:
    if protocol is None:
        return []
    return [invalid(path, protocol, sentence) for sentence in qualified_name(protocol)]


def _target_mistakes(path: str, target: Any) -> Errors:
    if isinstance(target, str):
        return [invalid(path, target, sentence) for sentence in port_name_mistakes(target)]
    return port_number_mistakes(path, target)


def port_mistakes(ports: list[Object], path: str) -> Errors:
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
        errors += _target_mistakes(f"{at}.targetPort", port.get("targetPort", 0))
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
