"""IngressClass: who implements the Ingresses that name it; an Ingress that names none gets the default class."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.admission import Plugin, Request
from seamark.kinds.counted import CountedKind
from seamark.kinds.kind import Column
from seamark.kinds.networking.ingress import CLASS_ANNOTATION, reference_mistakes
from seamark.kinds.resource import INGRESS_CLASSES, INGRESSES
from seamark.kinds.values.fields import Errors, forbidden, immutable, invalid, not_supported, required, too_long
from seamark.kinds.values.metadata import dns_label, dns_subdomain, newest
from seamark.kinds.values.times import age

DEFAULT_ANNOTATION = "ingressclass.kubernetes.io/is-default-class"

_LONGEST_CONTROLLER = 250
_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_path = re.compile(_PATH)


class IngressClassKind(CountedKind):
    resource = INGRESS_CLASSES
    singular = "ingressclass"
    shape_name = "io.k8s.api.networking.v1.IngressClass"
    columns = (Column("Name", format="name"), Column("Controller"), Column("Parameters"), Column("Age"))

    def default(self, obj: Object) -> None:
        parameters = obj["spec"].get("parameters")
        if parameters is not None and parameters.get("scope") is None:
            parameters["scope"] = "Cluster"

    def validate(self, obj: Object) -> Errors:
        spec = obj["spec"]
        errors = _controller_mistakes(spec.get("controller", ""), "spec.controller")
        if (parameters := spec.get("parameters")) is not None:
            errors += reference_mistakes(parameters, "spec.parameters")
            errors += _scope_mistakes(parameters, "spec.parameters")
        return errors

    def validate_update(self, obj: Object, old: Object) -> Errors:
        after, before = obj["spec"].get("controller", ""), old["spec"].get("controller", "")
        changed = [] if after == before else [immutable("spec.controller", after)]
        return changed + self.validate(obj)

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec = obj["metadata"], obj["spec"]
        shown = "<none>"
        if (parameters := spec.get("parameters")) is not None:
            group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
            shown = f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"
        return [meta.get("name", ""), spec.get("controller", ""), shown, age(now, meta.get("creationTimestamp"))]


def _controller_mistakes(controller: str, at: str) -> Errors:
    if not controller:
        return [required(at)]
    errors: Errors = []
    if len(controller.encode()) > _LONGEST_CONTROLLER:
        errors.append(too_long(at, _LONGEST_CONTROLLER))
    host, _, path = controller.partition("/")
    if not host or not path:
        sentence = 'must be a domain-prefixed path (such as "acme.io/foo")'
        return [*errors, invalid(at, controller, sentence)]
    errors += [invalid(at, host, sentence) for sentence in dns_subdomain(host)]
    if not _path.fullmatch(path):
        errors.append(invalid(at, path, f"Invalid path (regex used for validation is '{_PATH}')"))
    return errors


def _scope_mistakes(parameters: Object, at: str) -> Errors:
    scope, namespace = parameters.get("scope", ""), parameters.get("namespace")
    if scope == "Namespace":
        if namespace is None:
            return [required(f"{at}.namespace", "`parameters.scope` is set to 'Namespace'")]
        return [invalid(f"{at}.namespace", namespace, sentence) for sentence in dns_label(namespace)]
    if scope != "Cluster":
        return [not_supported(f"{at}.scope", scope, ("Cluster", "Namespace"))]
    if namespace is not None:
        return [forbidden(f"{at}.namespace", "`parameters.scope` is set to 'Cluster'")]
    return []


class DefaultIngressClass(Plugin):
    """A new Ingress that names no class gets the default one; of several defaults the newest."""

    resources = frozenset({INGRESSES})
    operations = ("CREATE",)

    def mutate(self, request: Request) -> None:
        spec, annotations = request.obj["spec"], request.obj["metadata"].get("annotations") or {}
        if "ingressClassName" in spec or CLASS_ANNOTATION in annotations:
            return
        marked = [found["metadata"] for found in request.others.all(INGRESS_CLASSES)]
        defaults = [m for m in marked if (m.get("annotations") or {}).get(DEFAULT_ANNOTATION) == "true"]
        if defaults:
            spec["ingressClassName"] = newest(defaults)


INGRESS_CLASS = IngressClassKind()
