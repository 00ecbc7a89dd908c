"""The step of admission that turns the class of a Pod into a number, and keeps the default class single."""

from __future__ import annotations

from seamark.errors import Object
from seamark.kinds.admission import Others, Plugin, Request
from seamark.kinds.policy.priority_class import PREEMPT, SYSTEM_CLASSES
from seamark.kinds.resource import PODS, PRIORITY_CLASSES

_COMPUTED = ("priority", "preemptionPolicy")
_SYSTEM = {system["metadata"]["name"]: system for system in SYSTEM_CLASSES}
_NO_CLASS: Object = {"metadata": {"name": ""}, "value": 0}


class Priorities(Plugin):
    """Sets the priority that the class has; refuses a Pod that sets another one itself."""

    resources = frozenset({PODS, PRIORITY_CLASSES})
    operations = ("CREATE", "UPDATE")

    def mutate(self, request: Request) -> None:
        if request.kind.resource == PODS:
            if request.old is None:
                _prioritize(request)
            else:
                spec, before = request.obj["spec"], request.old["spec"]
                spec.update((field, before[field]) for field in _COMPUTED if field in before and field not in spec)

    def validate(self, request: Request) -> None:
        if request.obj.get("globalDefault"):
            name = default_class(request.others)["metadata"]["name"]
            if name not in ("", request.name):
                raise request.forbidden(
                    f"PriorityClass {name} is already marked as default. Only one default can exist"
                )


def _prioritize(request: Request) -> None:
    spec = request.obj["spec"]
    if name := spec.get("priorityClassName", ""):
        # Those of the system count even before they are stored, while the first server of a cluster starts.
        found = request.others.get(PRIORITY_CLASSES, name) or _SYSTEM.get(name)
        if found is None:
            raise request.forbidden(f"no PriorityClass with name {name} was found")
    else:
        found = default_class(request.others)
        if name := found["metadata"]["name"]:
            spec["priorityClassName"] = name
    for field, computed, what in (
        ("priority", found["value"], "the integer value of priority"),
        ("preemptionPolicy", found.get("preemptionPolicy", PREEMPT), "the string value of PreemptionPolicy"),
    ):
        if spec.get(field, computed) != computed:
            raise request.forbidden(
                f"{what} ({spec[field]}) must not be provided in pod spec; priority admission controller computed "
                f"{computed} from the given PriorityClass name"
            )
        spec[field] = computed


def default_class(others: Others) -> Object:
    """The class of Pods that name none; of several, which only two servers at once can make, the lowest."""
    found = others.all(PRIORITY_CLASSES, containing=b'"globalDefault":true')
    return min((c for c in found if c.get("globalDefault")), key=lambda c: int(c["value"]), default=_NO_CLASS)
