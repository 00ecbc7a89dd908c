"""What the API server would refuse manifests for, by the rules that it runs itself."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Iterator
from typing import Any

from seamark.errors import ApiError
from seamark.kinds.kind import Kind
from seamark.kinds.language.decode import DecodeError
from seamark.kinds.table import KINDS
from seamark.kinds.values import metadata
from seamark.why.world import Mistake

Document = dict[str, Any]


class _EmptyPool:
    """The ranges of a cluster in which nothing is taken yet."""

    ranges = ("10.96.0.0/12", "fd00:96::/108")
    open_ranges = ranges
    node_ports = (30000, 32767)

    def __init__(self) -> None:
        self.random = random.Random(0)

    def has_address(self, address: str) -> bool:
        return False

    def has_port(self, port: int) -> bool:
        return False


_KINDS = {(each.resource.api_version, each.resource.kind): each for each in KINDS}


def mistakes(documents: Iterable[Document]) -> tuple[Mistake, ...]:
    """One for each object that would be refused, with all that is wrong with it."""
    return tuple(found for each in documents for found in _mistakes(each))


def _mistakes(document: Document) -> Iterator[Mistake]:
    kind = _KINDS.get((str(document.get("apiVersion", "")), document["kind"]))
    meta = document.get("metadata")
    named = meta if isinstance(meta, dict) else {}
    if kind is None or named.get("uid") or _filled(document.get("status")):
        return  # a custom resource, an older version, or an object that a server has taken already
    told = _refusal(kind, copy.deepcopy(document))
    if told:
        yield Mistake(document["kind"], str(named.get("namespace", "")), str(named.get("name", "?")), told)


def _filled(value: Any) -> bool:
    """Whether there is any value in it: ``kubectl create --dry-run`` prints an empty status."""
    if isinstance(value, dict):
        return any(_filled(each) for each in value.values())
    return bool(value)


def _refusal(kind: Kind, document: Document) -> str:
    """What the server would say; "" if it would take the object."""
    try:
        obj, _ = kind.conform(document)
        kind.default(obj)
        kind.prepare_create(obj)
        # An exported Service has its addresses and ports already, from ranges that are not known here.
        if kind.allocates and not (obj.get("spec") or {}).get("clusterIP"):
            kind.allocate(obj, None, _EmptyPool(), dry_run=True)
        wrong = metadata.validate(obj["metadata"], kind.validate_name, namespaced=kind.resource.namespaced)
        wrong += kind.validate(obj)
    except DecodeError as error:
        return str(error)
    except ApiError as error:
        return error.message
    return ", ".join(dict.fromkeys(f"{each.field}: {each.message}" for each in wrong))
