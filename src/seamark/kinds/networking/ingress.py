"""Ingress: which Services answer which hosts and paths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.counted import CountedKind
from seamark.kinds.kind import Column
from seamark.kinds.resource import INGRESSES
from seamark.kinds.subresource import status_of
from seamark.kinds.values.addresses import parse, refuse_ip
from seamark.kinds.values.fields import Errors, invalid, not_supported, required
from seamark.kinds.values.metadata import dns_label, dns_subdomain, path_segment
from seamark.kinds.values.ports import port_name_mistakes, port_number_mistakes
from seamark.kinds.values.times import age

CLASS_ANNOTATION = "kubernetes.io/ingress.class"  # how the class was named before spec.ingressClassName

_SHOWN_HOSTS = 3
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_PARTS = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDS = ("/..", "/.")
_DOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_wildcard = re.compile(rf"\*\.{_DOMAIN}")
_NOT_ADDRESS = "must be a DNS name, not an IP address"


class IngressKind(CountedKind):
    resource = INGRESSES
    singular = "ingress"
    shape_name = "io.k8s.api.networking.v1.Ingress"
    short_names = ("ing",)
    subresources = (status_of("Ingress"),)
    columns = (
        Column("Name", format="name"),
        Column("Class"),
        Column("Hosts"),
        Column("Address"),
        Column("Ports"),
        Column("Age"),
    )
    new_status: ClassVar[Object | None] = {"loadBalancer": {}}

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        # An empty list stays in its shape because the message about it differs from that about an absent one.
        if spec.get("rules") == [] and spec.get("defaultBackend") is not None:
            del spec["rules"]

    def validate(self, obj: Object) -> Errors:
        errors = _spec_mistakes(obj["spec"], old=None)
        named, chosen = _annotations(obj).get(CLASS_ANNOTATION), obj["spec"].get("ingressClassName")
        if named is not None and chosen is not None and named != chosen:
            sentence = "must match `ingressClassName` when both are specified"
            errors.append(invalid(f"annotations.{CLASS_ANNOTATION}", named, sentence))
        return errors

    def validate_update(self, obj: Object, old: Object) -> Errors:
        return _spec_mistakes(obj["spec"], old=old["spec"])

    def validate_status(self, obj: Object, old: Object) -> Errors:
        errors: Errors = []
        before = [entry.get("ip", "") for entry in _entries(old)]
        for i, entry in enumerate(_entries(obj)):
            at = f"status.loadBalancer.ingress[{i}]"
            if address := entry.get("ip"):
                errors += refuse_ip(f"{at}.ip", address, before)
            if host := entry.get("hostname"):
                errors += [invalid(f"{at}.hostname", host, sentence) for sentence in dns_subdomain(host)]
                if parse(host) is not None:
                    errors.append(invalid(f"{at}.hostname", host, _NOT_ADDRESS))
        return errors

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        if old is not None or CLASS_ANNOTATION not in _annotations(obj):
            return []
        return [f"annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"]

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec = obj["metadata"], obj["spec"]
        addresses = {entry.get("ip") or entry.get("hostname") or "" for entry in _entries(obj)} - {""}
        return [
            meta.get("name", ""),
            spec.get("ingressClassName") or "<none>",
            _hosts_cell(spec.get("rules") or ()),
            ",".join(sorted(addresses)),
            "80, 443" if spec.get("tls") else "80",
            age(now, meta.get("creationTimestamp")),
        ]


def _annotations(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def _entries(obj: Object) -> list[Object]:
    return ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []


def _hosts_cell(rules: Sequence[Object]) -> str:
    """The first hosts; as in Kubernetes, the rest is counted in rules, those without a host included."""
    with_host = [i for i, rule in enumerate(rules) if rule.get("host")][:_SHOWN_HOSTS]
    full = len(with_host) == _SHOWN_HOSTS and with_host[-1] < len(rules) - 1
    more = f" + {len(rules) - _SHOWN_HOSTS} more..." if full else ""
    return ",".join(rules[i]["host"] for i in with_host) + more or "*"


def _spec_mistakes(spec: Object, *, old: Object | None) -> Errors:
    """Validate the spec; mistakes that Kubernetes accepted in the past may stay if ``old`` has them."""
    errors: Errors = []
    rules, backend = spec.get("rules"), spec.get("defaultBackend")
    if not rules and backend is None:
        errors.append(invalid("spec", rules, "either `defaultBackend` or `rules` must be specified"))
    if backend is not None:
        errors += _backend_mistakes(backend, "spec.defaultBackend")
    tolerant = old is not None and any(
        "*" in r.get("host", "") and _rule_mistakes(r, "") for r in old.get("rules") or ()
    )
    for i, rule in enumerate(rules or ()):
        at, host = f"spec.rules[{i}]", rule.get("host", "")
        if host:
            if parse(host) is not None:
                errors.append(invalid(f"{at}.host", host, _NOT_ADDRESS))
            errors += [invalid(f"{at}.host", host, sentence) for sentence in _host_mistakes(host)]
        if not (tolerant and "*" in host):
            errors += _rule_mistakes(rule, at)
    tolerant = old is not None and any(_secret_mistakes(tls) for tls in old.get("tls") or ())
    for i, tls in enumerate(spec.get("tls") or ()):
        at = f"spec.tls[{i}]"
        for j, host in enumerate(tls.get("hosts") or ()):
            errors += [invalid(f"{at}.hosts[{j}]", host, sentence) for sentence in _host_mistakes(host)]
        if not tolerant:
            errors += [invalid(f"{at}.secretName", tls["secretName"], sentence) for sentence in _secret_mistakes(tls)]
    if (chosen := spec.get("ingressClassName")) is not None:
        errors += [invalid("spec.ingressClassName", chosen, sentence) for sentence in dns_subdomain(chosen)]
    return errors


def _secret_mistakes(tls: Object) -> list[str]:
    return dns_subdomain(tls["secretName"]) if tls.get("secretName") else []


def _host_mistakes(host: str) -> list[str]:
    if "*" not in host:
        return dns_subdomain(host)
    wrong = ["must be no more than 253 characters"] if len(host) > 253 else []
    if not _wildcard.fullmatch(host):
        wrong.append(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist "
            "of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. "
            rf"'*.example.com', regex used for validation is '\*\.{_DOMAIN}')"
        )
    return wrong


def _rule_mistakes(rule: Object, at: str) -> Errors:
    http = rule.get("http")
    if http is None:
        return []
    paths = http.get("paths") or []
    errors = [] if paths else [required(f"{at}.http.paths")]
    for i, path in enumerate(paths):
        errors += _path_mistakes(path, f"{at}.http.paths[{i}]")
    return errors


def _path_mistakes(entry: Object, at: str) -> Errors:
    kind, path = entry.get("pathType"), entry.get("path", "")
    if kind is None:
        return [required(f"{at}.pathType", "pathType must be specified")]
    errors: Errors = []
    if kind not in _PATH_TYPES:
        errors.append(not_supported(f"{at}.pathType", kind, _PATH_TYPES))
    elif kind == "ImplementationSpecific":
        if path and not path.startswith("/"):
            errors.append(invalid(f"{at}.path", path, "must be an absolute path"))
    else:
        wrong = [] if path.startswith("/") else ["must be an absolute path"]
        wrong += [f"must not contain '{part}'" for part in _BAD_PARTS if part in path]
        wrong += [f"cannot end with '{end}'" for end in _BAD_ENDS if path.endswith(end)]
        errors += [invalid(f"{at}.path", path, sentence) for sentence in wrong]
    return errors + _backend_mistakes(entry.get("backend") or {}, f"{at}.backend")


def _backend_mistakes(backend: Object, at: str) -> Errors:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        return [invalid(at, "", "cannot set both resource and service backends")]
    if resource is not None:
        return reference_mistakes(resource, f"{at}.resource")
    if service is None:
        return [invalid(at, "", "resource or service backend is required")]
    errors: Errors = []
    name, port = service.get("name", ""), service.get("port") or {}
    if not name:
        errors.append(required(f"{at}.service.name"))
    else:
        errors += [invalid(f"{at}.service.name", name, sentence) for sentence in dns_label(name)]
    if port.get("name") and port.get("number"):
        errors.append(invalid(at, "", "cannot set both port name & port number"))
    elif port_name := port.get("name"):
        path = f"{at}.service.port.name"
        errors += [invalid(path, port_name, sentence) for sentence in port_name_mistakes(port_name)]
    elif port.get("number"):
        errors += port_number_mistakes(f"{at}.service.port.number", port["number"])
    else:
        errors.append(required(at, "port name or number is required"))
    return errors


def reference_mistakes(reference: Object, at: str) -> Errors:
    """What is wrong with a reference to an object by group, kind and name."""
    errors: Errors = []
    if (group := reference.get("apiGroup")) is not None:
        errors += [invalid(f"{at}.apiGroup", group, sentence) for sentence in dns_subdomain(group)]
    for field in ("kind", "name"):
        if word := reference.get(field):
            errors += [invalid(f"{at}.{field}", word, sentence) for sentence in path_segment(word)]
        else:
            errors.append(required(f"{at}.{field}"))
    return errors


INGRESS = IngressKind()
