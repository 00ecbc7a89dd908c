"""NetworkPolicy: which traffic reaches and leaves which Pods.  Stored and validated; nothing here enforces it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.counted import CountedKind
from seamark.kinds.kind import Column
from seamark.kinds.resource import NETWORK_POLICIES
from seamark.kinds.values.addresses import ParsedNetwork, cidr_warnings, parse_network, refuse_cidr
from seamark.kinds.values.fields import Errors, forbidden, invalid, not_supported, required
from seamark.kinds.values.label_selector import label_selector_mistakes, readable
from seamark.kinds.values.ports import port_mistakes, port_number_mistakes
from seamark.kinds.values.times import age

_TYPES = ("Ingress", "Egress")
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_SIDES = (("ingress", "from"), ("egress", "to"))


class NetworkPolicyKind(CountedKind):
    resource = NETWORK_POLICIES
    singular = "networkpolicy"
    shape_name = "io.k8s.api.networking.v1.NetworkPolicy"
    short_names = ("netpol",)
    columns = (Column("Name", format="name"), Column("Pod-Selector"), Column("Age"))

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        for side, _ in _SIDES:
            for rule in spec.get(side) or ():
                for port in rule.get("ports") or ():
                    port.setdefault("protocol", "TCP")
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]

    def validate(self, obj: Object) -> Errors:
        return _spec_mistakes(obj["spec"], ())

    def validate_update(self, obj: Object, old: Object) -> Errors:
        before = {cidr for _, peer in _peers(old["spec"]) for _, cidr in _cidrs(peer, "")}
        return _spec_mistakes(obj["spec"], before)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        cidrs = [found for at, peer in _peers(obj["spec"]) for found in _cidrs(peer, at)]
        return [sentence for at, cidr in cidrs for sentence in cidr_warnings(at, cidr)]

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta = obj["metadata"]
        selector = readable(obj["spec"].get("podSelector"))
        shown = "<error>" if selector is None else str(selector) or "<none>"
        return [meta.get("name", ""), shown, age(now, meta.get("creationTimestamp"))]


def _peers(spec: Object) -> Iterator[tuple[str, Object]]:
    """Every peer of every rule, with its path."""
    for side, field in _SIDES:
        for i, rule in enumerate(spec.get(side) or ()):
            for j, peer in enumerate(rule.get(field) or ()):
                yield f"spec.{side}[{i}].{field}[{j}]", peer


def _cidrs(peer: Object, at: str) -> Iterator[tuple[str, str]]:
    if (block := peer.get("ipBlock")) is not None:
        yield f"{at}.ipBlock.cidr", block.get("cidr", "")
        for i, cidr in enumerate(block.get("except") or ()):
            yield f"{at}.ipBlock.except[{i}]", cidr


def _spec_mistakes(spec: Object, accepted: Collection[str]) -> Errors:
    """``accepted`` are the CIDRs that the policy had before, which may stay as they are."""
    errors = label_selector_mistakes(spec.get("podSelector"), "spec.podSelector")
    for side, field in _SIDES:
        for i, rule in enumerate(spec.get(side) or ()):
            at = f"spec.{side}[{i}]"
            for j, port in enumerate(rule.get("ports") or ()):
                errors += _port_mistakes(port, f"{at}.ports[{j}]")
            for j, peer in enumerate(rule.get(field) or ()):
                errors += _peer_mistakes(peer, f"{at}.{field}[{j}]", accepted)
    types = spec.get("policyTypes") or []
    if len(types) > len(_TYPES):
        return [*errors, invalid("spec.policyTypes", types, "may not specify more than two policyTypes")]
    unknown = [(i, word) for i, word in enumerate(types) if word not in _TYPES]
    return errors + [not_supported(f"spec.policyTypes[{i}]", word, _TYPES) for i, word in unknown]


def _port_mistakes(entry: Object, at: str) -> Errors:
    errors: Errors = []
    protocol, port, end = entry.get("protocol"), entry.get("port"), entry.get("endPort")
    if protocol is not None and protocol not in _PROTOCOLS:
        errors.append(not_supported(f"{at}.protocol", protocol, _PROTOCOLS))
    if port is None:
        if end is not None:
            errors.append(invalid(f"{at}.endPort", end, "may not be specified when `port` is not specified"))
    elif isinstance(port, int):
        errors += port_number_mistakes(f"{at}.port", port)
        if end is not None:
            if end < port:
                errors.append(invalid(f"{at}.endPort", end, "must be greater than or equal to `port`"))
            errors += port_number_mistakes(f"{at}.endPort", end)
    else:
        if end is not None:
            errors.append(invalid(f"{at}.endPort", end, "may not be specified when `port` is non-numeric"))
        errors += port_mistakes(f"{at}.port", port)
    return errors


def _peer_mistakes(peer: Object, at: str, accepted: Collection[str]) -> Errors:
    errors: Errors = []
    for field in ("podSelector", "namespaceSelector"):
        errors += label_selector_mistakes(peer.get(field), f"{at}.{field}")
    block = peer.get("ipBlock")
    if block is not None:
        errors += _block_mistakes(block, f"{at}.ipBlock", accepted)
    named = [field for field in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(field) is not None]
    if not named:
        errors.append(required(at, "must specify a peer"))
    elif len(named) > 1 and block is not None:
        errors.append(forbidden(at, "may not specify both ipBlock and another peer"))
    return errors


def _block_mistakes(block: Object, at: str, accepted: Collection[str]) -> Errors:
    cidr = block.get("cidr", "")
    if not cidr:
        return [required(f"{at}.cidr")]
    errors = refuse_cidr(f"{at}.cidr", cidr, accepted)
    whole = parse_network(cidr)
    if whole is None:
        return errors
    for i, text in enumerate(block.get("except") or ()):
        path = f"{at}.except[{i}]"
        errors += refuse_cidr(path, text, accepted)
        part = parse_network(text)
        if part is not None and not _strictly_within(part, whole):
            errors.append(invalid(path, text, "must be a strict subset of `cidr`"))
    return errors


def _strictly_within(part: ParsedNetwork, whole: ParsedNetwork) -> bool:
    inside = part.network.version == whole.network.version and part.network.network_address in whole.network
    return inside and part.network.prefixlen > whole.network.prefixlen


NETWORK_POLICY = NetworkPolicyKind()
