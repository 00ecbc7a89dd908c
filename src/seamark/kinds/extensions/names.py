"""Which names of a definition are accepted: those that no other definition of its group has.  And its conditions."""

from __future__ import annotations

from typing import Any, Literal

from seamark.errors import Object

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
APPROVAL = "api-approved.kubernetes.io"


def condition(definition: Object, type: str) -> Object | None:
    for found in (definition.get("status") or {}).get("conditions") or ():
        if found.get("type") == type:
            return dict(found)
    return None


def is_true(definition: Object, type: str) -> bool:
    found = condition(definition, type)
    return found is not None and found.get("status") == "True"


def with_condition(conditions: list[Any] | None, new: Object, now: str) -> list[Any]:
    """The conditions with this one in its place; the time of the last transition stays if its status does."""
    out = list(conditions or ())
    for index, old in enumerate(out):
        if old.get("type") == new["type"]:
            same = old.get("status") == new["status"]
            out[index] = {"lastTransitionTime": old.get("lastTransitionTime", now) if same else now, **new}
            return out
    return [*out, {"lastTransitionTime": now, **new}]


class Taken:
    """The accepted names of all definitions, and which definitions have them; kept up to date name by name."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, str, str], set[str]] = {}  # by group, what is named, and name
        self._places: dict[str, list[tuple[str, str, str]]] = {}  # by definition

    def set(self, definition: str, accepted: Object) -> bool:
        """Note the accepted names of a definition, none if it is gone; returns whether a name became free."""
        group = definition.partition(".")[2]
        words = [accepted.get("plural"), accepted.get("singular"), *(accepted.get("shortNames") or ())]
        places = [(group, "resource", word) for word in words if word]
        places += [(group, "kind", word) for word in (accepted.get("kind"), accepted.get("listKind")) if word]
        places = list(dict.fromkeys(places))  # the plural may be the singular too
        before = self._places.get(definition, [])
        if places == before:
            return False
        for place in before:
            self._owners[place].discard(definition)
            if not self._owners[place]:
                del self._owners[place]
        for place in places:
            self._owners.setdefault(place, set()).add(definition)
        self._places[definition] = places
        if not places:
            del self._places[definition]
        return not set(before) <= set(places)

    def by_others(self, definition: str, noun: Literal["resource", "kind"], name: str) -> bool:
        """Whether another definition of the same group has this name."""
        owners = self._owners.get((definition.partition(".")[2], noun, name))
        return bool(owners) and owners != {definition}


def judged(definition: Object, taken: Taken, now: str) -> Object:
    """The status of a definition, given the names that others have."""
    status = dict(definition.get("status") or {})
    accepted, conflict = _accepted(definition, taken)
    was_established = is_true(definition, "Established")
    conditions = with_condition(status.get("conditions"), conflict or _NO_CONFLICTS, now)
    if conflict is None:
        conditions = with_condition(conditions, _ESTABLISHED, now)
    elif not was_established:
        conditions = with_condition(conditions, _NOT_ESTABLISHED, now)
    if (approval := _approval(definition)) is not None:
        conditions = with_condition(conditions, approval, now)
    return {**status, "acceptedNames": accepted, "conditions": conditions}


def _says(type: str, status: str, reason: str, message: str) -> Object:
    return {"type": type, "status": status, "reason": reason, "message": message}


_NO_CONFLICTS = _says("NamesAccepted", "True", "NoConflicts", "no conflicts found")
_ESTABLISHED = _says("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
_NOT_ESTABLISHED = _says("Established", "False", "NotAccepted", "not all names are accepted")
TERMINATING = _says(
    "Terminating",
    "True",
    "InstanceDeletionPending",
    "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
)


_NAMES: tuple[tuple[str, Literal["resource", "kind"], str], ...] = (
    ("plural", "resource", "PluralConflict"),
    ("singular", "resource", "SingularConflict"),
    ("shortNames", "resource", "ShortNamesConflict"),
    ("kind", "kind", "KindConflict"),
    ("listKind", "kind", "ListKindConflict"),
)


def _accepted(definition: Object, taken: Taken) -> tuple[Object, Object | None]:
    """The accepted names, and the condition that tells of a conflict."""
    own, wanted = definition["metadata"]["name"], definition["spec"]["names"]
    before = (definition.get("status") or {}).get("acceptedNames") or {}
    accepted: Object = {"kind": before.get("kind", ""), "plural": before.get("plural", "")}
    conflict: Object | None = None
    for field, noun, reason in _NAMES:
        names = wanted.get(field)
        listed = names if isinstance(names, list) else [names]
        clash = [name for name in listed if name and taken.by_others(own, noun, name)]
        if clash:
            text = ", ".join(f'"{name}" is already in use' for name in clash)
            conflict = _says("NamesAccepted", "False", reason, text)
            names = before.get(field)
        if names:
            accepted[field] = names
    if wanted.get("categories"):
        accepted["categories"] = wanted["categories"]
    return accepted, conflict


def is_protected(group: str) -> bool:
    """Whether a group belongs to Kubernetes itself."""
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


def _approval(definition: Object) -> Object | None:
    """The condition of a definition in a protected group."""
    if not is_protected(definition["spec"]["group"]):
        return None
    type = "KubernetesAPIApprovalPolicyConformant"
    text = (definition["metadata"].get("annotations") or {}).get(APPROVAL, "")
    if not text:
        detail = f'protected groups must have approval annotation "{APPROVAL}", see '
        return _says(
            type, "False", "MissingAnnotation", detail + "https://github.com/kubernetes/enhancements/pull/1111"
        )
    if text.startswith("unapproved"):
        return _says(type, "False", "UnapprovedAnnotation", f'not approved: "{text}"')
    return _says(type, "True", "ApprovedAnnotation", f"approved in {text}")
