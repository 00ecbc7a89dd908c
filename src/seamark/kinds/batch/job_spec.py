"""What is wrong with the spec of a Job, by itself or as the template of a CronJob, and with a change of it."""

from __future__ import annotations

import re
from typing import Any

from seamark.errors import Object
from seamark.kinds.batch.job_policies import failure_policy_mistakes, replacement_mistakes, success_policy_mistakes
from seamark.kinds.language import go_names
from seamark.kinds.pod.validation import template_mistakes
from seamark.kinds.values.fields import Errors, immutable, invalid, not_supported, required, too_long
from seamark.kinds.values.label_selector import label_selector_mistakes, printed, readable
from seamark.kinds.values.metadata import dns_subdomain
from seamark.kinds.workloads.workload import not_negative

MOST_INDEXED_PARALLELISM = 100_000
MANY_COMPLETIONS = 100_000
MOST_WITH_MANY = 10_000  # indexes at once, and failed ones, of a Job with so many completions and limits per index
LONGEST_MANAGER = 63

_NOT_NEGATIVE = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_http_path = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
# What may change in the template of a suspended Job: where its Pods go, and what they need.
_DIRECTIVES = ("nodeSelector", "tolerations", "schedulingGates")

# Messages show these as Go prints them.
_PRINTERS = {"podFailurePolicy": go_names.FAILURE_POLICY, "successPolicy": go_names.SUCCESS_POLICY}


def spec_mistakes(spec: Object, path: str) -> Errors:
    """Mistakes in everything but the selector."""
    errors: Errors = []
    for field in _NOT_NEGATIVE:
        if spec.get(field) is not None:
            errors += not_negative(spec[field], f"{path}.{field}")
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if (manager := spec.get("managedBy")) is not None:
        errors += _manager_mistakes(manager, f"{path}.managedBy")
    errors += _mode_mistakes(spec, path)
    if spec.get("podFailurePolicy") is not None:
        errors += failure_policy_mistakes(spec, path)
    if spec.get("successPolicy") is not None:
        errors += success_policy_mistakes(spec, path)
    errors += replacement_mistakes(spec, path)
    errors += template_mistakes(spec["template"], f"{path}.template")
    return errors + _restart_mistakes(spec, f"{path}.template.spec.restartPolicy")


def _manager_mistakes(manager: str, path: str) -> Errors:
    host, _, rest = manager.partition("/")
    if not manager:
        return [required(path)]
    if not host or not rest:
        return [invalid(path, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [invalid(path, host, sentence) for sentence in dns_subdomain(host)]
    if not _http_path.fullmatch(rest):
        sentence = f"Invalid path (regex used for validation is '{_http_path.pattern}')"
        errors.append(invalid(path, rest, sentence))
    return errors + ([too_long(path, LONGEST_MANAGER)] if len(manager) > LONGEST_MANAGER else [])


def _mode_mistakes(spec: Object, path: str) -> Errors:
    mode = spec.get("completionMode")
    errors: Errors = []
    if mode not in (None, "NonIndexed", "Indexed"):
        errors.append(not_supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode == "Indexed":
        return errors + _indexed_mistakes(spec, path)
    if mode in (None, "NonIndexed"):
        errors += [
            invalid(f"{path}.{field}", spec[field], "requires indexed completion mode")
            for field in ("backoffLimitPerIndex", "maxFailedIndexes")
            if spec.get(field) is not None
        ]
    return errors


def _indexed_mistakes(spec: Object, path: str) -> Errors:
    completions, parallelism = spec.get("completions"), spec.get("parallelism") or 0
    most_failed = spec.get("maxFailedIndexes")
    if completions is None:
        return [required(f"{path}.completions", "when completion mode is Indexed")]
    errors: Errors = []
    if parallelism > MOST_INDEXED_PARALLELISM:
        sentence = f"must be less than or equal to {MOST_INDEXED_PARALLELISM} when completion mode is Indexed"
        errors.append(invalid(f"{path}.parallelism", parallelism, sentence))
    if most_failed is not None and most_failed > completions:
        errors.append(invalid(f"{path}.maxFailedIndexes", most_failed, "must be less than or equal to completions"))
    if most_failed is not None and most_failed > MANY_COMPLETIONS:
        sentence = f"must be less than or equal to {MANY_COMPLETIONS}"
        errors.append(invalid(f"{path}.maxFailedIndexes", most_failed, sentence))
    if completions > MANY_COMPLETIONS and spec.get("backoffLimitPerIndex") is not None:
        sentence = (
            f"must be less than or equal to {MOST_WITH_MANY} when completions are above {MANY_COMPLETIONS} and used "
            "with backoff limit per index"
        )
        if most_failed is None:
            above = f"must be specified when completions is above {MANY_COMPLETIONS}"
            errors.append(required(f"{path}.maxFailedIndexes", above))
        if parallelism > MOST_WITH_MANY:
            errors.append(invalid(f"{path}.parallelism", parallelism, sentence))
        if most_failed is not None and most_failed > MOST_WITH_MANY:
            errors.append(invalid(f"{path}.maxFailedIndexes", most_failed, sentence))
    return errors


def _restart_mistakes(spec: Object, path: str) -> Errors:
    policy = spec["template"]["spec"].get("restartPolicy", "")
    if policy in ("", "Always"):  # which is also the default
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [not_supported(path, policy, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def selector_mistakes(spec: Object) -> Errors:
    """Mistakes in the selector of a Job, and whether it matches the Pods that will be made."""
    selector = spec.get("selector")
    errors: Errors = [required("spec.selector")] if selector is None else []
    errors += label_selector_mistakes(selector, "spec.selector")
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    parsed = readable(selector)
    if parsed is not None and (selector is None or not parsed.matches(labels)):
        shown = dict(sorted(labels.items())) or None
        sentence = "`selector` does not match template `labels`"
        errors.append(invalid("spec.template.metadata.labels", shown, sentence))
    return errors


# --- changes ---------------------------------------------------------------------------------------


def change_mistakes(spec: Object, old: Object, *, movable: bool) -> Errors:
    """``movable`` says whether the Pods may be placed differently from now on: of a suspended Job, none runs."""
    errors = _completions_mistakes(spec, old)
    if spec.get("selector") != old.get("selector"):
        errors.append(immutable("spec.selector", printed(spec.get("selector"))))
    errors += _template_change_mistakes(spec["template"], old["template"], movable=movable)
    fixed = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
    for field in fixed:
        if (value := spec.get(field)) != old.get(field):
            shown = _PRINTERS[field](value) if field in _PRINTERS else value
            errors.append(immutable(f"spec.{field}", shown))
    return errors


def _completions_mistakes(spec: Object, old: Object) -> Errors:
    after = spec.get("completions")
    if after == old.get("completions"):
        return []
    if spec.get("completionMode") != "Indexed":
        return [immutable("spec.completions", after)]
    if after is not None and after != spec.get("parallelism"):
        return [invalid("spec.completions", after, "can only be modified in tandem with spec.parallelism")]
    return []


def _template_change_mistakes(template: Object, old: Object, *, movable: bool) -> Errors:
    if movable:
        old = {"metadata": template.get("metadata") or {}, "spec": _moved(template["spec"], old["spec"])}
    errors: Errors = []
    if (template.get("metadata") or {}) != (old.get("metadata") or {}):
        errors.append(immutable("spec.template.metadata", template.get("metadata")))
    if template["spec"] != old["spec"]:
        errors.append(immutable("spec.template.spec", template["spec"]))
    return errors


def _moved(spec: Object, old: Object) -> Object:
    """The old spec of the Pods with what the new one may say instead."""
    moved = {key: value for key, value in old.items() if key not in (*_DIRECTIVES, "affinity")}
    moved |= {key: spec[key] for key in _DIRECTIVES if key in spec}
    affinity = {key: value for key, value in (old.get("affinity") or {}).items() if key != "nodeAffinity"}
    if "nodeAffinity" in (spec.get("affinity") or {}):
        affinity["nodeAffinity"] = spec["affinity"]["nodeAffinity"]
    if affinity or spec.get("affinity") is not None:
        moved["affinity"] = affinity
    for group in ("containers", "initContainers"):
        after, before = spec.get(group) or (), old.get(group) or ()
        if before and len(after) == len(before):
            moved[group] = [_resized(*pair) for pair in zip(after, before, strict=True)]
    return moved


def _resized(container: Object, old: Object) -> Object:
    resources: dict[str, Any] = {"resources": container["resources"]} if "resources" in container else {}
    return {key: value for key, value in old.items() if key != "resources"} | resources
