"""Namespace: its name label, its spec finalizers, and its deletion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seamark.errors import Conflict, Forbidden, Object
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import NAMESPACES
from seamark.kinds.subresource import Part, status_of
from seamark.kinds.values import metadata
from seamark.kinds.values.fields import Errors, invalid
from seamark.kinds.values.refusals import conflict
from seamark.kinds.values.times import age

NAME_LABEL = "kubernetes.io/metadata.name"
FINALIZER = "kubernetes"
PROTECTED = frozenset(("default", "kube-system", "kube-public"))


class Finalize(Part, frozen=True):
    """Where a controller takes its finalizer from the spec of a Namespace."""

    def prepare(self, kind: Kind, obj: Object, old: Object) -> None:
        obj["status"] = old["status"]

    def validate(self, kind: Kind, obj: Object, old: Object) -> Errors:
        return _finalizer_mistakes(obj, "spec.finalizers[{}]")


class NamespaceKind(Kind):
    resource = NAMESPACES
    singular = "namespace"
    shape_name = "io.k8s.api.core.v1.Namespace"
    short_names = ("ns",)
    delete_answers_object = True
    propagation_unless_orphaned = "Foreground"  # a Namespace that orphans nothing waits for what is in it
    verbs = ("create", "delete", "get", "list", "patch", "update", "watch")
    subresources = (
        Finalize("finalize", ("update",), "Namespace"),
        status_of("Namespace"),
    )
    columns = (Column("Name", format="name"), Column("Status"), Column("Age"))
    field_names = ("status.phase",)

    def validate_name(self, name: str, *, prefix: bool) -> list[str]:
        return metadata.dns_label(name, prefix=prefix)

    def default(self, obj: Object) -> None:
        _label_with_name(obj)
        status = obj.setdefault("status", {})
        if not status.get("phase"):
            status["phase"] = "Active"
        obj.setdefault("spec", {})

    def prepare_create(self, obj: Object) -> None:
        _label_with_name(obj)  # again, because a generated name is known only now
        obj["status"] = {"phase": "Active"}
        finalizers = obj["spec"].get("finalizers") or []
        if FINALIZER not in finalizers:
            finalizers = [*finalizers, FINALIZER]
        obj["spec"]["finalizers"] = finalizers

    def validate(self, obj: Object) -> Errors:
        # Kubernetes reports the index in the list only for the finalize subresource.
        return _finalizer_mistakes(obj, "spec.finalizers")

    def prepare_update(self, obj: Object, old: Object) -> None:
        finalizers = old["spec"].get("finalizers")
        obj["spec"] = {**obj["spec"], "finalizers": finalizers} if finalizers else {}
        obj["status"] = old["status"]

    def validate_status(self, obj: Object, old: Object) -> Errors:
        if obj["metadata"].get("deletionTimestamp"):
            if obj["status"].get("phase") != "Terminating":
                return [
                    invalid(
                        "status.Phase",
                        obj["status"].get("phase", ""),
                        "may only be 'Terminating' if `deletionTimestamp` is not empty",
                    )
                ]
        elif obj["status"].get("phase") != "Active":
            return [
                invalid(
                    "status.Phase",
                    obj["status"].get("phase", ""),
                    "may only be 'Active' if `deletionTimestamp` is empty",
                )
            ]
        return []

    # --- deletion ------------------------------------------------------------------------------------

    def check_deletion(self, name: str) -> None:
        if name in PROTECTED:
            raise Forbidden(
                f'namespaces "{name}" is forbidden: this namespace may not be deleted',
                details={"name": name, "kind": "namespaces"},
            )

    def precondition_failed(self, name: str, what: str, *, asked: str, found: str) -> Conflict:
        # Namespaces have a storage of their own, which words this differently.
        return conflict(
            self.resource, name, f"Precondition failed: {what} in precondition: {asked}, {what} in object meta: {found}"
        )

    def begin_deletion(self, obj: Object) -> None:
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
        obj["metadata"].pop("deletionGracePeriodSeconds", None)  # deletion takes as long as its contents need

    def held(self, obj: Object) -> bool:
        return bool(obj["metadata"].get("finalizers") or (obj.get("spec") or {}).get("finalizers"))

    def deletion_is_final(self, obj: Object) -> bool:
        return bool(obj["spec"].get("finalizers"))  # its contents are being deleted

    # --- what people see -----------------------------------------------------------------------------

    def fields(self, obj: Object) -> Mapping[str, str]:
        return {"status.phase": obj["status"].get("phase", "")}

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta = obj["metadata"]
        return [meta.get("name", ""), obj["status"].get("phase", ""), age(now, meta.get("creationTimestamp"))]


def _label_with_name(obj: Object) -> None:
    meta = obj["metadata"]
    if name := meta.get("name"):
        meta["labels"] = {**(meta.get("labels") or {}), NAME_LABEL: name}


def _finalizer_mistakes(obj: Object, path: str) -> Errors:
    errors: Errors = []
    for i, finalizer in enumerate((obj.get("spec") or {}).get("finalizers") or ()):
        at = path.format(i)
        wrong = metadata.qualified_name(finalizer)
        errors += [invalid(at, finalizer, sentence) for sentence in wrong]
        if not wrong and "/" not in finalizer and finalizer not in (FINALIZER, "orphan", "foregroundDeletion"):
            errors.append(invalid(at, finalizer, "name is neither a standard finalizer name nor is it fully qualified"))
    return errors


NAMESPACE = NamespaceKind()
