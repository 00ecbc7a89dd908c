"""ConfigMap: validation of its keys, its size and ``immutable``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import CONFIGMAPS
from seamark.kinds.values.fields import Errors, forbidden, invalid, too_long
from seamark.kinds.values.times import age

MAX_SIZE = 1024 * 1024

_KEY = "[-._a-zA-Z0-9]+"
_key = re.compile(_KEY)


def key_mistakes(key: str) -> list[str]:
    """What is wrong with a key of a ConfigMap or Secret; empty if nothing."""
    wrong = ["must be no more than 253 characters"] if len(key) > 253 else []
    if not _key.fullmatch(key):
        wrong.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            f"'KEY_NAME',  or 'key-name', regex used for validation is '{_KEY}')"
        )
    if key == ".":
        wrong.append("must not be '.'")
    elif key == "..":
        wrong.append("must not be '..'")
    elif key.startswith(".."):
        wrong.append("must not start with '..'")
    return wrong


def decoded_size(text: str) -> int:
    """The number of bytes that a base64 text encodes."""
    return len(text) // 4 * 3 - text.count("=", -2)


class ConfigMapKind(Kind):
    resource = CONFIGMAPS
    singular = "configmap"
    shape_name = "io.k8s.api.core.v1.ConfigMap"
    short_names = ("cm",)
    columns = (Column("Name", format="name"), Column("Data"), Column("Age"))

    def validate(self, obj: Object) -> Errors:
        errors: Errors = []
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        size = 0
        # Sorted for a stable order; Kubernetes iterates over maps in random order.
        for key in sorted(data):
            errors += [invalid(f"data[{key}]", key, sentence) for sentence in key_mistakes(key)]
            if key in binary:
                errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
            size += len(data[key].encode())
        for key in sorted(binary):
            errors += [invalid(f"binaryData[{key}]", key, sentence) for sentence in key_mistakes(key)]
            size += decoded_size(binary[key])
        if size > MAX_SIZE:
            errors.append(too_long("[]", MAX_SIZE))
        return errors

    def validate_update(self, obj: Object, old: Object) -> Errors:
        errors: Errors = []
        if old.get("immutable"):
            if not obj.get("immutable"):
                errors.append(forbidden("immutable", "field is immutable when `immutable` is set"))
            errors += [
                forbidden(key, "field is immutable when `immutable` is set")
                for key in ("data", "binaryData")
                if obj.get(key) != old.get(key)
            ]
        return errors + self.validate(obj)

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta = obj["metadata"]
        entries = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
        return [meta.get("name", ""), entries, age(now, meta.get("creationTimestamp"))]


CONFIG_MAP = ConfigMapKind()
