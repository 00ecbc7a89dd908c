"""Whether what is written is what the path says: its name, its namespace, and that it stays the same object."""

from __future__ import annotations

from seamark.api.http.target import Target
from seamark.errors import BadRequest, Object
from seamark.kinds.kind import Kind
from seamark.kinds.values.fields import invalid, refuse


def check_name(meta: Object, target: Target) -> None:
    name = meta.get("name", "")
    if not name:
        raise BadRequest(
            f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        )
    _check_same_name(name, target)
    check_namespace(meta, target.namespace)


def check_applied(meta: Object, target: Target) -> None:
    """As :func:`check_name`, but what apply leaves out it is given."""
    _check_same_name(meta.get("name", target.name), target)
    meta["name"] = target.name
    if target.kind.resource.namespaced:
        check_namespace(meta, target.namespace)
        meta["namespace"] = target.namespace


def _check_same_name(name: str, target: Target) -> None:
    if name != target.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({target.name})")


def check_namespace(meta: Object, namespace: str) -> None:
    """What names a namespace must name the one of the path."""
    if meta.get("namespace", namespace) != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")


def check_uid(kind: Kind, meta: Object, old: Object) -> None:
    """No patch makes an object another one."""
    if meta.get("uid", old["uid"]) != old["uid"]:
        wrong = [invalid("metadata.uid", meta["uid"], "field is immutable")]
        raise refuse(kind.stored_as or kind.resource, old["name"], wrong)
