"""Reads manifests as if they had been applied, so that the same checks work before anything is deployed.

Every template of a workload becomes one Pod that runs and is ready, so that all findings are about the manifests.
Objects that were exported from a cluster, with their status, are taken as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec
import yaml

from seamark.rules.objects.namespace import Namespace
from seamark.rules.objects.network import ServiceCIDR
from seamark.rules.objects.node import Node
from seamark.why.views import (
    AnyWorkload,
    Endpoints,
    EndpointSlice,
    Ingress,
    IngressClass,
    NetworkPolicy,
    Pod,
    Service,
)
from seamark.why.world import Seen, World

T = TypeVar("T")
Document = dict[str, Any]

_SUFFIXES = (".yaml", ".yml", ".json")
_CLUSTER_SCOPED = frozenset(("Node", "Namespace", "ServiceCIDR", "IngressClass"))
_NODE = "a-node"


class ManifestError(Exception):
    """A manifest cannot be read; the text says which and where, in one line."""


class _Loader(yaml.SafeLoader):
    """YAML as Kubernetes reads it: a timestamp is text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


# --- reading ---------------------------------------------------------------------------------------


def documents(paths: Iterable[str], *, stdin: IO[str] | None = None) -> list[tuple[str, Document]]:
    """Every object of the files, directories or (``-``) standard input, with the name of its source."""
    found: list[tuple[str, Document]] = []
    for path in paths:
        if path == "-":
            found += _parsed("standard input", (stdin or sys.stdin).read())
            continue
        for file in _files(Path(path)):
            try:
                text = file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise ManifestError(f"cannot read {file}: {error}") from error
            found += _parsed(str(file), text)
    return found


def _files(path: Path) -> Sequence[Path]:
    if not path.exists():
        raise ManifestError(f"there is no {path}")
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
    if not found:
        raise ManifestError(f"there are no manifests ({', '.join('*' + suffix for suffix in _SUFFIXES)}) in {path}")
    return found


def _parsed(source: str, text: str) -> Iterator[tuple[str, Document]]:
    try:
        for document in yaml.load_all(text, Loader=_Loader):
            yield from ((source, each) for each in _objects(source, document))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{source}, line {mark.line + 1}" if mark is not None else source
        raise ManifestError(f"{where}: {getattr(error, 'problem', None) or error}") from error


def _objects(source: str, document: Any) -> Iterator[Document]:
    if document is None:
        return  # a file of comments, or an empty template of Helm
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        raise ManifestError(f"{source}: not a Kubernetes object, it has no kind")
    if document["kind"].endswith("List") and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _objects(source, {"kind": document["kind"].removesuffix("List"), **_mapping(item)})
        return
    yield _pruned(document)


def _pruned(value: Any) -> Any:
    """Without nulls, which Kubernetes treats like missing fields."""
    if isinstance(value, dict):
        return {key: _pruned(entry) for key, entry in value.items() if entry is not None}
    return [_pruned(entry) for entry in value if entry is not None] if isinstance(value, list) else value


# --- understanding ---------------------------------------------------------------------------------


def world_of(found: Iterable[tuple[str, Document]], *, namespace: str = "default") -> World:
    """The cluster that these objects would make; objects without a namespace go into the given one."""
    from seamark.why.validation import mistakes  # it loads the rules of every kind

    by_kind: dict[str, list[tuple[str, Document]]] = {}
    found = list(found)
    for source, document in found:
        meta = document.setdefault("metadata", {})
        if isinstance(meta, dict) and document["kind"] not in _CLUSTER_SCOPED:
            meta.setdefault("namespace", namespace)
        kind = "Workload" if _template(document) is not None else document["kind"]
        by_kind.setdefault(kind, []).append((source, document))
    workloads = [(_workload(source, each), each) for source, each in by_kind.get("Workload", ())]
    pods = [_pod(source, each, position) for position, (source, each) in enumerate(by_kind.get("Pod", ()))]
    pods += [
        _made(workload, each, len(pods) + position)
        for position, (workload, each) in enumerate(workloads)
        if workload.wanted != 0 and not workload.spec.suspend
    ]
    return World(
        Seen(
            services=[_service(source, each) for source, each in by_kind.get("Service", ())],
            pods=pods,
            nodes=_all(by_kind, "Node", Node) or None,
            endpoints=_all(by_kind, "Endpoints", Endpoints),
            slices=_all(by_kind, "EndpointSlice", EndpointSlice),
            workloads=[workload for workload, _ in workloads],
            cidrs=_all(by_kind, "ServiceCIDR", ServiceCIDR) or None,
            namespaces=_all(by_kind, "Namespace", Namespace) or None,
            ingresses=_all(by_kind, "Ingress", Ingress),
            ingress_classes=_all(by_kind, "IngressClass", IngressClass) or None,
            policies=_all(by_kind, "NetworkPolicy", NetworkPolicy),
            mistakes=mistakes(document for _, document in found),
            hypothetical=True,
        )
    )


def _all(by_kind: dict[str, list[tuple[str, Document]]], kind: str, type: type[T]) -> list[T]:
    return [_converted(source, document, type) for source, document in by_kind.get(kind, ())]


def _converted(source: str, document: Document, type: type[T]) -> T:
    try:
        return msgspec.convert(document, type)
    except msgspec.ValidationError as error:
        name = _mapping(document.get("metadata")).get("name", "?")
        raise ManifestError(f"{source}: {document['kind']} {name}: {error}") from error


def _service(source: str, document: Document) -> Service:
    """The Service with the target ports that the API server would fill in."""
    ports = _mapping(document.get("spec")).get("ports")
    for port in ports if isinstance(ports, list) else ():
        if isinstance(port, dict) and not port.get("targetPort"):
            port["targetPort"] = port.get("port", 0)
    return _converted(source, document, Service)


def _template(document: Document) -> Document | None:
    """The Pod template of a workload, whatever its kind."""
    spec = document.get("spec")
    for step in ("jobTemplate", "spec"):
        spec = spec.get(step, spec) if isinstance(spec, dict) else None
    template = spec.get("template") if isinstance(spec, dict) else None
    if isinstance(template, dict) and isinstance(template.get("spec"), dict) and "containers" in template["spec"]:
        return template
    return None


def _workload(source: str, document: Document) -> AnyWorkload:
    spec = document["spec"]
    known = {key: spec[key] for key in ("replicas", "serviceName", "paused", "suspend", "schedule") if key in spec}
    plain = {
        "kind": document["kind"],
        "metadata": document["metadata"],
        "spec": {**known, "template": _template(document)},
    }
    return _converted(source, plain, AnyWorkload)


def _made(workload: AnyWorkload, document: Document, number: int) -> Pod:
    """The Pod a workload would make."""
    template = _template(document) or {}
    spec = dict(template["spec"])
    if workload.kind == "StatefulSet":
        spec |= {"hostname": f"{workload.metadata.name}-0", "subdomain": workload.spec.service_name}
    labels = workload.spec.template.metadata.labels
    name = f"{workload.metadata.name} ({workload.kind})"
    owner = {"kind": workload.kind, "name": workload.metadata.name, "controller": True}
    meta = {"name": name, "namespace": workload.metadata.namespace, "labels": labels, "ownerReferences": [owner]}
    made = {"kind": "Pod", "metadata": meta}
    return _converted("", {**made, "spec": _placed(spec), "status": _healthy(number)}, Pod)


def _pod(source: str, document: Document, number: int) -> Pod:
    if _mapping(document.get("status")).get("phase"):
        return _converted(source, document, Pod)
    return _converted(
        source, {**document, "spec": _placed(_mapping(document.get("spec"))), "status": _healthy(number)}, Pod
    )


def _mapping(value: Any) -> Document:
    """The value if it is a mapping, else an empty one: the decoder reports the wrong shape later, with the name."""
    return value if isinstance(value, dict) else {}


def _placed(spec: Document) -> Document:
    return {"nodeName": _NODE, **spec}


def _healthy(number: int) -> Document:
    """The status of a Pod that runs and is ready; its addresses are those reserved for documentation."""
    addresses = [{"ip": f"192.0.2.{number % 250 + 1}"}, {"ip": f"2001:db8::{number + 1:x}"}]
    return {"phase": "Running", "podIPs": addresses, "conditions": [{"type": "Ready", "status": "True"}]}
