"""ValidatingWebhookConfiguration and MutatingWebhookConfiguration: whom the API server asks about writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.counted import CountedKind
from seamark.kinds.kind import Column
from seamark.kinds.registration.matching_rules import condition_mistakes, default_rule, rule_mistakes
from seamark.kinds.registration.webhook_client import client_mistakes, default_client
from seamark.kinds.resource import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from seamark.kinds.values.fields import Errors, duplicate, invalid, not_supported, repeated, required
from seamark.kinds.values.label_selector import label_selector_mistakes
from seamark.kinds.values.metadata import dns_1035_label, dns_subdomain
from seamark.kinds.values.times import age

_VERSIONS = ("v1", "v1beta1")  # of AdmissionReview
_DEFAULTS: dict[str, Any] = {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10}
_CHOICES = {
    "failurePolicy": ("Fail", "Ignore"),
    "matchPolicy": ("Equivalent", "Exact"),
    "reinvocationPolicy": ("IfNeeded", "Never"),
}
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_LONGEST_TIMEOUT = 30


class _WebhookConfigurationKind(CountedKind):
    categories = ("api-extensions",)
    columns = (Column("Name", format="name"), Column("Webhooks", "integer"), Column("Age"))
    unconditional_update: ClassVar[bool] = False
    counted: ClassVar[tuple[str, ...]] = ("webhooks",)
    usual: ClassVar[dict[str, Any]] = _DEFAULTS

    def default(self, obj: Object) -> None:
        for webhook in obj.get("webhooks") or ():
            for field, value in self.usual.items():
                webhook.setdefault(field, value)
            for field in ("namespaceSelector", "objectSelector"):
                webhook.setdefault(field, {})
            default_client(webhook.get("clientConfig") or {})
            for rule in webhook.get("rules") or ():
                default_rule(rule)

    @property
    def costly(self) -> bool:
        return True  # expressions are compiled

    def validate(self, obj: Object) -> Errors:
        errors: Errors = []
        seen: set[str] = set()
        for i, webhook in enumerate(obj.get("webhooks") or ()):
            at, name = f"webhooks[{i}]", webhook.get("name", "")
            errors += _webhook_mistakes(webhook, at)
            errors += _version_mistakes(webhook.get("admissionReviewVersions") or [], f"{at}.admissionReviewVersions")
            if name and name in seen:
                errors.append(duplicate(f"{at}.name", name))
            seen.add(name)
        return errors

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta = obj["metadata"]
        return [meta.get("name", ""), len(obj.get("webhooks") or ()), age(now, meta.get("creationTimestamp"))]


class ValidatingWebhookKind(_WebhookConfigurationKind):
    resource = VALIDATING_WEBHOOKS
    singular = "validatingwebhookconfiguration"
    shape_name = "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration"


class MutatingWebhookKind(_WebhookConfigurationKind):
    resource = MUTATING_WEBHOOKS
    singular = "mutatingwebhookconfiguration"
    shape_name = "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration"
    usual: ClassVar[dict[str, Any]] = {**_DEFAULTS, "reinvocationPolicy": "Never"}


def _webhook_mistakes(webhook: Object, at: str) -> Errors:
    errors = _name_mistakes(webhook.get("name", ""), f"{at}.name")
    for i, rule in enumerate(webhook.get("rules") or ()):
        errors += rule_mistakes(rule, f"{at}.rules[{i}]")
    for field, choices in _CHOICES.items():
        if (word := webhook.get(field)) is not None and word not in choices:
            errors.append(not_supported(f"{at}.{field}", word, choices))
    effects = webhook.get("sideEffects")
    if effects is None:
        errors.append(required(f"{at}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}"))
    elif effects not in _SIDE_EFFECTS:
        errors.append(not_supported(f"{at}.sideEffects", effects, _SIDE_EFFECTS))
    seconds = webhook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= _LONGEST_TIMEOUT:
        sentence = f"the timeout value must be between 1 and {_LONGEST_TIMEOUT} seconds"
        errors.append(invalid(f"{at}.timeoutSeconds", seconds, sentence))
    for field in ("namespaceSelector", "objectSelector"):
        errors += label_selector_mistakes(webhook.get(field), f"{at}.{field}")
    errors += client_mistakes(webhook.get("clientConfig") or {}, f"{at}.clientConfig")
    return errors + condition_mistakes(webhook.get("matchConditions") or [], f"{at}.matchConditions")


def _name_mistakes(name: str, at: str) -> Errors:
    if not name:
        return [required(at)]
    if wrong := dns_subdomain(name):
        return [invalid(at, name, sentence) for sentence in wrong]
    if len(name.split(".")) < 3:
        return [invalid(at, name, "should be a domain with at least three segments separated by dots")]
    return []


def _version_mistakes(versions: list[str], at: str) -> Errors:
    if not versions:
        return [required(at, f"must specify one of {', '.join(_VERSIONS)}")]
    errors: Errors = []
    again = set(repeated(versions))
    for i, version in enumerate(versions):
        if i in again:
            errors.append(invalid(f"{at}[{i}]", version, "duplicate version"))
        else:
            errors += [invalid(f"{at}[{i}]", version, sentence) for sentence in dns_1035_label(version)]
    if not set(versions) & set(_VERSIONS):
        errors.append(invalid(at, versions, f"must include at least one of {', '.join(_VERSIONS)}"))
    return errors


VALIDATING_WEBHOOK = ValidatingWebhookKind()
MUTATING_WEBHOOK = MutatingWebhookKind()
