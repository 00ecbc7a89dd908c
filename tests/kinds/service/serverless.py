"""The rules of the service-discovery kinds without a server: enough of the write path to play recorded cases on them.

A :class:`World` holds objects in a dict, takes the steps of a case one by one and answers as the API server would.
What is compared, and how, is the replay's own business (``tests/conformance/replay_api.py``).
"""

from __future__ import annotations

import json
import random
import re

from merge_patch import merged

from conformance_files import API, tool
from seamark.api.settings import ServiceNetwork
from seamark.errors import ApiError, Object, status
from seamark.kinds.allocation import Allocation
from seamark.kinds.kind import Kind
from seamark.kinds.language.decode import conform
from seamark.kinds.service.endpoints import ENDPOINTS_KIND
from seamark.kinds.service.endpointslice import ENDPOINT_SLICE
from seamark.kinds.service.service import SERVICE
from seamark.kinds.values import metadata, times
from seamark.kinds.values.fields import refuse

KINDS: dict[str, Kind] = {kind.resource.plural: kind for kind in (SERVICE, ENDPOINTS_KIND, ENDPOINT_SLICE)}
NAMESPACE = "replayed"
NOW = "2038-01-19T03:14:07Z"

_path = re.compile(r"/apis?/(?:discovery\.k8s\.io/)?v1/namespaces/\$NS/([a-z]+)(?:/([^/]+))?(/status)?")


replay = tool("replay_api")


def cases(*names: str, without: dict[str, str]) -> list[Object]:
    """The cases of these files that need nothing but our kinds; ``without`` names others, and why not."""
    files = [json.loads((API / f"{name}.json").read_text()) for name in names]
    return [
        case
        for file in files
        for case in file["cases"]
        if case["name"] not in without and all(_playable(step) for step in case["steps"])
    ]


def _playable(step: Object) -> bool:
    match = _path.fullmatch(step.get("path", ""))
    if match is None or match[1] not in KINDS or "raw" in step or "managed_fields" in step:
        return False
    if step["method"] == "GET":
        return not step.get("query") and (match[2] is not None or "as=Table" in step.get("accept", ""))
    merge = step.get("content_type") == "application/merge-patch+json"
    if step["method"] == "DELETE":
        return match[2] is not None
    return step["method"] in ("POST", "PUT") or (step["method"] == "PATCH" and merge)


class World:
    """Objects of one namespace, and the addresses and ports they hold."""

    def __init__(self, seed: int = 0) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        self.addresses: set[str] = set()
        self.ports: set[int] = set()
        self._version = 0
        # It is a pool of addresses and ports, too.
        network = ServiceNetwork()
        self.ranges, self.open_ranges, self.node_ports = network.ranges, network.ranges, network.node_ports
        self.random = random.Random(seed)

    def has_address(self, address: str) -> bool:
        return address in self.addresses

    def has_port(self, port: int) -> bool:
        return port in self.ports

    def send(self, step: Object) -> Object:
        """What the server would answer: ``status``, ``warnings`` if there are any, and the ``body``."""
        match = _path.fullmatch(step["path"])
        assert match is not None
        kind, name = KINDS[match[1]], match[2] or ""
        warnings = [kind.request_warning] if kind.request_warning else []
        try:
            code, body = self._handle(kind, name, step, warnings, subresource=bool(match[3]))
        except ApiError as error:
            code, body = error.code, status(error)
        answer: Object = {"status": code, "body": body}
        if warnings:
            answer["warnings"] = [f'299 - "{_quoted(text)}"' for text in warnings]
        return answer

    def _handle(
        self, kind: Kind, name: str, step: Object, warnings: list[str], *, subresource: bool
    ) -> tuple[int, Object]:
        dry_run = bool((step.get("query") or {}).get("dryRun"))
        key = (kind.resource.plural, name)
        match step["method"]:
            case "GET":
                return 200, self._read(kind, name, step)
            case "DELETE":
                return 200, self._delete(kind, key)
            case "PUT" if key in self.objects:
                return 200, self._change(kind, key, step["body"], warnings, subresource=subresource)
            case "PATCH":
                old = self.objects[key]
                patched = merged(
                    {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind, **old}, step["body"]
                )
                return 200, self._change(kind, key, patched, warnings, subresource=subresource)
            case _:
                return 201, self._create(kind, step["body"], warnings, dry_run=dry_run)

    def _create(self, kind: Kind, body: Object, warnings: list[str], *, dry_run: bool) -> Object:
        obj, _ = conform(body, kind.shape)
        meta = obj["metadata"]
        meta |= {"namespace": NAMESPACE, "creationTimestamp": NOW}
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = meta["generateName"] + "x2x4z"
        kind.default(obj)
        kind.prepare_create(obj)
        plan = self._plan(kind, obj, None, dry_run=dry_run)
        name = meta.get("name", "")
        errors = metadata.validate(meta, kind.validate_name, namespaced=True) + kind.validate(obj)
        if errors:
            raise refuse(kind.resource, name, errors)
        warnings += kind.warnings(obj, None)
        if not dry_run:
            self._store((kind.resource.plural, name), obj, plan)
        return obj

    def _change(
        self, kind: Kind, key: tuple[str, str], body: Object, warnings: list[str], *, subresource: bool
    ) -> Object:
        old = self.objects[key]
        obj, _ = conform(body, kind.shape)
        kind.default(obj)
        meta = obj["metadata"]
        for field in ("namespace", "creationTimestamp", "resourceVersion", "generation"):
            if field in old["metadata"]:
                meta[field] = old["metadata"][field]
        plan = Allocation()
        if subresource:
            kind.prepare_status(obj, old)
            errors = kind.validate_status(obj, old)
        else:
            kind.prepare_update(obj, old)
            plan = self._plan(kind, obj, old, dry_run=False)
            errors = kind.validate_update(obj, old)
        if errors:
            raise refuse(kind.resource, key[1], errors)
        if not subresource:
            warnings += kind.warnings(obj, old)
        if obj != old:
            self._store(key, obj, plan)
        return self.objects[key]

    def _plan(self, kind: Kind, obj: Object, old: Object | None, *, dry_run: bool) -> Allocation:
        return kind.allocate(obj, old, self, dry_run=dry_run) if kind.allocates else Allocation()

    def _store(self, key: tuple[str, str], obj: Object, plan: Allocation) -> None:
        assert not self.addresses.intersection(plan.reserve_ips)
        assert not self.ports.intersection(plan.reserve_ports)
        self.addresses = (self.addresses | set(plan.reserve_ips)) - set(plan.release_ips)
        self.ports = (self.ports | set(plan.reserve_ports)) - set(plan.release_ports)
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        self.objects[key] = obj

    def _delete(self, kind: Kind, key: tuple[str, str]) -> Object:
        obj = self.objects.pop(key)
        if kind.allocates:
            freed = kind.release(obj)
            self.addresses -= set(freed.release_ips)
            self.ports -= set(freed.release_ports)
        self._version += 1
        return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._version)}}

    def _read(self, kind: Kind, name: str, step: Object) -> Object:
        if "as=Table" not in step.get("accept", ""):
            return self.objects[kind.resource.plural, name]
        shown = [obj for (plural, own), obj in sorted(self.objects.items()) if plural == kind.resource.plural]
        wanted = [obj for obj in shown if name in ("", obj["metadata"]["name"])]
        columns = [{field: getattr(column, field) for field in column.__struct_fields__} for column in kind.columns]
        return {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "columnDefinitions": columns,
            "rows": [{"cells": list(kind.row(obj, times.parse(NOW)))} for obj in wanted],
        }


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', r"\"")


def play(case: Object) -> list[str]:
    """Where the rules differ from what was recorded, as text."""
    world = World()
    values: Object = {"NS": NAMESPACE}
    found: set[str] = set()
    for step in case["steps"]:
        replay.literals(replay.expand(step.get("body")), found)
    normalizer = replay.Normalizer(NAMESPACE, found, case.get("number_versions", True))
    differences = []
    for i, step in enumerate(case["steps"]):
        ready = replay.expand(replay.substitute({k: v for k, v in step.items() if k != "expect"}, values))
        ready["path"] = step["path"]
        answer = world.send(ready)
        for name, path in (step.get("capture") or {}).items():
            values[name] = replay.lookup(answer["body"], path)
        body = normalizer.clean(json.loads(json.dumps(answer.pop("body"))))
        got = {**answer, **replay.select(step, case, body)}
        want = json.loads(json.dumps(step["expect"]))
        for part in (want, got):
            _forget_what_the_server_adds(part)
        differences += [f"step {i}{text}" for text in replay.difference(want, got)]
    return differences


def _forget_what_the_server_adds(answer: Object) -> None:
    """The rules know neither the envelope of a table nor what a finished request is stamped with."""
    body = answer.get("body")
    if isinstance(body, dict):
        if body.get("kind") == "Table":
            body.pop("metadata", None)
            for row in body["rows"]:
                row.pop("object", None)
        elif "metadata" in body:
            for key in ("creationTimestamp", "uid"):
                body["metadata"].pop(key, None)
