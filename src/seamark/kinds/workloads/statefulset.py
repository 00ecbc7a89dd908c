"""StatefulSet: Pods with stable names, each with its own volume claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.kind import Column
from seamark.kinds.language import go_names
from seamark.kinds.pod.defaults import default_claim
from seamark.kinds.pod.validation import template_mistakes
from seamark.kinds.resource import STATEFUL_SETS
from seamark.kinds.storage.claim_spec import claim_mistakes
from seamark.kinds.subresource import status_of
from seamark.kinds.values.fields import Errors, invalid, not_supported, required
from seamark.kinds.values.label_selector import printed, readable
from seamark.kinds.values.metadata import dns_label
from seamark.kinds.values.times import age
from seamark.kinds.workloads import workload
from seamark.kinds.workloads.scale import SCALE

_FIXED = ("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates")


class StatefulSetKind(workload.Workload):
    resource = STATEFUL_SETS
    singular = "statefulset"
    shape_name = "io.k8s.api.apps.v1.StatefulSet"
    short_names = ("sts",)
    subresources = (SCALE, status_of("StatefulSet"))
    columns = (
        Column("Name", format="name"),
        Column("Ready"),
        Column("Age"),
        *workload.CONTAINER_COLUMNS,
    )
    new_status = {"replicas": 0, "availableReplicas": 0}  # noqa: RUF012 - declared in the base class
    counts = (
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    )

    def validate_name(self, name: str, *, prefix: bool) -> list[str]:
        return dns_label(name, prefix=prefix)

    def default_spec(self, spec: Object) -> None:
        super().default_spec(spec)
        if not spec.get("podManagementPolicy"):
            spec["podManagementPolicy"] = "OrderedReady"
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
            strategy.setdefault("rollingUpdate", {})
        if strategy["type"] == "RollingUpdate" and (rolling := strategy.get("rollingUpdate")) is not None:
            rolling.setdefault("partition", 0)
            rolling.setdefault("maxUnavailable", 1)
        policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        for field in ("whenDeleted", "whenScaled"):
            if not policy.get(field):
                policy[field] = "Retain"
        spec.setdefault("revisionHistoryLimit", 10)
        for claim in spec.get("volumeClaimTemplates") or ():
            claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
            default_claim(claim.setdefault("spec", {}))
            status = claim.setdefault("status", {})
            if not status.get("phase"):
                status["phase"] = "Pending"

    def validate(self, obj: Object) -> Errors:
        spec = obj["spec"]
        errors = _spec_mistakes(spec) + _template_mistakes(spec) + _claim_template_mistakes(spec)
        if name := spec.get("serviceName"):
            errors += [invalid("spec.serviceName", name, sentence) for sentence in dns_label(name)]
        return errors

    def validate_update(self, obj: Object, old: Object) -> Errors:
        after, before = obj["spec"], old["spec"]
        errors = _spec_mistakes(after)
        # If the old template already broke the rules, the new one is not checked.
        if not _template_mistakes(before):
            errors += _template_mistakes(after)
        if not _claim_template_mistakes(before):
            errors += _claim_template_mistakes(after)
        return errors + workload.fixed_mistakes(obj, old, _FIXED)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        sentences = super().warnings(obj, old)
        if obj["spec"].get("revisionHistoryLimit", 0) < 0:
            sentences.append(
                "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is "
                "recommended"
            )
        return sentences

    def status_mistakes(self, status: Object) -> Errors:
        parts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
        errors = workload.not_more_than(status, parts, "replicas", "status.replicas")
        ready = ("availableReplicas",)
        return errors + workload.not_more_than(status, ready, "readyReplicas", "status.readyReplicas")

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec, status = obj["metadata"], obj["spec"], obj["status"]
        return [
            meta.get("name", ""),
            f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
            age(now, meta.get("creationTimestamp")),
            *workload.container_cells(spec["template"]),
        ]


def _spec_mistakes(spec: Object) -> Errors:
    errors: Errors = []
    policy = spec["podManagementPolicy"]
    if policy not in ("OrderedReady", "Parallel"):
        errors.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    errors += _strategy_mistakes(spec["updateStrategy"])
    for field in ("whenDeleted", "whenScaled"):
        value = spec["persistentVolumeClaimRetentionPolicy"][field]
        if value not in ("Retain", "Delete"):
            path = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            errors.append(not_supported(path, value, ("Retain", "Delete")))
    errors += workload.not_negative(spec["replicas"], "spec.replicas")
    errors += workload.not_negative(spec.get("minReadySeconds", 0), "spec.minReadySeconds")
    if (ordinals := spec.get("ordinals")) is not None:
        errors += workload.not_negative(ordinals.get("start", 0), "spec.ordinals.start")
    return errors + workload.selector_mistakes(spec, "statefulset")


def _strategy_mistakes(strategy: Object) -> Errors:
    path, kind, rolling = "spec.updateStrategy", strategy["type"], strategy.get("rollingUpdate")
    if kind == "OnDelete":
        if rolling is None:
            return []
        shown = go_names.ROLLING_STATEFUL_SET(rolling)
        return [invalid(f"{path}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")]
    if kind != "RollingUpdate":
        return [invalid(path, go_names.STATEFUL_SET_STRATEGY(strategy), "must be 'RollingUpdate' or 'OnDelete'")]
    if rolling is None:
        return []
    path = f"{path}.rollingUpdate"
    errors = workload.not_negative(rolling.get("partition", 0), f"{path}.partition")
    if (unavailable := rolling.get("maxUnavailable")) is not None:
        path = f"{path}.maxUnavailable"
        errors += workload.share_mistakes(unavailable, path)
        if not workload.share_value(unavailable):
            errors.append(invalid(path, unavailable, "cannot be 0"))
        errors += workload.more_than_all(unavailable, path)
    return errors


def _template_mistakes(spec: Object) -> Errors:
    """Validate the template as its Pods will have it, with a volume for each claim."""
    selector = readable(spec.get("selector"))
    if selector is None:
        return [invalid("spec.selector", printed(spec.get("selector")), "")]
    template = spec["template"]
    errors = [] if selector.empty else workload.unselected_mistakes(spec)
    claimed = [(claim.get("metadata") or {}).get("name", "") for claim in spec.get("volumeClaimTemplates") or ()]
    if claimed:
        own = [v for v in template["spec"].get("volumes") or () if v.get("name") not in claimed]
        made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claimed if name]
        template = {**template, "spec": {**template["spec"], "volumes": own + made}}
    errors += template_mistakes(template, "spec.template")
    return errors + workload.lasting_mistakes(template["spec"], "StatefulSet")


def _claim_template_mistakes(spec: Object) -> Errors:
    errors: Errors = []
    for i, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        path, meta = f"spec.volumeClaimTemplates[{i}]", claim.get("metadata") or {}
        if not meta.get("name"):
            errors.append(required(f"{path}.metadata.name"))
        else:
            name = meta["name"]
            errors += [invalid(f"{path}.metadata.name", name, sentence) for sentence in dns_label(name)]
        errors += claim_mistakes(claim.get("spec") or {}, f"{path}.spec")
    return errors


STATEFUL_SET = StatefulSetKind()
