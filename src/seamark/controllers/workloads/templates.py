"""What is made from a workload's template: short hashes for names and labels, and Pods."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from seamark.errors import Object
from seamark.kinds.values.metadata import dns_subdomain
from seamark.rules.objects.workloads import Template

# No vowels and nothing that looks like one, so that no hash spells a word.
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"

_canonical = msgspec.json.Encoder(order="deterministic")


def short_hash(content: Any, collisions: int | None = None) -> str:
    """The same for the same content; ``collisions`` makes it another one where the first was taken."""
    seed = b"" if collisions is None else str(collisions).encode()
    digest = hashlib.blake2b(_canonical.encode(content), digest_size=4, salt=seed[:16]).digest()
    # Ten digits at most, each replaced by a letter: what Kubernetes' own hashes look like.
    return "".join(ALPHABET[ord(digit) % len(ALPHABET)] for digit in str(int.from_bytes(digest, "big")))


def name_prefix(workload: str) -> str:
    """The ``generateName`` of a workload's Pods; the dash is left out where it would make the name too long."""
    return f"{workload}-" if not dns_subdomain(f"{workload}-", prefix=True) else workload


def pod_from(template: Template, *, owner: Mapping[str, Any], labels: Mapping[str, str] | None = None) -> Object:
    """A Pod as the template wants it, with its owner and these labels besides; it has no name yet."""
    given = template.get("metadata") or {}
    metadata: Object = {field: given[field] for field in ("labels", "annotations", "finalizers") if given.get(field)}
    if labels:
        metadata["labels"] = {**metadata.get("labels", {}), **labels}
    metadata["ownerReferences"] = [dict(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
