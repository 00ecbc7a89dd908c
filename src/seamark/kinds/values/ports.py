"""Validation of port numbers, port names and protocols, shared by Pods, Services and endpoints."""

from __future__ import annotations

import re
from typing import Any

from seamark.kinds.values.fields import Errors, invalid, not_supported, required
from seamark.kinds.values.metadata import qualified_name

PROTOCOLS = ("SCTP", "TCP", "UDP")
_characters = re.compile("[-a-z0-9]+")
_letter = re.compile("[a-z]")


def port_number_mistakes(path: str, number: int) -> Errors:
    if 1 <= number <= 65535:
        return []
    return [invalid(path, number, "must be between 1 and 65535, inclusive")]


def port_name_mistakes(name: str) -> list[str]:
    """What is wrong with the name of a container's port (an IANA service name); empty if nothing."""
    wrong = ["must be no more than 15 characters"] if len(name) > 15 else []
    if not _characters.fullmatch(name):
        wrong.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _letter.search(name):
        wrong.append("must contain at least one letter (a-z)")
    if "--" in name:
        wrong.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        wrong.append("must not begin or end with a hyphen")
    return wrong


def port_mistakes(path: str, port: Any) -> Errors:
    """What is wrong with a port that is given by number or by name."""
    if isinstance(port, int):
        return port_number_mistakes(path, port)
    return [invalid(path, port, sentence) for sentence in port_name_mistakes(port)]


def protocol_mistakes(path: str, protocol: str) -> Errors:
    if not protocol:
        return [required(path)]
    return [] if protocol in PROTOCOLS else [not_supported(path, protocol, PROTOCOLS)]


def app_protocol_mistakes(path: str, protocol: str | None) -> Errors:
    if protocol is None:
        return []
    return [invalid(path, protocol, sentence) for sentence in qualified_name(protocol)]
