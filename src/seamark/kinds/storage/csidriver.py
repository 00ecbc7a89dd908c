"""CSIDriver: what Kubernetes has to know about a storage driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import CSI_DRIVERS
from seamark.kinds.values.fields import Errors, duplicate, immutable, invalid, not_supported
from seamark.kinds.values.times import age

_DEFAULTS: dict[str, Any] = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
    "preventPodSchedulingIfMissing": False,
}
_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_MODES = ("Persistent", "Ephemeral")
_SHORTEST_TOKEN = 600
_LONGEST_TOKEN = 2**32
_SHORTEST_PERIOD = 10


class CSIDriverKind(Kind):
    resource = CSI_DRIVERS
    singular = "csidriver"
    shape_name = "io.k8s.api.storage.v1.CSIDriver"
    columns = (
        Column("Name", format="name"),
        Column("AttachRequired", "boolean"),
        Column("PodInfoOnMount", "boolean"),
        Column("StorageCapacity", "boolean"),
        Column("TokenRequests"),
        Column("RequiresRepublish", "boolean"),
        Column("Modes"),
        Column("Age"),
    )
    unconditional_update: ClassVar[bool] = False
    delete_answers_object = True

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        for field, value in _DEFAULTS.items():
            spec.setdefault(field, value)
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def prepare_update(self, obj: Object, old: Object) -> None:
        """The first change of the spec makes the generation 1: a new driver has none."""
        if obj["spec"] != old["spec"]:
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, obj: Object) -> Errors:
        spec = obj["spec"]
        errors: Errors = []
        if spec["fsGroupPolicy"] not in _POLICIES:
            errors.append(not_supported("spec.fsGroupPolicy", spec["fsGroupPolicy"], _POLICIES))
        errors += _token_mistakes(spec.get("tokenRequests") or [], "spec.tokenRequests")
        unknown = [mode for mode in spec["volumeLifecycleModes"] if mode not in _MODES]
        errors += [not_supported("spec.volumeLifecycleModes", mode, _MODES) for mode in unknown]
        period = spec.get("nodeAllocatableUpdatePeriodSeconds")
        if period is not None and period < _SHORTEST_PERIOD:
            sentence = f"must be greater than or equal to {_SHORTEST_PERIOD} seconds"
            errors.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, sentence))
        if spec.get("serviceAccountTokenInSecrets") is not None and not spec.get("tokenRequests"):
            sentence = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
            errors.append(invalid("spec.serviceAccountTokenInSecrets", spec["serviceAccountTokenInSecrets"], sentence))
        return errors

    def validate_update(self, obj: Object, old: Object) -> Errors:
        spec, before = obj["spec"], old["spec"]
        errors = self.validate(obj)
        # Kubernetes misspells the first path.
        for field, said in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
            if spec[field] != before.get(field):
                errors.append(immutable(f"spec.{said}", spec[field]))
        return errors

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec = obj["metadata"], obj["spec"]
        tokens = spec.get("tokenRequests")
        return [
            meta.get("name", ""),
            spec.get("attachRequired", True),
            spec.get("podInfoOnMount", False),
            spec.get("storageCapacity", False),
            ",".join(token.get("audience", "") for token in tokens) if tokens else "<unset>",
            spec.get("requiresRepublish", False),
            ",".join(spec.get("volumeLifecycleModes") or ()) or "<none>",
            age(now, meta.get("creationTimestamp")),
        ]


def _token_mistakes(tokens: list[Object], path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for i, token in enumerate(tokens):
        audience, seconds, at = token.get("audience", ""), token.get("expirationSeconds"), f"{path}[{i}]"
        if audience in seen:
            errors.append(duplicate(f"{at}.audience", audience))
            continue
        seen.add(audience)
        if seconds is not None and seconds < _SHORTEST_TOKEN:
            sentence = "may not specify a duration less than 10 minutes"
            errors.append(invalid(f"{at}.expirationSeconds", seconds, sentence))
        if seconds is not None and seconds > _LONGEST_TOKEN:
            sentence = "may not specify a duration larger than 2^32 seconds"
            errors.append(invalid(f"{at}.expirationSeconds", seconds, sentence))
    return errors


CSI_DRIVER = CSIDriverKind()
