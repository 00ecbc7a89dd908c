"""The step of admission that holds Pods to the level of their Namespace (PodSecurity).

A Pod that violates what its Namespace enforces is refused.  A workload is not, since its Pods may still be changed on
their way; but its user is warned, and the audit log gets a note.  The labels of a Namespace must mean something, and a
user who makes it stricter is told which of its Pods violate the new level.

No Namespace, user or runtime class is exempt, and a Namespace without labels demands nothing: Kubernetes' defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import islice

from seamark.errors import Object
from seamark.kinds.admission import Operation, Plugin, Request
from seamark.kinds.kind import Kind
from seamark.kinds.podsecurity.checks import violations
from seamark.kinds.podsecurity.existing import warnings_about
from seamark.kinds.podsecurity.measures import Measures
from seamark.kinds.podsecurity.policy import ANYTHING, PREFIX, PRIVILEGED, Policy, Standard, policy_of
from seamark.kinds.podsecurity.subject import Violation, subject
from seamark.kinds.resource import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    POD_TEMPLATES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Resource,
)
from seamark.kinds.values.fields import one_message, refuse
from seamark.metrics import Registry

# How many of its Pods are judged when a Namespace gets stricter.  Kubernetes judges 3000, or for one second; here other
# requests wait meanwhile.
MOST_PODS = 1000

_IN_SPEC = (DAEMON_SETS, DEPLOYMENTS, JOBS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS)
# Where the kinds that make Pods keep the template.
TEMPLATES: dict[Resource, tuple[str, ...]] = {
    **dict.fromkeys(_IN_SPEC, ("spec", "template")),
    CRON_JOBS: ("spec", "jobTemplate", "spec", "template"),
    POD_TEMPLATES: ("template",),
}
# The subresources of a Pod that take a whole Pod, with its spec.
_PARTS = ("", "ephemeralcontainers", "resize")

_ENFORCED = f"{PREFIX}enforce-policy"
_AUDITED = f"{PREFIX}audit-violations"
_MISREAD = f"{PREFIX}error"

# Finds what is wrong with a Pod by a standard; once for each, as two modes often have the same.
Find = Callable[[Standard], list[Violation]]


class PodSecurity(Plugin):
    """Judges Pods, the templates of workloads, and the labels of Namespaces."""

    operations = ("CREATE", "UPDATE")

    def __init__(self, measures: Measures | None = None) -> None:
        self._measures = measures

    def measured(self, metrics: Registry) -> PodSecurity:
        return PodSecurity(Measures(metrics))

    def concerns(self, kind: Kind, operation: Operation, part: str) -> bool:
        if operation not in self.operations:
            return False
        if kind.resource == PODS:
            return part in _PARTS
        return not part and (kind.resource == NAMESPACES or kind.resource in TEMPLATES)

    def validate(self, request: Request) -> None:
        resource = request.kind.resource
        if resource == NAMESPACES:
            judge_labels(request)
            return
        policy = policy_of(request.others.labels_of(NAMESPACES, request.namespace) or {})
        if resource == PODS:
            self._judge_pod(request, policy)
        elif request.notes is not None and not policy.silent:  # components do not read what there is to say
            self._judge_template(request, policy)

    def _judge_pod(self, request: Request, policy: Policy) -> None:
        if policy.lenient:
            _note(request, _ENFORCED, str(ANYTHING))
            self._count(request, ANYTHING, "enforce", refused=False)
        elif request.old is None or matters(request.obj, request.old):
            _note(request, _ENFORCED, str(policy.enforce))
            find = _finder(request.obj)
            found = find(policy.enforce)
            self._count(request, policy.enforce, "enforce", refused=bool(found))
            self._tell(request, policy, find, refused=bool(found))
            if found:
                raise request.forbidden(f'violates PodSecurity "{policy.enforce}": {_listed(found)}')

    def _judge_template(self, request: Request, policy: Policy) -> None:
        template: Object | None = request.obj
        for field in TEMPLATES[request.kind.resource]:
            template = template and template.get(field)
        if template:
            self._tell(request, policy, _finder(template), refused=False)

    def _tell(self, request: Request, policy: Policy, find: Find, *, refused: bool) -> None:
        """Say what is wrong in the audit log, and to a client that is not refused anyway."""
        if policy.mistakes:
            text = one_message([f"{each.field}: {each.message}" for each in policy.mistakes])
            _note(request, _MISREAD, f"Failed to parse policy: {text}")
            if self._measures is not None:
                self._measures.misread(request)
        if found := find(policy.audit):
            _note(request, _AUDITED, _would_violate(policy.audit, found))
            self._count(request, policy.audit, "audit", refused=True)
        if not refused and (found := find(policy.warn)):
            if request.notes is not None:
                request.notes.warn([_would_violate(policy.warn, found)])
            self._count(request, policy.warn, "warn", refused=True)

    def _count(self, request: Request, standard: Standard, mode: str, *, refused: bool) -> None:
        if self._measures is not None:
            self._measures.judged(request, standard, mode, refused=refused)


def matters(pod: Object, old: Object) -> bool:
    """Whether an update of a Pod is a reason to judge it again: another image, or another container."""
    return any(_images(pod, field) != _images(old, field) for field in ("containers", "initContainers")) or bool(
        _images(pod, "ephemeralContainers") - _images(old, "ephemeralContainers")
    )


def judge_labels(request: Request) -> None:
    """Refuse labels of a Namespace that mean nothing, if they are new; warn of Pods that violate a stricter level."""
    policy = _policy_in(request.obj)
    before = None if request.old is None else _policy_in(request.old)
    if policy.mistakes and (before is None or policy.mistakes != before.mistakes):
        raise refuse(NAMESPACES, request.name, list(policy.mistakes))
    if before is None or request.notes is None or not _tightened(policy.enforce, before.enforce):
        return
    namespace, others = request.name, request.others
    pods = islice(others.all(PODS, namespace), MOST_PODS)
    request.notes.warn(warnings_about(namespace, policy.enforce, pods, others.count(PODS, namespace)))


def _tightened(new: Standard, old: Standard) -> bool:
    """Whether Pods may violate the new standard that did not violate the old one."""
    if new.level == PRIVILEGED or new == old:
        return False
    return new.version != old.version or new.stricter(old)


def _policy_in(namespace: Object) -> Policy:
    return policy_of(namespace["metadata"].get("labels") or {})


def _images(pod: Object, field: str) -> set[tuple[str, str]]:
    return {(each.get("name", ""), each.get("image", "")) for each in pod["spec"].get(field) or ()}


def _finder(pod: Object) -> Find:
    """For a Pod, or a template."""
    judged = subject(pod.get("metadata") or {}, pod.get("spec") or {})
    return cache(lambda standard: violations(standard, judged))


def _listed(found: list[Violation]) -> str:
    return ", ".join(map(str, found))


def _would_violate(standard: Standard, found: list[Violation]) -> str:
    return f'would violate PodSecurity "{standard}": {_listed(found)}'


def _note(request: Request, key: str, value: str) -> None:
    if request.notes is not None:
        request.notes.annotate(key, value)
