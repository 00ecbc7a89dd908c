"""Makes Pods from a workload's template, and short hashes of templates for names and labels."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from seamark.errors import Object
from seamark.kinds.values.metadata import dns_subdomain
from seamark.rules.objects.workloads import Template

# No vowels and no digits that look like them, so that no hash spells a word.
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"

_canonical = msgspec.json.Encoder(order="deterministic")


def short_hash(content: Any, collisions: int | None = None) -> str:
    """A hash of the content; ``collisions`` changes it when the first one was taken."""
    seed = b"" if collisions is None else str(collisions).encode()
    digest = hashlib.blake2b(_canonical.encode(content), digest_size=4, salt=seed[:16]).digest()
    # At most ten digits, each replaced by a character of the alphabet, like Kubernetes' own hashes.
    return "".join(ALPHABET[ord(digit) % len(ALPHABET)] for digit in str(int.from_bytes(digest, "big")))


def sorted_fields(content: Object) -> Object:
    """The same content with the fields of every object in the order of their names, as Go encodes maps."""
    sorted_: Object = msgspec.json.decode(_canonical.encode(content))
    return sorted_


def name_prefix(workload: str) -> str:
    """The ``generateName`` of a workload's Pods; without the dash if that would make the name invalid."""
    return f"{workload}-" if not dns_subdomain(f"{workload}-", prefix=True) else workload


def pod_from(template: Template, *, owner: Mapping[str, Any], labels: Mapping[str, str] | None = None) -> Object:
    """A Pod from the template, with its owner and additional labels, but without a name."""
    given = template.get("metadata") or {}
    metadata: Object = {field: given[field] for field in ("labels", "annotations", "finalizers") if given.get(field)}
    if labels:
        metadata["labels"] = {**metadata.get("labels", {}), **labels}
    metadata["ownerReferences"] = [dict(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
