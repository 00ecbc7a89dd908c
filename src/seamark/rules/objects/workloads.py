"""What all workloads have in common: a template, conditions, and objects they own.

The views of the workloads themselves are in :mod:`seamark.controllers.workloads`: only their controllers read them.
"""

from typing import Any, Protocol

from seamark.kinds.resource import Resource
from seamark.kinds.values.selectors import LabelSelector
from seamark.rules.objects.conditions import Condition
from seamark.rules.objects.metadata import Metadata

Template = dict[str, Any]


class WorkloadCondition(Condition, frozen=True):
    last_update_time: str | None = None


WorkloadConditions = tuple[WorkloadCondition, ...]


class Dependant(Protocol):
    """An object that a workload may own."""

    @property
    def metadata(self) -> Metadata: ...


class Workload(Protocol):
    """A workload of any kind, as far as owning objects goes."""

    @property
    def metadata(self) -> Metadata: ...
    @property
    def selector(self) -> LabelSelector: ...


def owner_reference(resource: Resource, metadata: Metadata) -> dict[str, Any]:
    """How an object refers to what manages it: a workload, or a Pod."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": metadata.name,
        "uid": metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
