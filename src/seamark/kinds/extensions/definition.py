"""CustomResourceDefinition: a kind that users define."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from seamark.errors import Object
from seamark.kinds.counted import CountedKind
from seamark.kinds.extensions import schemas, versions
from seamark.kinds.extensions.formats import KNOWN
from seamark.kinds.extensions.names import APPROVAL, FINALIZER, TERMINATING, is_protected, is_true, with_condition
from seamark.kinds.kind import Column
from seamark.kinds.language.scalars import check_depth
from seamark.kinds.registration.webhook_client import client_mistakes, default_client
from seamark.kinds.resource import DEFINITIONS
from seamark.kinds.subresource import status_of
from seamark.kinds.values.fields import Errors, forbidden, immutable, invalid, not_supported, required
from seamark.kinds.values.metadata import dns_1035_label, dns_subdomain

_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"
_NOT_WEBHOOK = "should not be set when strategy is not set to Webhook"
_KEEP = "{0} was previously a storage version, and must remain in spec.versions until a storage migration ensures no "
_KEEP += "data remains persisted in {0} and removes {0} from status.storedVersions"


def kind_mistakes(name: str) -> list[str]:
    """Sentences about what is wrong with the name of a kind."""
    return [f"may have mixed case, but should otherwise match: {m}" for m in dns_1035_label(name.lower())]


class DefinitionKind(CountedKind):
    resource = DEFINITIONS
    singular = "customresourcedefinition"
    shape_name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
    short_names = ("crd", "crds")
    categories = ("api-extensions",)
    subresources = (status_of("CustomResourceDefinition"),)
    unconditional_update: ClassVar[bool] = False
    columns = (
        Column("Name", format="name"),
        Column("Scope"),
        Column("Versions"),
        Column("Created At", "date"),
        Column("Group", priority=1),
        Column("Kind", priority=1),
        Column("ShortNames", priority=1),
        Column("Established", "boolean", priority=1),
    )

    def conform(self, value: Any) -> tuple[Object, list[str]]:
        check_depth(value)  # schemas contain schemas
        obj, unknown = super().conform(value)
        for _, schema in _schemas(obj):
            schemas.normal(schema)
        return obj, unknown

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        names = spec["names"]
        if names.get("kind"):
            names.setdefault("singular", names["kind"].lower())
            names.setdefault("listKind", f"{names['kind']}List")
        conversion = spec.setdefault("conversion", {"strategy": "None"})
        conversion["strategy"] = conversion.get("strategy") or "None"
        if client := (conversion.get("webhook") or {}).get("clientConfig"):
            default_client(client)

    def prepare_create(self, obj: Object) -> None:
        super().prepare_create(obj)
        storage = _storage(obj)
        obj["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": [storage] if storage else None,
        }

    def prepare_update(self, obj: Object, old: Object) -> None:
        super().prepare_update(obj, old)
        known = obj["status"].get("storedVersions") or []
        storage = _storage(obj)
        if storage and storage not in known:
            obj["status"] = {**obj["status"], "storedVersions": [*known, storage]}

    @property
    def costly(self) -> bool:
        return True  # schemas may be large, and their patterns costly to compile

    def validate(self, obj: Object) -> Errors:
        spec = obj["spec"]
        errors: Errors = []
        wanted = f"{spec['names'].get('plural', '')}.{spec.get('group', '')}"
        for field in ("generateName", "name"):
            name = obj["metadata"].get(field, "")
            if name and name != wanted:
                errors.append(invalid(f"metadata.{field}", name, 'must be spec.names.plural+"."+spec.group'))
        return errors + self._validate(obj)

    def _validate(self, obj: Object, before: Sequence[Any] = ()) -> Errors:
        """``before`` are the versions that the definition had."""
        spec = obj["spec"]
        errors = _group_mistakes(obj) + _scope_mistakes(spec) + _name_mistakes(spec["names"], "spec.names")
        if spec.get("preserveUnknownFields"):
            instead = "set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
            detail = f"cannot set to true, {instead}"
            errors.append(invalid("spec.preserveUnknownFields", True, detail))
        given = spec.get("versions") or []
        return errors + versions.mistakes(given, before) + _conversion_mistakes(spec) + _stored_mistakes(obj)

    def validate_update(self, obj: Object, old: Object) -> Errors:
        spec, before = obj["spec"], old["spec"]
        errors: Errors = []
        kept = [("group",), ("names", "plural")]
        if is_true(old, "Established"):
            kept += [("scope",), ("names", "kind")]
        for path in kept:
            new, was = spec, before
            for step in path:
                new, was = new.get(step, ""), was.get(step, "")
            if new != was:
                errors.append(immutable(f"spec.{'.'.join(path)}", new))
        return errors + self._validate(obj, before.get("versions") or ())

    def validate_status(self, obj: Object, old: Object) -> Errors:
        accepted = (obj.get("status") or {}).get("acceptedNames") or {}
        return _name_mistakes(accepted, "status.acceptedNames", needed=False)

    def default_status(self, obj: Object) -> None:
        """The spec is kept from the old object, which has its defaults."""

    # --- deletion ------------------------------------------------------------------------------------

    def begin_deletion(self, obj: Object) -> None:
        """Hold the definition until its instances are gone."""
        meta, status = obj["metadata"], obj.get("status") or {}
        meta["finalizers"] = [*(f for f in meta.get("finalizers") or () if f != FINALIZER), FINALIZER]
        conditions = with_condition(status.get("conditions"), TERMINATING, meta["deletionTimestamp"])
        obj["status"] = {**status, "conditions": conditions}

    def held(self, obj: Object) -> bool:
        meta = obj["metadata"]
        return "deletionTimestamp" not in meta or bool(meta.get("finalizers"))

    # --- what people see -----------------------------------------------------------------------------

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        said: dict[str, None] = {}
        for _, schema in _schemas(obj):
            for word in _formats(schema):
                said[f'unrecognized format "{word}"'] = None
        return list(said)

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec = obj["metadata"], obj["spec"]
        shown = ",".join(
            version["name"] + ("(storage)" if version.get("storage") else "") for version in spec.get("versions") or ()
        )
        names = spec["names"]
        short = ",".join(names.get("shortNames") or ())
        created, established = meta.get("creationTimestamp"), is_true(obj, "Established")
        return [meta["name"], spec["scope"], shown, created, spec["group"], names["kind"], short, established]


def _storage(obj: Object) -> str:
    return next((version["name"] for version in obj["spec"].get("versions") or () if version.get("storage")), "")


def _schemas(obj: Object) -> Iterator[tuple[str, Object]]:
    for index, version in enumerate(obj["spec"].get("versions") or ()):
        if schema := (version.get("schema") or {}).get("openAPIV3Schema"):
            yield f"spec.versions[{index}].schema.openAPIV3Schema", schema


def _formats(schema: Object) -> Iterator[str]:
    """Formats that mean nothing."""
    word = schema.get("format", "")
    if word and word not in KNOWN and word.replace("-", "") not in KNOWN:
        yield word
    for _, inner in schemas.below(schema):
        yield from _formats(inner)


# --- validation ---------------------------------------------------------------------------------------


def _group_mistakes(obj: Object) -> Errors:
    group = obj["spec"].get("group", "")
    if not group:
        return [required("spec.group")]
    errors = [invalid("spec.group", group, mistake) for mistake in dns_subdomain(group)]
    if not errors and "." not in group:
        errors.append(invalid("spec.group", group, "should be a domain with at least one dot"))
    if is_protected(group):
        at = f"metadata.annotations[{APPROVAL}]"
        needs = f'protected groups must have approval annotation "{APPROVAL}"'
        text = (obj["metadata"].get("annotations") or {}).get(APPROVAL, "")
        if not text:
            errors.append(required(at, f"{needs}, {_SEE}"))
        elif not text.startswith("unapproved") and not (urlsplit(text).scheme and urlsplit(text).netloc):
            detail = f'{needs} with either a URL or a reason starting with "unapproved", {_SEE}'
            errors.append(invalid(at, text, detail))
    return errors


def _scope_mistakes(spec: Object) -> Errors:
    scope = spec.get("scope", "")
    if not scope:
        return [required("spec.scope")]
    return [] if scope in ("Cluster", "Namespaced") else [not_supported("spec.scope", scope, ("Cluster", "Namespaced"))]


def _name_mistakes(names: Object, path: str, *, needed: bool = True) -> Errors:
    errors: Errors = []
    for field, check in (
        ("plural", dns_1035_label),
        ("singular", dns_1035_label),
        ("kind", kind_mistakes),
        ("listKind", kind_mistakes),
    ):
        name, at = names.get(field, ""), f"{path}.{field}"
        if name:
            errors += (invalid(at, name, mistake) for mistake in check(name))
        elif needed:
            errors.append(required(at))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        errors.append(invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same"))
    for field in ("shortNames", "categories"):
        for index, name in enumerate(names.get(field) or ()):
            errors += (invalid(f"{path}.{field}[{index}]", name, mistake) for mistake in dns_1035_label(name))
    return errors


def _conversion_mistakes(spec: Object) -> Errors:
    conversion = spec["conversion"]
    strategy, hook = conversion["strategy"], conversion.get("webhook") or {}
    at = "spec.conversion"
    client, known = hook.get("clientConfig"), hook.get("conversionReviewVersions")
    if strategy not in ("None", "Webhook"):
        return [not_supported(f"{at}.strategy", strategy, ("None", "Webhook"))]
    if strategy == "None":
        return [
            forbidden(f"{at}.{field}", _NOT_WEBHOOK)
            for field, value in (("webhookClientConfig", client), ("conversionReviewVersions", known))
            if value
        ]
    errors: Errors = []
    if client is None:
        errors.append(required(f"{at}.webhookClientConfig", "required when strategy is set to Webhook"))
    else:
        errors += client_mistakes(client, f"{at}.webhookClientConfig")
    if not known:
        errors.append(required(f"{at}.conversionReviewVersions"))
        return errors
    for index, name in enumerate(known):
        place = f"{at}.conversionReviewVersions[{index}]"
        wrong = ["duplicate version"] if name in known[:index] else dns_1035_label(name)
        errors += (invalid(place, name, mistake) for mistake in wrong)
    if not {"v1", "v1beta1"} & set(known):
        errors.append(invalid(f"{at}.conversionReviewVersions", known, "must include at least one of v1, v1beta1"))
    return errors


def _stored_mistakes(obj: Object) -> Errors:
    stored = (obj.get("status") or {}).get("storedVersions") or []
    given = obj["spec"].get("versions") or []
    if not stored:
        return [invalid("status.storedVersions", None, "must have at least one stored version")]
    errors: Errors = []
    for version in given:
        if version.get("storage") and version["name"] not in stored:
            errors.append(invalid("status.storedVersions", stored, f"must have the storage version {version['name']}"))
    names = {version["name"] for version in given}
    for index, name in enumerate(stored):
        if name not in names:
            detail = f"missing from spec.versions; {_KEEP.format(name)}"
            errors.append(invalid(f"status.storedVersions[{index}]", name, detail))
    return errors


DEFINITION = DefinitionKind()
