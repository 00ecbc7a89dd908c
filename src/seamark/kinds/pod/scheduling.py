"""Validation of the fields that decide where a Pod may run: tolerations, affinity, spreading, gates."""

from __future__ import annotations

from seamark.errors import Object
from seamark.kinds.values.fields import Errors, duplicate, forbidden, invalid, not_supported, repeated, required
from seamark.kinds.values.label_selector import label_selector_mistakes
from seamark.kinds.values.metadata import dns_label, dns_subdomain, label_value, qualified_name

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
# The tolerations that every Pod gets; they need no validation.
USUAL_TOLERATIONS: tuple[Object, ...] = tuple(
    {"key": f"node.kubernetes.io/{trouble}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for trouble in ("not-ready", "unreachable")
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def toleration_mistakes(tolerations: list[Object], path: str) -> Errors:
    errors: Errors = []
    for i, toleration in enumerate(tolerations):
        if toleration in USUAL_TOLERATIONS:
            continue
        get = toleration.get
        key, operator, value, effect = get("key", ""), get("operator", ""), get("value", ""), get("effect", "")
        if key and (sentences := qualified_name(key)):
            errors += [invalid(f"{path}[{i}].key", key, sentence) for sentence in sentences]
        if not key and operator != "Exists":
            sentence = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(invalid(f"{path}[{i}].operator", operator, sentence))
        if get("tolerationSeconds") is not None and effect != "NoExecute":
            sentence = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(invalid(f"{path}[{i}].effect", effect, sentence))
        if operator in ("Equal", ""):
            if sentences := label_value(value):
                errors.append(invalid(f"{path}[{i}].operator", value, ";".join(sentences)))
        elif operator == "Exists":
            if value:
                sentence = "value must be empty when `operator` is 'Exists'"
                errors.append(invalid(f"{path}[{i}].operator", value, sentence))
        else:
            # The operators Lt and Gt are an alpha feature; Kubernetes names them only to those who use them.
            choices = ("Equal", "Exists", "Lt", "Gt") if operator in ("Lt", "Gt") else ("Equal", "Exists")
            errors.append(not_supported(f"{path}[{i}].operator", operator, choices))
        if effect and effect not in TAINT_EFFECTS:
            errors.append(not_supported(f"{path}[{i}].effect", effect, TAINT_EFFECTS))
    return errors


def gate_mistakes(gates: list[Object], path: str) -> Errors:
    errors: Errors = []
    seen = set()
    for i, gate in enumerate(gates):
        name = gate.get("name", "")
        errors += [invalid(f"{path}[{i}]", name, sentence) for sentence in qualified_name(name)]
        if name in seen:
            errors.append(duplicate(f"{path}[{i}]", name))
        seen.add(name)
    return errors


# --- affinity ------------------------------------------------------------------------------------------------


def affinity_mistakes(affinity: Object, path: str) -> Errors:
    errors: Errors = []
    if (node := affinity.get("nodeAffinity")) is not None:
        errors += _node_affinity_mistakes(node, f"{path}.nodeAffinity")
    for field in ("podAffinity", "podAntiAffinity"):
        if (pods := affinity.get(field)) is not None:
            errors += _pod_affinity_mistakes(pods, f"{path}.{field}")
    return errors


def _weight_mistakes(term: Object, path: str) -> Errors:
    weight = term.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _node_affinity_mistakes(affinity: Object, path: str) -> Errors:
    errors: Errors = []
    if (selector := affinity.get(_REQUIRED)) is not None:
        errors += node_selector_mistakes(selector, f"{path}.{_REQUIRED}")
    for i, term in enumerate(affinity.get(_PREFERRED) or ()):
        at = f"{path}.{_PREFERRED}[{i}]"
        errors += _weight_mistakes(term, at)
        errors += _node_term_mistakes(term.get("preference") or {}, f"{at}.preference", with_values=False)
    return errors


def node_selector_mistakes(selector: Object, path: str) -> Errors:
    """What is wrong with a selector of nodes by terms, of a Pod, a volume or a device."""
    at, terms = f"{path}.nodeSelectorTerms", selector.get("nodeSelectorTerms")
    errors = [] if terms else [required(at, "must have at least one node selector term")]
    for i, term in enumerate(terms or ()):
        errors += _node_term_mistakes(term, f"{at}[{i}]", with_values=True)
    return errors


def _node_term_mistakes(term: Object, path: str, *, with_values: bool) -> Errors:
    """``with_values``: also validate the values; Kubernetes does so for required terms, not for preferred ones."""
    errors: Errors = []
    for i, expression in enumerate(term.get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{i}]"
        operator, values, key = (
            expression.get("operator", ""),
            expression.get("values") or [],
            expression.get("key", ""),
        )
        if operator in ("In", "NotIn"):
            if not values:
                errors.append(required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                sentence = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(forbidden(f"{at}.values", sentence))
        elif operator in ("Gt", "Lt"):
            if len(values) != 1:
                sentence = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                errors.append(required(f"{at}.values", sentence))
        else:
            errors.append(invalid(f"{at}.operator", operator, "not a valid selector operator"))
        errors += [invalid(f"{at}.key", key, sentence) for sentence in qualified_name(key)]
        if with_values:
            for j, value in enumerate(values):
                errors += [invalid(f"{at}.values[{j}]", value, sentence) for sentence in label_value(value)]
    for i, expression in enumerate(term.get("matchFields") or ()):
        errors += _node_field_mistakes(expression, f"{path}.matchFields[{i}]")
    return errors


def _node_field_mistakes(expression: Object, path: str) -> Errors:
    errors: Errors = []
    operator, values, key = expression.get("operator", ""), expression.get("values") or [], expression.get("key", "")
    if operator not in ("In", "NotIn"):
        errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    elif len(values) != 1:
        sentence = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(f"{path}.values", sentence))
    if key != "metadata.name":
        errors.append(invalid(f"{path}.key", key, "not a valid field selector key"))
        return errors
    for i, value in enumerate(values):
        errors += [invalid(f"{path}.values[{i}]", value, sentence) for sentence in dns_subdomain(value)]
    return errors


def _pod_affinity_mistakes(affinity: Object, path: str) -> Errors:
    errors: Errors = []
    for i, term in enumerate(affinity.get(_REQUIRED) or ()):
        errors += _pod_term_mistakes(term, f"{path}.{_REQUIRED}[{i}]")
    for i, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        at = f"{path}.{_PREFERRED}[{i}]"
        errors += _weight_mistakes(weighted, at)
        errors += _pod_term_mistakes(weighted.get("podAffinityTerm") or {}, f"{at}.podAffinityTerm")
    return errors


def _pod_term_mistakes(term: Object, path: str) -> Errors:
    selector, topology = term.get("labelSelector"), term.get("topologyKey", "")
    errors = label_selector_mistakes(selector, f"{path}.labelSelector")
    errors += label_selector_mistakes(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces") or ():
        errors += [invalid(f"{path}.namespace", name, sentence) for sentence in dns_label(name)]
    errors += _label_key_mistakes(term, selector, path)
    if not topology:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    return errors + [invalid(f"{path}.topologyKey", topology, sentence) for sentence in qualified_name(topology)]


def _label_key_mistakes(term: Object, selector: Object | None, path: str) -> Errors:
    """Validate ``matchLabelKeys`` and ``mismatchLabelKeys``, which have been merged into the selector before."""
    errors: Errors = []
    matched, mismatched = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    for field, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", mismatched)):
        if keys and selector is None:
            errors.append(forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set"))
            continue
        for i, key in enumerate(keys):
            errors += [invalid(f"{path}.{field}[{i}]", key, sentence) for sentence in qualified_name(key)]
    seen = set((selector or {}).get("matchLabels") or ())
    places = {key: i for i, key in reversed(list(enumerate(matched)))}
    for expression in (selector or {}).get("matchExpressions") or ():
        key = expression.get("key", "")
        if key in places and key in seen:
            sentence = "exists in both matchLabelKeys and labelSelector"
            errors.append(invalid(f"{path}[{places[key]}]", key, sentence))
        seen.add(key)
    both = set(matched) & set(mismatched)
    for i, key in enumerate(matched):
        if key in both:
            sentence = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid(f"{path}.matchLabelKeys[{i}]", key, sentence))
    return errors


# --- spreading -----------------------------------------------------------------------------------------------


def spread_mistakes(constraints: list[Object], path: str) -> Errors:
    errors: Errors = []
    # Kubernetes reports the earlier ones of those that are alike.
    pairs = [(each.get("topologyKey", ""), each.get("whenUnsatisfiable", "")) for each in constraints]
    later = {len(pairs) - 1 - i for i in repeated(reversed(pairs))}
    for i, constraint in enumerate(constraints):
        at, get = f"{path}[{i}]", constraint.get
        action, topology = get("whenUnsatisfiable", ""), get("topologyKey", "")
        if get("maxSkew", 0) <= 0:
            errors.append(invalid(f"{at}.maxSkew", get("maxSkew", 0), "must be greater than zero"))
        if not topology:
            errors.append(required(f"{at}.topologyKey", "can not be empty"))
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            errors.append(not_supported(f"{at}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway")))
        if i in later:
            errors.append(duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{topology}, {action}}}"))
        if (domains := get("minDomains")) is not None:
            if domains <= 0:
                errors.append(invalid(f"{at}.minDomains", domains, "must be greater than zero"))
            if action != "DoNotSchedule":
                sentence = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                errors.append(invalid(f"{at}.minDomains", domains, sentence))
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if (policy := get(field)) is not None and policy not in ("Honor", "Ignore"):
                errors.append(not_supported(f"{at}.{field}", policy, ("Honor", "Ignore")))
        errors += _label_key_mistakes(constraint, get("labelSelector"), at)
        errors += label_selector_mistakes(get("labelSelector"), f"{at}.labelSelector")
    return errors


def merge_label_keys(pod: Object) -> None:
    """Add the Pod's own labels to selectors, as ``matchLabelKeys`` and ``mismatchLabelKeys`` say; only at creation."""
    labels = pod["metadata"].get("labels") or {}
    for constraint in pod["spec"].get("topologySpreadConstraints") or ():
        _merge(constraint, labels)
    affinity = pod["spec"].get("affinity") or {}
    for field in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(field) or {}
        for term in terms.get(_REQUIRED) or ():
            _merge(term, labels)
        for weighted in terms.get(_PREFERRED) or ():
            _merge(weighted.get("podAffinityTerm") or {}, labels)


def _merge(term: Object, labels: dict[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is None:
        return
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in term.get(field) or ()
        if key in labels
    ]
    if added:
        selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *added]
