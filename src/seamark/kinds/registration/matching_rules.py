"""Which requests a webhook or an admission policy is asked about: operations, groups, versions and resources."""

from __future__ import annotations

from collections.abc import Callable

from seamark.errors import Object
from seamark.kinds.registration.conditions import expression_mistakes
from seamark.kinds.values.fields import Errors, duplicate, invalid, not_supported, required
from seamark.kinds.values.metadata import qualified_name

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_ALONE = {"apiGroups": "API groups", "apiVersions": "API versions"}

# What is wrong with an expression in this place.
Judge = Callable[[str, str], Errors]


def default_rule(rule: Object) -> None:
    rule.setdefault("scope", "*")


def rule_mistakes(rule: Object, at: str) -> Errors:
    """What is wrong with one rule."""
    errors: Errors = []
    operations = rule.get("operations") or []
    if not operations:
        errors.append(required(f"{at}.operations"))
    elif "*" in operations and len(operations) > 1:
        sentence = "if '*' is present, must not specify other operations"
        errors.append(invalid(f"{at}.operations", operations, sentence))
    unknown = [(i, word) for i, word in enumerate(operations) if word not in _OPERATIONS]
    errors += [not_supported(f"{at}.operations[{i}]", word, _OPERATIONS) for i, word in unknown]
    for field, said in _ALONE.items():
        words = rule.get(field) or []
        if not words:
            errors.append(required(f"{at}.{field}"))
        elif "*" in words and len(words) > 1:
            sentence = f"if '*' is present, must not specify other {said}"
            errors.append(invalid(f"{at}.{field}", words, sentence))
        if field == "apiVersions":
            errors += [required(f"{at}.{field}[{i}]") for i, word in enumerate(words) if not word]
    errors += _resource_mistakes(rule.get("resources") or [], f"{at}.resources")
    if (scope := rule.get("scope")) is not None and scope not in _SCOPES:
        errors.append(not_supported(f"{at}.scope", scope, _SCOPES))
    return errors


def _resource_mistakes(resources: list[str], at: str) -> Errors:
    """A star must not be listed together with words that it includes."""
    if not resources:
        return [required(at)]
    errors: Errors = []
    all_of: set[str] = set()  # resources with all of their subresources
    any_of: set[str] = set()  # subresources of any resource
    for i, word in enumerate(resources):
        path = f"{at}[{i}]"
        if not word:
            errors.append(required(path))
            continue
        if word == "*/*":
            if len(resources) > 1:
                errors.append(invalid(at, resources, "if '*/*' is present, must not specify other resources"))
            continue
        resource, slash, sub = word.partition("/")
        if not slash:
            continue
        if resource in all_of:
            errors.append(invalid(path, word, f"if '{resource}/*' is present, must not specify {word}"))
        if sub in any_of:
            errors.append(invalid(path, word, f"if '*/{sub}' is present, must not specify {word}"))
        if sub == "*":
            all_of.add(resource)
        if resource == "*":
            any_of.add(sub)
    plain = [word for word in resources if word and "/" not in word]
    if "*" in plain and len(plain) > 1:
        sentence = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(at, resources, sentence))
    return errors


def condition_mistakes(conditions: list[Object], at: str, judge: Judge = expression_mistakes) -> Errors:
    """What is wrong with match conditions and their expressions, about which ``judge`` decides."""
    errors: Errors = []
    seen: set[str] = set()
    for i, condition in enumerate(conditions):
        path, name = f"{at}[{i}]", condition.get("name", "")
        if not (expression := (condition.get("expression") or "").strip()):
            errors.append(required(f"{path}.expression"))
        else:
            errors += judge(expression, f"{path}.expression")
        if not name:
            errors.append(required(f"{path}.name"))
        else:
            errors += [invalid(f"{path}.name", name, sentence) for sentence in qualified_name(name)]
            if name in seen:
                errors.append(duplicate(f"{path}.name", name))
            seen.add(name)
    return errors
