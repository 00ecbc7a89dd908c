"""ComponentStatus: how the parts of a control plane are.  It is never stored: each read asks the parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import COMPONENT_STATUSES


class ComponentStatusKind(Kind):
    resource = COMPONENT_STATUSES
    singular = "componentstatus"
    shape_name = "io.k8s.api.core.v1.ComponentStatus"
    short_names = ("cs",)
    verbs = ("get", "list")
    columns = (Column("Name", format="name"), Column("Status"), Column("Message"), Column("Error"))
    request_warning = "v1 ComponentStatus is deprecated in v1.19+"

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        found: Object = next((c for c in obj.get("conditions") or () if c.get("type") == "Healthy"), {})
        status = {"True": "Healthy", "False": "Unhealthy"}.get(found.get("status", ""), "Unknown")
        return [obj["metadata"].get("name", ""), status, found.get("message", ""), found.get("error", "")]


COMPONENT_STATUS = ComponentStatusKind()


def component_statuses(problems: Mapping[str, str | None]) -> list[Object]:
    """One for each part; ``problems`` says what is wrong with it, None if nothing is."""
    return [
        {
            "metadata": {"name": name},
            "conditions": [
                {"type": "Healthy", "status": "True", "message": "ok"}
                if problem is None
                else {"type": "Healthy", "status": "False", "message": problem}
            ],
        }
        for name, problem in sorted(problems.items())
    ]
