"""ServiceAccount: references to Secrets; there is nothing to validate.  Its tokens are in ``tokenrequest``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.core.tokenrequest import REQUEST_TOKEN
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import SERVICE_ACCOUNTS
from seamark.kinds.values.times import age

_ENFORCE = "kubernetes.io/enforce-mountable-secrets"


class ServiceAccountKind(Kind):
    resource = SERVICE_ACCOUNTS
    singular = "serviceaccount"
    shape_name = "io.k8s.api.core.v1.ServiceAccount"
    short_names = ("sa",)
    delete_answers_object = True
    subresources = (REQUEST_TOKEN,)
    columns = (Column("Name", format="name"), Column("Age"))

    def prepare_create(self, obj: Object) -> None:
        _keep_names(obj)

    def prepare_update(self, obj: Object, old: Object) -> None:
        _keep_names(obj)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        annotations = obj["metadata"].get("annotations") or {}
        before = (old["metadata"].get("annotations") or {}) if old is not None else {}
        if _ENFORCE in annotations and _ENFORCE not in before:
            return [
                f"metadata.annotations[{_ENFORCE}]: deprecated in v1.32+; prefer separate namespaces to isolate access "
                "to mounted secrets"
            ]
        return []

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta = obj["metadata"]
        return [meta.get("name", ""), age(now, meta.get("creationTimestamp"))]


def _keep_names(obj: Object) -> None:
    """Keep only the names of Secrets, because they are always of the same namespace."""
    if secrets := obj.get("secrets"):
        obj["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in secrets]


SERVICE_ACCOUNT = ServiceAccountKind()
