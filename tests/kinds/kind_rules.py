"""Running an object through the rules of its kind as the write path does, without a server."""

from __future__ import annotations

import functools
import json
import re
from typing import NamedTuple

import pytest
from neighbours import concerned, request

from conformance_files import API
from seamark.errors import Invalid, Object
from seamark.kinds.kind import Kind
from seamark.kinds.language.decode import conform
from seamark.kinds.subresource import Part
from seamark.kinds.table import Kinds
from seamark.kinds.values import metadata
from seamark.kinds.values.fields import Errors, refuse

NAMESPACE = "ns"
NOW = "2038-01-19T03:14:07Z"
KINDS = Kinds()

_collection = re.compile(r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>v[12])(?:/namespaces/\$NS)?/(?P<plural>[a-z]+)")
# Cases about what a server does before and after an object meets its rules.
_SERVER_CASES = ("errors/", "crud/metadata-ignored", "admission/", "admission-policy/", "webhooks/")
# What only a server knows, or what other objects in the cluster decide.
_SERVER_FIELDS = ("uid", "creationTimestamp", "resourceVersion", "namespace")


def shaped(kind: Kind, body: Object) -> Object:
    obj, unknown = conform(body, kind.shape)
    assert not unknown, f"the test sends fields {kind.resource.kind} does not have: {unknown}"
    return obj


def create(kind: Kind, body: Object) -> Object:
    """The object as it would be stored, or :class:`Invalid`."""
    obj = shaped(kind, body)
    meta = obj["metadata"]
    if kind.resource.namespaced:
        meta["namespace"] = NAMESPACE
    kind.default(obj)
    _admit(kind, obj, None)
    meta["creationTimestamp"] = NOW
    kind.prepare_create(obj)
    _refuse(kind, meta, metadata.validate(meta, kind.validate_name, namespaced=kind.resource.namespaced))
    _refuse(kind, meta, kind.validate(obj))
    assert shaped(kind, obj) == obj, "after its rules an object is just as Go would encode it"
    return obj


def change(kind: Kind, old: Object, body: Object, subresource: str = "") -> Object:
    """The object after a PUT of ``body``, or :class:`Invalid`; ``old`` must come through unharmed."""
    before = json.dumps(old)
    obj = shaped(kind, body)
    kind.default(obj)
    meta = obj["metadata"]
    for field in ("uid", "creationTimestamp", "namespace", "generation", "deletionTimestamp"):
        if field in old["metadata"]:
            meta[field] = old["metadata"][field]
    part = kind.subresource(subresource) if subresource else kind.whole
    assert isinstance(part, Part)
    _admit(kind, obj, old, subresource)
    part.prepare(kind, obj, old)
    errors = part.validate(kind, obj, old)
    assert json.dumps(old) == before, "rules never edit the old object"
    _refuse(kind, meta, errors)
    return obj


def _admit(kind: Kind, obj: Object, old: Object | None, subresource: str = "") -> None:
    """What a server that is otherwise empty adds to the object."""
    asked = request(kind, obj, old, subresource)
    for plugin in concerned(asked):
        plugin.mutate(asked)


def _refuse(kind: Kind, meta: Object, errors: Errors) -> None:
    if errors:
        raise refuse(kind.stored_as or kind.resource, meta.get("name", ""), errors)


def sentences(error: Invalid) -> list[str]:
    """``path: sentence`` of every cause."""
    return [f"{cause.field}: {cause.message}" for cause in error.causes]


class Recorded(NamedTuple):
    """One recorded POST, and what a real API server made of it."""

    case: str
    kind: Kind
    body: Object
    code: int
    answer: Object

    def __str__(self) -> str:
        return f"{self.case} {self.body.get('metadata', {}).get('name', '')}"


def recorded_creations(*plurals: str) -> list[Recorded]:
    """Every recorded creation of these kinds that was answered by an object or by a list of mistakes."""
    found = [_creation(name, step, plurals) for name, step in _posts()]
    return [recorded for recorded in found if recorded is not None]


@functools.cache
def _posts() -> list[tuple[str, Object]]:
    """The names of cases, with each of their plain creations: read once, because a dozen modules ask for their own."""
    return [
        (case["name"], step)
        for path in sorted(API.glob("*.json"))
        for case in json.loads(path.read_bytes())["cases"]
        if "ignore" not in case and not case["name"].startswith(_SERVER_CASES)
        for step in case["steps"]
        if step.get("method") == "POST" and _is_plain(step)
    ]


def _is_plain(step: Object) -> bool:
    expected = step.get("expect") or {}
    made_or_refused = expected.get("status") in (201, 422) and isinstance(expected.get("body"), dict)
    options = {"raw", "accept", "query", "content_type", "managed_fields"} & step.keys()
    return made_or_refused and not options and "$fill" not in str(step)


def _creation(case: str, step: Object, plurals: tuple[str, ...]) -> Recorded | None:
    match = _collection.fullmatch(step["path"])
    if not match or match["plural"] not in plurals:
        return None
    kind = KINDS.by_plural(match["group"] or "", match["version"], match["plural"])
    assert kind is not None
    parts = (step["body"], step["expect"]["body"])
    body, answer = (json.loads(json.dumps(part).replace("$NS", NAMESPACE)) for part in parts)
    if "name" not in body.get("metadata", {}):
        return None
    return Recorded(case, kind, body, step["expect"]["status"], answer)


def without_server(obj: Object) -> Object:
    """An object without what its rules do not decide."""
    hidden = (*_SERVER_FIELDS, "managedFields")
    meta = {key: value for key, value in obj["metadata"].items() if key not in hidden}
    if labels := {k: v for k, v in meta.get("labels", {}).items() if not k.startswith("topology.kubernetes.io/")}:
        meta["labels"] = labels
    else:
        meta.pop("labels", None)
    return {**obj, "metadata": meta}


def check(recorded: Recorded) -> None:
    """Our rules must come to the recorded end."""
    if recorded.code == 201:
        made = json.loads(json.dumps(create(recorded.kind, recorded.body)).replace(NOW, "<time>"))
        assert without_server(made) == without_server(recorded.answer)
        return
    with pytest.raises(Invalid) as refused:
        create(recorded.kind, recorded.body)
    error = refused.value
    causes = [(c.field, c.reason) for c in error.causes]
    assert causes == [(c["field"], c["reason"]) for c in recorded.answer["details"]["causes"]]
    assert error.message.startswith(recorded.answer["message"].removesuffix("…")), error.message
