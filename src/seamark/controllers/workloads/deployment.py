"""Deployments as their controller reads them, and the ReplicaSets it creates for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seamark.controllers.workloads.replicas import ReplicaSet
from seamark.controllers.workloads.shares import RollingUpdate, resolve
from seamark.controllers.workloads.templates import short_hash
from seamark.errors import Object
from seamark.kinds.resource import DEPLOYMENTS, REPLICA_SETS
from seamark.kinds.values.numbers import int64
from seamark.kinds.values.selectors import LabelSelector, from_label_selector
from seamark.kinds.wellknown import LAST_APPLIED_ANNOTATION, TEMPLATE_HASH_LABEL
from seamark.rules.objects.metadata import ObjectView, View
from seamark.rules.objects.workloads import Template, WorkloadConditions, owner_reference

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
_ROLLBACK_TO = "deprecated.deployment.rollback.to"

# Annotations that are not copied, because they mean something else on a ReplicaSet than on its Deployment.
_OWN = frozenset((LAST_APPLIED_ANNOTATION, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, _ROLLBACK_TO))
_LONGEST_HISTORY = 2000
_UNLIMITED = 2**31 - 1


class Strategy(View, frozen=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class DeploymentSpec(View, frozen=True):
    replicas: int = 1
    selector: dict[str, Any] | None = None
    template: Template | None = None
    strategy: Strategy = Strategy()
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    progress_deadline_seconds: int | None = None
    paused: bool = False


class DeploymentStatus(View, frozen=True):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    terminating_replicas: int | None = None
    collision_count: int | None = None
    conditions: WorkloadConditions = ()


class Deployment(ObjectView, frozen=True):
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()

    @property
    def selector(self) -> LabelSelector:
        return from_label_selector(self.spec.selector)

    @property
    def rolling(self) -> bool:
        return self.spec.strategy.type == "RollingUpdate"

    @property
    def surge(self) -> int:
        """How many Pods there may be beyond the wanted number; a percentage is rounded up."""
        if not self.rolling:
            return 0
        return resolve(self.spec.strategy.rolling_update.max_surge, self.spec.replicas, rounding="up")

    @property
    def unavailable(self) -> int:
        """How many of the wanted Pods may be missing; a percentage is rounded down."""
        wanted = self.spec.replicas
        if not self.rolling or not wanted:
            return 0
        allowed = resolve(self.spec.strategy.rolling_update.max_unavailable, wanted, rounding="down")
        # If both round to zero the rollout could not start, so one Pod may be missing.
        return min(allowed or int(not self.surge), wanted)

    @property
    def deadline(self) -> int | None:
        """Within how many seconds the rollout must make progress; None if there is no deadline."""
        seconds = self.spec.progress_deadline_seconds
        return None if seconds == _UNLIMITED else seconds

    @property
    def history_limit(self) -> int | None:
        limit = self.spec.revision_history_limit
        return None if limit == _UNLIMITED else limit


def same_template(deployment: Deployment, replica_set: ReplicaSet) -> bool:
    """Whether the ReplicaSet has the Deployment's template; the hash label that the controller adds does not count."""
    wanted, made = deployment.spec.template or {}, replica_set.spec.template or {}
    if wanted.get("spec") != made.get("spec"):
        return False
    return _without_hash(wanted) == _without_hash(made)


def _without_hash(template: Template) -> Object:
    metadata = {field: value for field, value in (template.get("metadata") or {}).items() if value is not None}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != TEMPLATE_HASH_LABEL}
    return {**metadata, "labels": labels}


def new_replica_set(deployment: Deployment, *, replicas: int, annotations: Mapping[str, str]) -> Object:
    """The ReplicaSet for the Deployment's template; the same template results in the same name."""
    template = deployment.spec.template or {}
    metadata = template.get("metadata") or {}
    unique = short_hash(template, deployment.status.collision_count)
    labels = {**(metadata.get("labels") or {}), TEMPLATE_HASH_LABEL: unique}
    selector = deployment.spec.selector or {}
    spec: Object = {
        "replicas": replicas,
        "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), TEMPLATE_HASH_LABEL: unique}},
        "template": {**template, "metadata": {**metadata, "labels": labels}},
    }
    if deployment.spec.min_ready_seconds:
        spec["minReadySeconds"] = deployment.spec.min_ready_seconds
    return {
        "apiVersion": REPLICA_SETS.api_version,
        "kind": REPLICA_SETS.kind,
        "metadata": {
            "name": f"{deployment.metadata.name}-{unique}",
            "namespace": deployment.metadata.namespace,
            "labels": labels,
            "annotations": dict(annotations),
            "ownerReferences": [owner_reference(DEPLOYMENTS, deployment.metadata)],
        },
        "spec": spec,
    }


# --- annotations -----------------------------------------------------------------------------------


def number(annotations: Mapping[str, str], name: str) -> int | None:
    """A number in an annotation; None if there is none."""
    return int64(annotations.get(name, ""))


def size_annotations(deployment: Deployment) -> dict[str, str]:
    """The Deployment's size, recorded on a ReplicaSet so that a later change of it is noticed."""
    wanted = deployment.spec.replicas
    return {DESIRED_REPLICAS: str(wanted), MAX_REPLICAS: str(wanted + deployment.surge)}


def revised_annotations(deployment: Deployment, before: Mapping[str, str], revision: int) -> dict[str, str]:
    """The annotations of the new ReplicaSet: the Deployment's own, and at least this revision."""
    copied = {key: value for key, value in deployment.metadata.annotations.items() if key not in _OWN}
    annotations = {**before, **copied}
    old = number(before, REVISION)
    if (old is None and before.get(REVISION)) or (old or 0) >= revision:
        return annotations
    annotations[REVISION] = str(revision)
    if old is not None:
        annotations[REVISION_HISTORY] = _longer_history(before.get(REVISION_HISTORY, ""), before[REVISION])
    return annotations


def _longer_history(history: str, revision: str) -> str:
    """The earlier revisions of a ReplicaSet; when there are too many, the oldest are dropped."""
    revisions = [*history.split(","), revision] if history else [revision]
    while len(",".join(revisions)) > _LONGEST_HISTORY:
        revisions.pop(0)
    return ",".join(revisions)
