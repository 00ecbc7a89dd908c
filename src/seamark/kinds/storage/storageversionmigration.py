"""StorageVersionMigration: that stored objects are to be written anew.  Stored; here every object has one version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.counted import keep_status, reset_status
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import STORAGE_VERSION_MIGRATIONS
from seamark.kinds.subresource import bare_status_of
from seamark.kinds.values.fields import Errors, immutable, required
from seamark.kinds.values.times import age


class StorageVersionMigrationKind(Kind):
    resource = STORAGE_VERSION_MIGRATIONS
    singular = "storageversionmigration"
    shape_name = "io.k8s.api.storagemigration.v1.StorageVersionMigration"
    subresources = (bare_status_of("StorageVersionMigration"),)
    columns = (Column("Name", format="name"), Column("Resource"), Column("Age"))
    unconditional_update: ClassVar[bool] = False

    def prepare_create(self, obj: Object) -> None:
        reset_status(obj, {})

    def prepare_update(self, obj: Object, old: Object) -> None:
        keep_status(obj, old)

    def validate(self, obj: Object) -> Errors:
        resource = (obj["spec"].get("resource") or {}).get("resource", "")
        return [] if resource else [required("spec.resource.resource", "resource is required")]

    def validate_update(self, obj: Object, old: Object) -> Errors:
        after = obj["spec"].get("resource")
        fixed = after == old["spec"].get("resource")
        return self.validate(obj) + ([] if fixed else [immutable("spec.resource", after)])

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, named = obj["metadata"], obj["spec"].get("resource") or {}
        group = f".{named['group']}" if named.get("group") else ""
        shown = f"{named.get('resource', '')}{group}"
        return [meta.get("name", ""), shown, age(now, meta.get("creationTimestamp"))]


STORAGE_VERSION_MIGRATION = StorageVersionMigrationKind()
