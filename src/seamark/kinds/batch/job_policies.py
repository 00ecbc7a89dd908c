"""What is wrong with the policies of a Job: for Pods that fail, for success, and for replacing Pods."""

from __future__ import annotations

from seamark.errors import Object
from seamark.kinds.batch import indexes
from seamark.kinds.language import go_names
from seamark.kinds.values.fields import (
    Errors,
    duplicate,
    invalid,
    not_supported,
    omitted,
    required,
    too_long,
    too_many,
)
from seamark.kinds.values.metadata import qualified_name
from seamark.kinds.workloads.workload import not_negative

MOST_RULES = 20
MOST_CODES = 255
MOST_CONDITIONS = 20
LONGEST_INDEXES = 64 * 1024

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")


def failure_policy_mistakes(spec: Object, path: str) -> Errors:
    rules, path = spec["podFailurePolicy"].get("rules") or (), f"{path}.podFailurePolicy.rules"
    errors: Errors = []
    if len(rules) > MOST_RULES:
        errors.append(too_many(path, len(rules), MOST_RULES))
    pod = spec["template"]["spec"]
    names = {each.get("name", "") for group in ("containers", "initContainers") for each in pod.get(group) or ()}
    for place, rule in enumerate(rules):
        errors += _rule_mistakes(spec, rule, f"{path}[{place}]", names)
    return errors


def _rule_mistakes(spec: Object, rule: Object, path: str, names: set[str]) -> Errors:
    action, codes, conditions = rule["action"], rule.get("onExitCodes"), rule.get("onPodConditions") or ()
    errors: Errors = []
    if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        errors.append(invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set"))
    errors += _choice_mistakes(action, f"{path}.action", _ACTIONS)
    if codes is not None:
        errors += _codes_mistakes(codes, f"{path}.onExitCodes", names)
    if len(conditions) > MOST_CONDITIONS:
        errors.append(too_many(f"{path}.onPodConditions", len(conditions), MOST_CONDITIONS))
    for place, pattern in enumerate(conditions):
        at = f"{path}.onPodConditions[{place}]"
        errors += [invalid(f"{at}.type", pattern["type"], sentence) for sentence in qualified_name(pattern["type"])]
        errors += _choice_mistakes(pattern["status"], f"{at}.status", _STATUSES)
    if codes is not None and conditions:
        errors.append(omitted(path, "specifying both OnExitCodes and OnPodConditions is not supported"))
    if codes is None and not conditions:
        errors.append(omitted(path, "specifying one of OnExitCodes and OnPodConditions is required"))
    return errors


def _codes_mistakes(codes: Object, path: str, names: set[str]) -> Errors:
    operator, container, values = codes["operator"], codes.get("containerName"), codes.get("values") or []
    errors = _choice_mistakes(operator, f"{path}.operator", _OPERATORS)
    if container is not None and container not in names:
        sentence = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{path}.containerName", container, sentence))
    if not values:
        errors.append(invalid(f"{path}.values", values, "at least one value is required"))
    elif len(values) > MOST_CODES:
        errors.append(too_many(f"{path}.values", len(values), MOST_CODES))
    seen: set[int] = set()
    for place, value in enumerate(values):
        at = f"{path}.values[{place}]"
        if operator == "In" and value == 0:
            errors.append(invalid(at, value, "must not be 0 for the In operator"))
        if value in seen:
            errors.append(duplicate(at, value))
        seen.add(value)
    if list(values) != sorted(values):
        errors.append(invalid(f"{path}.values", values, "must be ordered"))
    return errors


def _choice_mistakes(value: str, path: str, choices: tuple[str, ...]) -> Errors:
    if not value:
        quoted = " ".join(f'"{choice}"' for choice in choices)
        return [required(path, f"valid values: [{quoted}]")]
    return [] if value in choices else [not_supported(path, value, choices)]


def success_policy_mistakes(spec: Object, path: str) -> Errors:
    policy, path = spec["successPolicy"], f"{path}.successPolicy"
    if spec.get("completionMode") != "Indexed":
        return [invalid(path, go_names.SUCCESS_POLICY(policy), "requires indexed completion mode")]
    if spec.get("completions") is None:
        return []  # which is a mistake of its own
    rules, errors = policy.get("rules") or (), []
    if not rules:
        errors.append(
            required(f"{path}.rules", "at least one rules must be specified when the successPolicy is specified")
        )
    if len(rules) > MOST_RULES:
        errors.append(too_many(f"{path}.rules", len(rules), MOST_RULES))
    for place, rule in enumerate(rules):
        errors += _success_rule_mistakes(rule, f"{path}.rules[{place}]", spec["completions"])
    return errors


def _success_rule_mistakes(rule: Object, path: str, completions: int) -> Errors:
    count, named, total = rule.get("succeededCount"), rule.get("succeededIndexes"), 0
    errors: Errors = []
    if count is None and named is None:
        errors.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    if named is not None:
        at = f"{path}.succeededIndexes"
        if len(named) > LONGEST_INDEXES:
            errors.append(too_long(at, LONGEST_INDEXES))
        try:
            total = indexes.count(named, completions)
        except ValueError as error:
            errors.append(invalid(at, named, f"error parsing succeededIndexes: {error}"))
    if count is not None:
        at = f"{path}.succeededCount"
        errors += not_negative(count, at)
        if count > completions:
            sentence = f"must be less than or equal to {completions} (the number of specified completions)"
            errors.append(invalid(at, count, sentence))
        if named is not None and count > total:
            errors.append(
                invalid(
                    at,
                    count,
                    f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes"
                    " field)",
                )
            )
    return errors


def replacement_mistakes(spec: Object, path: str) -> Errors:
    policy, path = spec.get("podReplacementPolicy"), f"{path}.podReplacementPolicy"
    if policy is None:
        return []
    choices = _REPLACEMENTS if spec.get("podFailurePolicy") is None else ("Failed",)
    return [] if policy in choices else [not_supported(path, policy, choices)]
