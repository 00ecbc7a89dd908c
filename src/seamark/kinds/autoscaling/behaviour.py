"""How fast a HorizontalPodAutoscaler follows its metrics."""

from __future__ import annotations

from typing import Any

from seamark.errors import Object
from seamark.kinds.values.fields import Errors, invalid, not_supported, required
from seamark.kinds.values.quantity import amount

_PERCENT = {"type": "Percent", "value": 100, "periodSeconds": 15}
_PODS = {"type": "Pods", "value": 4, "periodSeconds": 15}
_DEFAULTS: dict[str, Object] = {
    "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [_PODS, _PERCENT]},
    "scaleDown": {"selectPolicy": "Max", "policies": [_PERCENT]},
}
_LONGEST_WINDOW = 3600
_LONGEST_PERIOD = 1800
_SELECTIONS = ("Disabled", "Max", "Min")
_TYPES = ("Percent", "Pods")


def default_behaviour(behaviour: Object) -> None:
    """Both directions get their usual rules where a user has not set them."""
    for direction, usual in _DEFAULTS.items():
        rules = behaviour.setdefault(direction, {})
        for field, value in usual.items():
            if rules.get(field) is None:
                rules[field] = [dict(policy) for policy in value] if field == "policies" else value


def behaviour_mistakes(behaviour: Object, path: str) -> Errors:
    errors: Errors = []
    for direction in _DEFAULTS:
        if (rules := behaviour.get(direction)) is not None:
            errors += _rules_mistakes(rules, f"{path}.{direction}")
    return errors


def _rules_mistakes(rules: Object, path: str) -> Errors:
    errors: Errors = []
    window, selection, tolerance = (rules.get(f) for f in ("stabilizationWindowSeconds", "selectPolicy", "tolerance"))
    if window is not None and window < 0:
        errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero"))
    if window is not None and window > _LONGEST_WINDOW:
        sentence = f"must be less than or equal to {_LONGEST_WINDOW}"
        errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, sentence))
    if selection is not None and selection not in _SELECTIONS:
        errors.append(not_supported(f"{path}.selectPolicy", selection, _SELECTIONS))
    policies = rules.get("policies") or []
    if not policies:
        errors.append(required(f"{path}.policies", "must specify at least one Policy"))
    for i, policy in enumerate(policies):
        errors += _policy_mistakes(policy, f"{path}.policies[{i}]")
    if tolerance is not None and amount(tolerance) < 0:
        errors.append(invalid(f"{path}.tolerance", tolerance, "must be greater or equal to zero"))
    return errors


def _policy_mistakes(policy: Object, path: str) -> Errors:
    errors: Errors = []
    value: Any = policy.get("value", 0)
    period = policy.get("periodSeconds", 0)
    if policy.get("type") not in _TYPES:
        errors.append(not_supported(f"{path}.type", policy.get("type", ""), _TYPES))
    if value <= 0:
        errors.append(invalid(f"{path}.value", value, "must be greater than zero"))
    if period <= 0:
        errors.append(invalid(f"{path}.periodSeconds", period, "must be greater than zero"))
    if period > _LONGEST_PERIOD:
        errors.append(invalid(f"{path}.periodSeconds", period, f"must be less than or equal to {_LONGEST_PERIOD}"))
    return errors
