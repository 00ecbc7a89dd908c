"""ControllerRevision: an earlier template of a StatefulSet or DaemonSet, kept for rollbacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import CONTROLLER_REVISIONS
from seamark.kinds.values.fields import Errors, immutable, invalid, required
from seamark.kinds.values.times import age


class ControllerRevisionKind(Kind):
    resource = CONTROLLER_REVISIONS
    singular = "controllerrevision"
    shape_name = "io.k8s.api.apps.v1.ControllerRevision"
    columns = (Column("Name", format="name"), Column("Controller"), Column("Revision"), Column("Age"))

    def validate(self, obj: Object) -> Errors:
        errors: Errors = []
        if obj.get("data") is None:
            errors.append(required("data", "data is mandatory"))
        if (revision := obj.get("revision", 0)) < 0:
            errors.append(invalid("revision", revision, "must be greater than or equal to 0"))
        return errors

    def validate_update(self, obj: Object, old: Object) -> Errors:
        errors = self.validate(obj)
        if obj.get("data") != old.get("data"):
            errors.append(immutable("data", obj.get("data")))
        return errors

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta = obj["metadata"]
        owner = next((o for o in meta.get("ownerReferences") or () if o.get("controller")), None)
        made = meta.get("creationTimestamp")
        return [meta.get("name", ""), _controller(owner), obj.get("revision", 0), age(now, made)]


def _controller(owner: Object | None) -> str:
    if owner is None:
        return "<none>"
    group, slash, _ = owner.get("apiVersion", "").partition("/")
    kind = f"{owner.get('kind', '')}.{group}" if slash else owner.get("kind", "")
    return f"{kind.lower()}/{owner.get('name', '')}"


CONTROLLER_REVISION = ControllerRevisionKind()
