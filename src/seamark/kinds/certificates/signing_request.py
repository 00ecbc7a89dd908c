"""CertificateSigningRequest: asks a signer for a certificate.

Its spec never changes.  Conditions that approve or deny it are written through ``approval`` only, the certificate and
all other conditions through ``status`` only.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.certificates import pkcs10, signers
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import SIGNING_REQUESTS
from seamark.kinds.subresource import CHANGE, Part, Paths, status_of
from seamark.kinds.values.fields import (
    Errors,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    repeated,
    required,
    too_long,
)
from seamark.kinds.values.metadata import dns_label, dns_subdomain, path_segment
from seamark.kinds.values.times import age, duration

SHORTEST_SECONDS = 600
USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
_DECISIONS = ("Approved", "Denied")
_FINAL = (*_DECISIONS, "Failed")
_CONDITIONS = "status.conditions"


class Approval(Part, frozen=True):
    """Approves or denies: only conditions change."""

    reset: Paths = (("spec",), ("status", "certificate"))

    def prepare(self, kind: Kind, obj: Object, old: Object) -> None:
        obj["spec"] = old["spec"]
        status = {key: value for key, value in (obj.get("status") or {}).items() if key != "certificate"}
        if "certificate" in old["status"]:
            status["certificate"] = old["status"]["certificate"]
        obj["status"] = status

    def validate(self, kind: Kind, obj: Object, old: Object) -> Errors:
        return mistakes(obj) + change_mistakes(obj, old)


class SigningRequestKind(Kind):
    resource = SIGNING_REQUESTS
    singular = "certificatesigningrequest"
    shape_name = "io.k8s.api.certificates.v1.CertificateSigningRequest"
    short_names = ("csr",)
    subresources = (
        Approval("approval", CHANGE, "CertificateSigningRequest"),
        status_of("CertificateSigningRequest"),
    )
    columns = (
        Column("Name", format="name"),
        Column("Age"),
        Column("SignerName"),
        Column("Requestor"),
        Column("RequestedDuration"),
        Column("Condition"),
    )
    field_names = ("spec.signerName",)

    def validate_name(self, name: str, *, prefix: bool) -> list[str]:
        return path_segment(name, prefix=prefix)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> Errors:
        return mistakes(obj, new=True)

    def prepare_update(self, obj: Object, old: Object) -> None:
        obj["spec"], obj["status"] = old["spec"], old["status"]

    def validate_update(self, obj: Object, old: Object) -> Errors:
        return mistakes(obj)

    def validate_status(self, obj: Object, old: Object) -> Errors:
        errors = mistakes(obj) + change_mistakes(obj, old) + decision_mistakes(obj, old)
        before, now = old["status"].get("certificate", ""), (obj.get("status") or {}).get("certificate", "")
        if now != before:
            if before:
                errors.append(forbidden("status.certificate", "updates may not modify existing certificate content"))
            elif sentence := pkcs10.certificate_mistake(b64decode(now)):
                errors.append(invalid("status.certificate", "<certificate data>", sentence))
        return errors

    def fields(self, obj: Object) -> Mapping[str, str]:
        return {"spec.signerName": obj["spec"].get("signerName", "")}

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec = obj["metadata"], obj["spec"]
        asked = spec.get("expirationSeconds")
        return [
            meta.get("name", ""),
            age(now, meta.get("creationTimestamp")),
            spec.get("signerName") or "<none>",
            spec.get("username", ""),
            "<none>" if asked is None else duration(asked),
            state(obj.get("status") or {}),
        ]


def types(status: Object) -> set[str]:
    """The types of its conditions."""
    return {each.get("type", "") for each in status.get("conditions") or ()}


def state(status: Object) -> str:
    """What became of a request, as ``kubectl get`` shows it."""
    found = types(status)
    words = ["Denied" if "Denied" in found else "Approved" if "Approved" in found else "Pending"]
    if "Failed" in found:
        words.append("Failed")
    if status.get("certificate"):
        words.append("Issued")
    return ",".join(words)


# --- what is wrong -------------------------------------------------------------------------------------


def mistakes(obj: Object, *, new: bool = False) -> Errors:
    """What is wrong with an object; the request itself never changes, so it is looked at only once."""
    spec, errors = obj["spec"], Errors()
    if new:
        try:
            pkcs10.parsed(b64decode(spec.get("request", "")))
        except pkcs10.RequestError as error:
            errors.append(invalid("spec.request", spec.get("request", ""), str(error)))
    usages = spec.get("usages") or []
    if not usages:
        errors.append(required("spec.usages"))
    paths = [f"spec.usages[{i}]" for i in range(len(usages))]
    errors += [
        not_supported(path, usage, USAGES) for path, usage in zip(paths, usages, strict=True) if usage not in USAGES
    ]
    errors += [duplicate(paths[i], usages[i]) for i in repeated(usages)]
    signer = spec.get("signerName", "")
    if new and signer == signers.LEGACY:
        sentence = "the legacy signerName is not allowed via this API version"
        errors.append(invalid("spec.signerName", signer, sentence))
    else:
        errors += signer_mistakes(signer, "spec.signerName")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < SHORTEST_SECONDS:
        sentence = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(invalid("spec.expirationSeconds", seconds, sentence))
    return errors + condition_mistakes((obj.get("status") or {}).get("conditions") or [])


def signer_mistakes(signer: str, path: str) -> Errors:
    if not signer:
        return [required(path)]
    if signer.count("/") != 1:
        sentence = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(path, signer, sentence)]
    domain, _, rest = signer.partition("/")
    errors = [too_long(path, 253)] if len(domain) > 253 else Errors()
    for label in domain.split("."):
        errors += [invalid(path, domain, f'validating label "{label}": {wrong}') for wrong in dns_label(label)]
    if "." not in domain:
        errors.append(invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    for label in rest.split("."):
        errors += [invalid(path, rest, f'validating label "{label}": {wrong}') for wrong in dns_subdomain(label)]
    return errors + ([too_long(path, 571)] if len(signer) > 571 else Errors())


def condition_mistakes(conditions: Sequence[Object]) -> Errors:
    errors, seen = Errors(), set[str]()
    for i, condition in enumerate(conditions):
        path, type_, status = f"{_CONDITIONS}[{i}]", condition.get("type", ""), condition.get("status", "")
        if not type_:
            errors.append(required(f"{path}.type"))
        allowed = ("True",) if type_ in _FINAL else ("False", "True", "Unknown")
        if not status:
            errors.append(required(f"{path}.status"))
        elif status not in allowed:
            errors.append(not_supported(f"{path}.status", status, allowed))
        if type_ in seen:
            errors.append(duplicate(f"{path}.type", type_))
        seen.add(type_)
    if seen >= set(_DECISIONS):
        sentence = "must specify at most one of: `Approved`, `Denied`"
        errors.append(invalid(_CONDITIONS, "{Approved, Denied}", sentence))
    return errors


def _of_type(obj: Object, type_: str) -> list[Object]:
    return [each for each in (obj.get("status") or {}).get("conditions") or () if each.get("type") == type_]


def change_mistakes(obj: Object, old: Object) -> Errors:
    """What was decided stays decided."""
    return [
        forbidden(_CONDITIONS, f'updates may not remove a condition of type "{type_}"')
        for type_ in _FINAL
        if len(_of_type(obj, type_)) < len(_of_type(old, type_))
    ]


def decision_mistakes(obj: Object, old: Object) -> Errors:
    """Only a write to ``approval`` decides."""
    errors = Errors()
    for type_ in _DECISIONS:
        now, before = _of_type(obj, type_), _of_type(old, type_)
        if len(now) > len(before):
            errors.append(forbidden(_CONDITIONS, f'updates may not add a condition of type "{type_}"'))
        elif len(now) == len(before) and now != before:
            errors.append(forbidden(_CONDITIONS, f'updates may not modify a condition of type "{type_}"'))
    return errors


SIGNING_REQUEST = SigningRequestKind()
