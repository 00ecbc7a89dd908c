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
        operator, values = expression.get("operator", ""), expression.get("values") or []
        if operator in ("In", "NotIn"):
            if not values:
                errors.append(required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                sentence = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(forbidden(f"{at}.values", sentence))
        else:
            errors.append(invalid(f"{at}.operator", operator, "not a valid selector operator"))
        key = expression.get("key", "")
        errors += [invalid(f"{at}.key", key, sentence) for sentence in qualified_name(key)]
        for j, value in enumerate(values):
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
