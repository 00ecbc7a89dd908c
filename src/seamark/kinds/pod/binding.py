"""Putting a Pod on a node (``pods/binding``, or the older ``bindings``), and asking it to go (``pods/eviction``)."""

from __future__ import annotations

from seamark.errors import ApiError, BadRequest, Conflict, Object
from seamark.kinds.admission import Others
from seamark.kinds.kind import Kind
from seamark.kinds.pod.admission import copy_topology
from seamark.kinds.policy.eviction import budgets_of, charged
from seamark.kinds.resource import POD_DISRUPTION_BUDGETS, PODS, Resource
from seamark.kinds.subresource import Action, Effect, Together
from seamark.kinds.values.conditions import with_condition
from seamark.kinds.values.fields import Errors, not_supported, one_message, required


class BindingKind(Kind):
    """``bindings``: the older path for a Binding, which names its Pod itself."""

    resource = Resource("", "v1", "bindings", "Binding")
    singular = "binding"
    shape_name = "io.k8s.api.core.v1.Binding"
    verbs = ("create",)
    stored = False
    posts_to = (PODS, "binding")


class EvictionKind(Kind):
    """What an Eviction looks like; it has no path of its own, only a subresource's."""

    resource = Resource("policy", "v1", "evictions", "Eviction")
    singular = "eviction"
    shape_name = "io.k8s.api.policy.v1.Eviction"
    older_versions = ("policy/v1beta1",)
    verbs = ()
    stored = False


class Bind(Action, frozen=True):
    """Give a Pod its node, once."""

    def plan(self, name: str, document: Object, *, now: str, others: Others) -> Effect:
        def edit(pod: Object) -> Object:
            bound = bind(pod, document, now)
            copy_topology(bound, others)
            return bound

        return Effect(edit)


class Evict(Action, frozen=True):
    """Say in a Pod's status why it goes, then delete it, if its disruption budget allows that."""

    def plan(self, name: str, document: Object, *, now: str, others: Others) -> Effect:
        if (document.get("metadata") or {}).get("name", "") != name:
            raise BadRequest("name in URL does not match name in Eviction object")

        def also(pod: Object) -> Together:
            changed = charged(pod, budgets_of(pod, others), now)
            return [(POD_DISRUPTION_BUDGETS, budget) for budget in changed]

        return Effect(lambda pod: evicted(pod, now), delete=document.get("deleteOptions") or {}, also=also)


BINDING = BindingKind()
BIND = Bind("binding", ("create",), "Binding", sent=BINDING)
EVICT = Evict("eviction", ("create",), "Eviction", group="policy", version="v1", sent=EvictionKind())


def binding_mistakes(binding: Object) -> Errors:
    target = binding.get("target") or {}
    errors: Errors = []
    if target.get("kind") not in (None, "", "Node"):
        errors.append(not_supported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        errors.append(required("target.name"))
    return errors


def bind(pod: Object, binding: Object, now: str) -> Object:
    """The Pod on the node the binding names; the Pod given is not edited.

    Kubernetes answers a bad binding with a bare 500, and everything that keeps the Pod from its node with a Conflict.
    """
    meta, spec = pod["metadata"], pod["spec"]
    name, asked = meta["name"], binding.get("metadata") or {}
    if asked.get("name") != name:
        raise BadRequest("name in URL does not match name in Binding object")
    if wrong := binding_mistakes(binding):
        raise ApiError(one_message([f"{error.field}: {error.message}" for error in wrong]))
    node = binding["target"]["name"]
    _check_preconditions(meta, asked)
    if "deletionTimestamp" in meta:
        raise _conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _conflict(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _conflict(name, f"pod {name} has non-empty .spec.schedulingGates")
    bound = {**pod, "metadata": dict(meta), "spec": {**spec, "nodeName": node}}
    for field in ("annotations", "labels"):
        if asked.get(field):
            bound["metadata"][field] = {**(meta.get(field) or {}), **asked[field]}
    status = {field: value for field, value in pod["status"].items() if field != "nominatedNodeName"}
    bound["status"] = scheduled(status, now=now)
    return bound


def scheduled(status: Object, *, now: str) -> Object:
    """The status with a true PodScheduled condition."""
    return _with_condition(status, {"type": "PodScheduled", "status": "True"}, now=now)


def _with_condition(status: Object, said: Object, *, now: str) -> Object:
    condition = {**said, "lastProbeTime": None, "lastTransitionTime": now}
    return {**status, "conditions": with_condition(status, condition)}


def _check_preconditions(meta: Object, asked: Object) -> None:
    """A binding may be for one Pod of this name only, or for one version of it."""
    for field, word in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if asked.get(field) and asked[field] != meta.get(field):
            name = meta["name"]
            raise Conflict(
                f'Operation cannot be fulfilled on pods "{name}": StorageError: invalid object, Code: 4, Key: '
                f"/registry/pods/{meta.get('namespace', '')}/{name}, ResourceVersion: 0, AdditionalErrorMsg: "
                f"Precondition failed: {word} in precondition: {asked[field]}, {word} in object meta: "
                f"{meta.get(field, '')}",
                details={"name": name, "kind": "pods"},
            )


def _conflict(name: str, reason: str) -> Conflict:
    return Conflict(
        f'Operation cannot be fulfilled on pods/binding "{name}": {reason}',
        details={"name": name, "kind": "pods/binding"},
    )


def evicted(pod: Object, now: str) -> Object:
    """The Pod with the reason why it is about to go; the Pod given is not edited."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    return {**pod, "status": _with_condition(pod["status"], condition, now=now)}
