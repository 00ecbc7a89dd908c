"""IPAddress: a cluster IP in use, and the object that uses it.  The IPAddress's name is the address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from seamark.errors import Object
from seamark.kinds.kind import Column, Kind
from seamark.kinds.language import go_names
from seamark.kinds.resource import IP_ADDRESSES
from seamark.kinds.values.addresses import canonical_ip_mistakes, family
from seamark.kinds.values.fields import Errors, immutable, invalid, required
from seamark.kinds.values.metadata import dns_subdomain, path_segment
from seamark.kinds.values.times import age
from seamark.kinds.wellknown import ADDRESS_ALLOCATOR, ADDRESS_MANAGED_BY_LABEL

FAMILY_LABEL = "ipaddress.kubernetes.io/ip-family"

_PARENT = "spec.parentRef"


class IPAddressKind(Kind):
    resource = IP_ADDRESSES
    singular = "ipaddress"
    shape_name = "io.k8s.api.networking.v1.IPAddress"
    short_names = ("ip",)
    columns = (Column("Name", format="name"), Column("ParentRef"), Column("Age"))
    name_is_free = False

    def validate_name(self, name: str, *, prefix: bool) -> list[str]:
        return list(canonical_ip_mistakes(name))

    def validate(self, obj: Object) -> Errors:
        return parent_mistakes((obj.get("spec") or {}).get("parentRef"))

    def validate_update(self, obj: Object, old: Object) -> Errors:
        parent, before = (obj.get("spec") or {}).get("parentRef"), (old.get("spec") or {}).get("parentRef")
        return [] if parent == before else [immutable(_PARENT, go_names.PARENT_REFERENCE(parent))]

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, parent = obj["metadata"], (obj.get("spec") or {}).get("parentRef")
        return [meta["name"], _owner(parent) if parent else "<none>", age(now, meta.get("creationTimestamp"))]


def _owner(parent: Object) -> str:
    resource = ".".join(part for part in (parent.get("resource", ""), parent.get("group", "")) if part)
    parts = (resource.lower(), parent.get("namespace", ""), parent.get("name", ""))
    return "/".join(part for part in parts if part)


def parent_mistakes(parent: Object | None) -> Errors:
    """What is wrong with the ``parentRef`` of an address."""
    if parent is None:
        return [required(_PARENT)]
    errors: Errors = []
    if group := parent.get("group", ""):
        errors += [invalid(f"{_PARENT}.group", group, sentence) for sentence in dns_subdomain(group)]
    for key in ("resource", "name", "namespace"):
        value = parent.get(key, "")
        errors += [invalid(f"{_PARENT}.{key}", value, sentence) for sentence in path_segment(value)]
    return errors + [required(f"{_PARENT}.{key}") for key in ("resource", "name") if not parent.get(key)]


def parent_of(namespace: str, name: str) -> Object:
    """The ``parentRef`` to the Service that uses an address."""
    return {"resource": "services", "namespace": namespace, "name": name}


def ip_address_object(address: str, namespace: str, name: str, *, now: str) -> Object:
    """A new IPAddress for a Service's cluster IP; ``address`` is canonical, ``now`` is RFC 3339."""
    return {
        "apiVersion": IP_ADDRESSES.api_version,
        "kind": IP_ADDRESSES.kind,
        "metadata": {
            "name": address,
            "uid": str(uuid4()),
            "creationTimestamp": now,
            "labels": {FAMILY_LABEL: family(address) or "", ADDRESS_MANAGED_BY_LABEL: ADDRESS_ALLOCATOR},
        },
        "spec": {"parentRef": parent_of(namespace, name)},
    }


IP_ADDRESS = IPAddressKind()
