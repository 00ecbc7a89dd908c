"""The LabelSelector inside objects (``matchLabels``, ``matchExpressions``): validation and printing."""

from __future__ import annotations

from seamark.errors import BadRequest, Object
from seamark.kinds.values.fields import Errors, forbidden, invalid, required
from seamark.kinds.values.metadata import label_value, qualified_name, validate_labels
from seamark.kinds.values.selectors import LabelSelector, from_label_selector


def label_selector_mistakes(selector: Object | None, path: str) -> Errors:
    """Everything that is wrong with a LabelSelector; None is valid."""
    if not selector:
        return []
    errors = validate_labels(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for i, expression in enumerate(selector.get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{i}]"
        errors += operator_mistakes(expression, at) + label_mistakes(expression, at)
    return errors


def operator_mistakes(expression: Object, at: str, *, unknown: bool = False) -> Errors:
    """Whether an expression has values where its operator needs some; ``unknown`` operators may be allowed."""
    operator, values = expression.get("operator", ""), expression.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            return [required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")]
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            sentence = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            return [forbidden(f"{at}.values", sentence)]
    elif not unknown:
        return [invalid(f"{at}.operator", operator, "not a valid selector operator")]
    return []


def label_mistakes(expression: Object, at: str) -> Errors:
    """What is wrong with the key and the values of an expression about labels."""
    key = expression.get("key", "")
    errors = [invalid(f"{at}.key", key, sentence) for sentence in qualified_name(key)]
    for j, value in enumerate(expression.get("values") or ()):
        errors += [invalid(f"{at}.values[{j}]", value, sentence) for sentence in label_value(value)]
    return errors


def printed(selector: Object | None) -> Object | None:
    """The selector with its fields and labels in the order of Kubernetes' messages."""
    if selector is None:
        return None
    shown: Object = {}
    if labels := selector.get("matchLabels"):
        shown["matchLabels"] = dict(sorted(labels.items()))
    if expressions := selector.get("matchExpressions"):
        fields = ("key", "operator", "values")
        shown["matchExpressions"] = [{f: e[f] for f in fields if f in e} for e in expressions]
    return shown


def readable(selector: Object | None) -> LabelSelector | None:
    """The parsed selector, or None if it is invalid."""
    try:
        return from_label_selector(selector)
    except BadRequest:
        return None
