"""What is wrong with the capacity of a device that several claims share: which parts of it they may ask for."""

from __future__ import annotations

from seamark.errors import Object
from seamark.kinds.values.fields import Errors, duplicate, forbidden, invalid, repeated, required, too_many
from seamark.kinds.values.quantity import amount, measure, plus

_MOST_CHOICES = 10


def capacity_mistakes(capacity: Object, path: str, *, shared: bool) -> Errors:
    """``shared``: several claims may have a part of the device each."""
    policy = capacity.get("requestPolicy")
    if policy is None:
        return []
    at = f"{path}.requestPolicy"
    if not shared:
        return [forbidden(at, "allowMultipleAllocations must be true")]
    choices, span, chosen = policy.get("validValues") or [], policy.get("validRange"), policy.get("default")
    if choices and span is not None:
        sentence = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        return [forbidden(at, sentence)]
    whole = capacity.get("value", "0")
    if choices:
        if chosen is None:
            return [required(f"{at}.default", "required when validValues is defined")]
        return _choice_mistakes(choices, chosen, whole, f"{at}.validValues")
    if span is not None:
        if chosen is None:
            return [required(f"{at}.default", "required when validRange is defined")]
        return _range_mistakes(span, chosen, whole, f"{at}.validRange")
    return []


def _choice_mistakes(choices: list[str], chosen: str, whole: str, path: str) -> Errors:
    amounts = [amount(choice) for choice in choices]
    errors: Errors = []
    for i in range(1, len(choices)):
        if amounts[i - 1] > amounts[i]:
            errors.append(invalid(f"{path}[{i}]", choices[i], "values must be sorted in ascending order"))
    if len(choices) > _MOST_CHOICES:
        errors.append(too_many(path, len(choices), _MOST_CHOICES))
    else:
        for i, choice in enumerate(choices):
            if amounts[i] > amount(whole):
                errors.append(invalid(f"{path}[{i}]", choice, f"option is larger than capacity value: {whole}"))
        errors += [duplicate(f"{path}[{i}]", str(int(measure(choices[i])))) for i in repeated(amounts)]
    if amount(chosen) not in amounts:
        errors.append(invalid(path, chosen, "default value is not valid according to the requestPolicy"))
    return errors


def _range_mistakes(span: Object, chosen: str, whole: str, path: str) -> Errors:
    least, most, step = span.get("min"), span.get("max"), span.get("step")
    if least is None:
        return [required(f"{path}.min", "required when validRange is defined")]
    errors: Errors = []
    if amount(least) > amount(whole):
        errors.append(invalid(f"{path}.min", least, f"min is larger than capacity value: {whole}"))
    if amount(chosen) < amount(least):
        errors.append(invalid(f"{path}.default", chosen, f"default is less than min: {least}"))
    if most is not None:
        if amount(least) > amount(most):
            errors.append(invalid(f"{path}.max", least, f"min is larger than max: {most}"))
        if amount(most) > amount(whole):
            errors.append(invalid(f"{path}.max", most, f"max is larger than capacity value: {whole}"))
        if amount(chosen) > amount(most):
            errors.append(invalid(f"{path}.default", chosen, f"default is more than max: {most}"))
    return errors + (_step_mistakes(step, least, chosen, most, whole, path) if step is not None else [])


def _step_mistakes(step: str, least: str, chosen: str, most: str | None, whole: str, path: str) -> Errors:
    if amount(step) <= 0:
        return [invalid(f"{path}.step", step, "must be greater than zero")]
    errors: Errors = []
    if measure(least) + measure(step) > measure(whole):
        sentence = f"one step {plus(least, step)} is larger than capacity value: {whole}"
        errors.append(invalid(f"{path}.step", step, sentence))
    for value in (chosen, most):
        if value is not None and (_parts(value) - _parts(least)) % _parts(step):
            sentence = f"value is not a multiple of a given step ({step}) from ({least})"
            errors.append(invalid(f"{path}.step", value, sentence))
    return errors


def _parts(quantity: str) -> int:
    """A quantity in billionths: whole numbers can be divided however large they are."""
    return int(measure(quantity).scaleb(9))
