"""The errors that name an object: not found, already there, changed by another write, not allowed."""

from __future__ import annotations

from seamark.errors import AlreadyExists, Conflict, Forbidden, NotFound, Object
from seamark.kinds.resource import Resource

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
TOO_LARGE = "etcdserver: request is too large"  # in etcd's words, whatever the store is


def named(resource: Resource, name: str) -> Object:
    """The ``details`` of a Status that say which object it is about."""
    details: Object = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.plural
    return details


def missing(resource: Resource, name: str) -> NotFound:
    return NotFound(f'{resource.qualified} "{name}" not found', details=named(resource, name))


def forbidden(resource: Resource, name: str, reason: str) -> Forbidden:
    return Forbidden(f'{resource.qualified} "{name}" is forbidden: {reason}', details=named(resource, name))


def conflict(resource: Resource, name: str, sentence: str = MODIFIED) -> Conflict:
    return Conflict(
        f'Operation cannot be fulfilled on {resource.qualified} "{name}": {sentence}', details=named(resource, name)
    )


def other_uid(resource: Resource, namespace: str, name: str, *, asked: str, found: str) -> Conflict:
    """The write was meant for another object of this name: one that is gone, or was made since."""
    path = f"{namespace}/{name}" if resource.namespaced else name
    return conflict(
        resource,
        name,
        f"StorageError: invalid object, Code: 4, Key: /registry/{resource.plural}/{path}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {asked}, UID in object meta: {found}",
    )


def already_exists(resource: Resource, name: str, *, going: bool) -> AlreadyExists:
    """``going`` if the object's deletion has begun."""
    prefix = "object is being deleted: " if going else ""
    return AlreadyExists(f'{prefix}{resource.qualified} "{name}" already exists', details=named(resource, name))


def no_unique_name(error: AlreadyExists) -> AlreadyExists:
    """The server chose the name, so another try may do better."""
    return AlreadyExists(
        f"{error.message}, the server was not able to generate a unique name for the object",
        details=error.details,
        retry_after=1,
    )
