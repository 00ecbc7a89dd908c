"""Validation of changes of a Pod: by an update, through ``ephemeralcontainers``, and through ``resize``."""

from __future__ import annotations

from typing import Any

from seamark.errors import Object
from seamark.kinds.language import go_names
from seamark.kinds.pod.annotations import MIRROR, annotation_change_mistakes
from seamark.kinds.pod.containers import padded_image_mistakes
from seamark.kinds.pod.resources import quality_of_service
from seamark.kinds.pod.scheduling import toleration_mistakes
from seamark.kinds.pod.validation import pod_spec_mistakes
from seamark.kinds.values.differences import difference
from seamark.kinds.values.fields import Errors, alike, forbidden, invalid, required

_CHANGEABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)
_LARGEST_INT32 = 2147483647
_COMPUTE = ("cpu", "memory")
_ONLY_ADDITIONS = "only additions are allowed (no mutations or deletions)"
_WHOLE = "[]"  # Kubernetes prints an empty path like this


def update_mistakes(pod: Object, old: Object) -> Errors:
    """What is wrong with an update or patch of the Pod itself."""
    errors = pod_spec_mistakes(pod)
    errors += _annotation_changes(pod, old)
    spec, before = pod["spec"], old["spec"]
    for field in ("containers", "initContainers"):
        after = spec.get(field) or []
        if len(after) != len(before.get(field) or []):
            return [*errors, forbidden(f"spec.{field}", "pod updates may not add or remove containers")]
        for i, container in enumerate(after):
            if not container.get("image"):
                errors.append(required(f"spec.{field}[{i}].image"))
            errors += padded_image_mistakes(container, f"spec.{field}[{i}]")
    deadline = _deadline_mistakes(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))
    errors += deadline
    if deadline and spec.get("activeDeadlineSeconds") is not None:
        return errors
    errors += _toleration_changes(spec.get("tolerations") or [], before.get("tolerations") or [])
    errors += _gate_changes(spec.get("schedulingGates") or [], before.get("schedulingGates") or [])
    if spec == before:
        return errors
    kept = _as_it_was(spec, before)
    if before.get("schedulingGates"):
        errors += _gated_changes(kept, before)
    if kept != before:
        text = f"pod updates may not change fields other than {_CHANGEABLE}\n{difference(before, kept)}"
        errors.append(forbidden("spec", text))
    return errors


def _annotation_changes(pod: Object, old: Object) -> Errors:
    after, before = pod["metadata"].get("annotations") or {}, old["metadata"].get("annotations") or {}
    return annotation_change_mistakes(after, before, "metadata.annotations")


def _deadline_mistakes(after: int | None, before: int | None) -> Errors:
    path = "spec.activeDeadlineSeconds"
    if after is None:
        if before is None:
            return []
        return [invalid(path, None, "must not update from a positive integer to nil value")]
    if not 0 <= after <= _LARGEST_INT32:
        return [invalid(path, after, f"must be between 0 and {_LARGEST_INT32}, inclusive")]
    if before is not None and before < after:
        return [invalid(path, after, "must be less than or equal to previous value")]
    return []


def _toleration_changes(after: list[Object], before: list[Object]) -> Errors:
    def bare(toleration: Object) -> bytes:
        return alike({key: value for key, value in toleration.items() if key != "tolerationSeconds"})

    if after == before:
        return []
    have = {bare(toleration) for toleration in after}
    if any(bare(toleration) not in have for toleration in before):
        sentence = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden("spec.tolerations", sentence)]
    return toleration_mistakes(after, "spec.tolerations")


def _gate_changes(after: list[Object], before: list[Object]) -> Errors:
    known = {gate.get("name") for gate in before}
    return [
        forbidden(
            f"spec.schedulingGates[{i}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'",
        )
        for i, gate in enumerate(after)
        if gate.get("name") not in known
    ]


def _as_it_was(spec: Object, before: Object) -> Object:
    """The new spec with all changeable fields restored; if it still differs from the old one, that is an error."""
    kept = dict(spec)
    for field in ("containers", "initContainers"):
        if spec.get(field):
            kept[field] = [
                _with(container, "image", was.get("image"))
                for container, was in zip(spec[field], before[field], strict=True)
            ]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        kept = _with(kept, field, before.get(field))
    grace = before.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and kept.get("terminationGracePeriodSeconds") == 1:
        kept["terminationGracePeriodSeconds"] = grace
    return kept


def _with(part: Object, field: str, value: Any) -> Object:
    copy = dict(part)
    if value is None:
        copy.pop(field, None)
    else:
        copy[field] = value
    return copy


def _gated_changes(kept: Object, before: Object) -> Errors:
    """While a Pod has scheduling gates, its node selector and node affinity may be narrowed."""
    errors: Errors = []
    after, was = kept.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if after != was:
        if any(after.get(key) != value for key, value in was.items()):
            sentence = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            errors.append(invalid("spec.nodeSelector", dict(sorted(after.items())) or None, sentence))
        kept.update(_with(kept, "nodeSelector", before.get("nodeSelector")))
        if "nodeSelector" not in before:
            kept.pop("nodeSelector", None)
    affinity, previous = kept.get("affinity") or {}, before.get("affinity") or {}
    if affinity.get("nodeAffinity") != previous.get("nodeAffinity"):
        errors += _node_affinity_changes(affinity.get("nodeAffinity") or {}, previous.get("nodeAffinity") or {})
        restored = _with(affinity, "nodeAffinity", previous.get("nodeAffinity"))
        if restored or "affinity" in before:
            kept["affinity"] = restored
        else:
            kept.pop("affinity", None)
    return errors


def _node_affinity_changes(after: Object, before: Object) -> Errors:
    field = "requiredDuringSchedulingIgnoredDuringExecution"
    path = f"spec.affinity.nodeAffinity.{field}.nodeSelectorTerms"
    had = (before.get(field) or {}).get("nodeSelectorTerms") or []
    have = (after.get(field) or {}).get("nodeSelectorTerms") or []
    if had and len(had) != len(have):
        sentence = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [invalid(path, go_names.list_of(go_names.NODE_SELECTOR_TERM)(have), sentence)]
    return [
        invalid(f"{path}[{i}]", go_names.NODE_SELECTOR_TERM(new), _ONLY_ADDITIONS)
        for i, (new, was) in enumerate(zip(have, had, strict=False))
        if not _only_grew(new, was)
    ]


def _only_grew(new: Object, was: Object) -> bool:
    fields = ("matchExpressions", "matchFields")
    if not any(was.get(field) for field in fields) and any(new.get(field) for field in fields):
        return False
    return all((new.get(f) or [])[: len(was.get(f) or [])] == (was.get(f) or []) for f in fields)


# --- ephemeral containers --------------------------------------------------------------------------------------


def ephemeral_mistakes(pod: Object, old: Object) -> Errors:
    """What is wrong with a change through ``ephemeralcontainers``, which may only add containers."""
    if MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden(_WHOLE, "static pods do not support ephemeral containers")]
    errors = pod_spec_mistakes(pod) + _annotation_changes(pod, old)
    now = {container.get("name"): container for container in pod["spec"].get("ephemeralContainers") or ()}
    for was in old["spec"].get("ephemeralContainers") or ():
        name = was.get("name", "")
        if name not in now:
            sentence = f'existing ephemeral containers "{name}" may not be removed\n'
            errors.append(forbidden("spec.ephemeralContainers", sentence))
        elif now[name] != was:
            sentence = f'existing ephemeral containers "{name}" may not be changed\n{difference(was, now[name])}'
            errors.append(forbidden("spec.ephemeralContainers", sentence))
    return errors


# --- resize ----------------------------------------------------------------------------------------------------


def prepare_resize(pod: Object, old: Object) -> None:
    """Keep only the changes of resources.  If the list of containers differs, keep all: validation rejects it."""
    spec, before = pod["spec"], old["spec"]
    kept = dict(before)
    for field in ("containers", "initContainers"):
        after, was = spec.get(field) or [], before.get(field) or []
        if [c.get("name") for c in after] != [c.get("name") for c in was]:
            return
        if after:
            kept[field] = [
                _with(_with(old_one, "resources", new.get("resources")), "resizePolicy", new.get("resizePolicy"))
                for new, old_one in zip(after, was, strict=True)
            ]
    pod["spec"] = _with(kept, "resources", spec.get("resources"))


def resize_mistakes(pod: Object, old: Object) -> Errors:
    """What is wrong with a change through ``resize``: it may change CPU and memory, but not the Pod's QoS class."""
    spec, before = pod["spec"], old["spec"]
    if MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden(_WHOLE, "static pods cannot be resized")]
    if (before.get("os") or {}).get("name") == "windows":
        return [forbidden(_WHOLE, "windows pods cannot be resized")]
    errors = pod_spec_mistakes(pod)
    if old["status"].get("qosClass") != quality_of_service(spec):
        sentence = "Pod QOS Class may not change as a result of resizing"
        errors.append(invalid("spec", pod["status"].get("qosClass", ""), sentence))
    running = next(
        (s for s in old["status"].get("containerStatuses") or () if (s.get("state") or {}).get("running")), None
    )
    if running is not None and running.get("resources") is None:
        errors.append(forbidden("spec", "Pod running on node without support for resize"))
    errors += _pod_level_resize_mistakes(spec, before)
    if reordered := _reordered(spec, before):
        return errors + reordered
    for field in ("initContainers", "containers"):
        for i, was in enumerate(before.get(field) or ()):
            after, resources = spec[field][i].get("resources") or {}, was.get("resources") or {}
            errors += _removed(after, resources, f"spec.{field}[{i}].resources", "resource")
    return errors + _frozen_mistakes(spec, before)


def _removed(after: Object, before: Object, path: str, word: str) -> Errors:
    """Requests and limits may change, but they may not go."""
    return [
        forbidden(f"{path}.{field}", f"{word} {field} cannot be removed")
        for field in ("requests", "limits")
        if set(before.get(field) or ()) - set(after.get(field) or ())
    ]


def _pod_level_resize_mistakes(spec: Object, before: Object) -> Errors:
    """What is wrong with a change of the Pod's own resources."""
    after, was = spec.get("resources"), before.get("resources")
    if was is not None and after is None:
        return [forbidden("spec.resources", "pod-level resources cannot be removed")]
    after, was = after or {}, was or {}
    errors = _removed(after, was, "spec.resources", "pod-level resource")
    if _without_compute({"resources": after}) != _without_compute({"resources": was}):
        errors.append(forbidden("spec", "only cpu and memory resources are mutable at pod-level"))
    return errors


def _reordered(spec: Object, before: Object) -> Errors:
    """A resize neither adds nor removes containers, and they keep their names and order."""
    errors: Errors = []
    for field in ("containers", "initContainers"):
        after, was = spec.get(field) or [], before.get(field) or []
        if len(after) != len(was):
            errors.append(forbidden(f"spec.{field}", f"{field} may not be added or removed on resize"))
            continue
        errors += [
            forbidden(f"spec.{field}[{i}].name", f"{field} may not be renamed or reordered on resize")
            for i, (new, old) in enumerate(zip(after, was, strict=True))
            if new.get("name") != old.get("name")
        ]
    return errors


def _frozen_mistakes(spec: Object, before: Object) -> Errors:
    errors: Errors = []
    for container, was in zip(spec.get("containers") or (), before.get("containers") or (), strict=True):
        if _without_compute(container) != _without_compute(was):
            errors.append(forbidden("spec", "only cpu and memory resources are mutable"))
    inits = zip(spec.get("initContainers") or (), before.get("initContainers") or (), strict=True)
    for i, (container, was) in enumerate(inits):
        path = f"spec.initContainers[{i}]"
        if _without_compute(container) != _without_compute(was):
            errors.append(forbidden(path, "only cpu and memory resources for init or sidecar containers are mutable"))
        if container == was or container.get("restartPolicy") == "Always":
            continue
        sentence = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
        policies = container.get("resizePolicy") or ()
        errors += [forbidden(path, sentence) for p in policies if p.get("restartPolicy") == "RestartContainer"]
    return errors


def _without_compute(container: Object) -> Object:
    resources = container.get("resources") or {}
    rest = {
        field: {name: q for name, q in (resources.get(field) or {}).items() if name not in _COMPUTE}
        for field in ("limits", "requests")
    }
    return {**container, "resources": rest}
