"""CSIStorageCapacity: how much storage of a class is left for some nodes."""

from __future__ import annotations

from typing import ClassVar

from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.pod.warnings import label_selector_warnings
from seamark.kinds.resource import CSI_CAPACITIES
from seamark.kinds.values.fields import Errors, immutable, invalid
from seamark.kinds.values.label_selector import label_selector_mistakes, printed
from seamark.kinds.values.metadata import dns_subdomain
from seamark.kinds.values.quantity import amount


class CSIStorageCapacityKind(Kind):
    resource = CSI_CAPACITIES
    singular = "csistoragecapacity"
    shape_name = "io.k8s.api.storage.v1.CSIStorageCapacity"
    unconditional_update: ClassVar[bool] = False

    def validate(self, obj: Object) -> Errors:
        errors = label_selector_mistakes(obj.get("nodeTopology"), "nodeTopology")
        chosen = obj.get("storageClassName", "")
        errors += [invalid("storageClassName", chosen, sentence) for sentence in dns_subdomain(chosen)]
        for field in ("capacity", "maximumVolumeSize"):
            quantity = obj.get(field)
            if quantity is not None and amount(quantity) < 0:
                errors.append(invalid(field, quantity, "must be greater than or equal to 0"))
        return errors

    def validate_update(self, obj: Object, old: Object) -> Errors:
        errors: Errors = []
        if obj.get("nodeTopology") != old.get("nodeTopology"):
            errors.append(immutable("nodeTopology", printed(obj.get("nodeTopology"))))
        if obj.get("storageClassName") != old.get("storageClassName"):
            errors.append(immutable("storageClassName", obj.get("storageClassName", "")))
        return errors + self.validate(obj)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        return list(label_selector_warnings(obj.get("nodeTopology") or {}, "nodeTopology"))


CSI_CAPACITY = CSIStorageCapacityKind()
