"""What a write makes: the object under its key, as the store keeps it and as the answer shows it."""

from __future__ import annotations

from os import urandom

import msgspec

from seamark import errors
from seamark.api.state.entries import Entry, entry_of, key_of, stored
from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.subresource import Together
from seamark.kinds.values.refusals import TOO_LARGE
from seamark.store.protocol import Write

# etcd takes requests of 1.5 MiB; the key and the rest of a transaction need some of it.
LARGEST_OBJECT = 1536 * 1024 - 1024
CONFLICT_ATTEMPTS = 100


class Written(msgspec.Struct):
    """The result of a write: the object as it is now, and warnings for the user."""

    entry: Entry
    created: bool = False
    warnings: list[str] = []


def new_uid() -> str:
    """A random UUID as :func:`uuid.uuid4` makes it, in a fifth of the time."""
    text = urandom(16).hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[int(text[16], 16) & 3]}{text[17:20]}-{text[20:]}"


def writes_of(together: Together) -> list[Write]:
    """The writes of the other objects that change with this one, each if it is still as admission saw it."""
    return [
        Write(
            key_of(resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]),
            stored(obj),
            int(obj["metadata"]["resourceVersion"]),
        )
        for resource, obj in together
    ]


def fitting(obj: Object) -> bytes:
    """An object as the store keeps it.  None is larger than etcd would take, whatever the store is."""
    value = stored(obj)
    if len(value) > LARGEST_OBJECT:
        raise errors.ApiError(TOO_LARGE)
    return value


def check_size(kind: Kind, obj: Object) -> None:
    """Refuse an object that can never be stored, before it is looked at for long.

    Status and managedFields are not counted, because many writes cannot set them; nor is an object whose stored form a
    webhook makes.
    """
    if kind.conversion is None:
        meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
        fitting(kind.to_stored({key: value for key, value in obj.items() if key != "status"} | {"metadata": meta}))


def unstored(path: str, obj: Object, revision: int = 0) -> Entry:
    """An entry for an answer that is not in the store: the result of a dry run, or a deleted object's last state."""
    value = stored(obj)
    if revision:
        return entry_of(path, value, revision)
    namespace, _, name = path.rpartition("/")
    return Entry(path, namespace, name, 0, value[1:])
