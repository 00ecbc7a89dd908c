"""PodCertificateRequest: a kubelet asks a signer for a certificate for a Pod.  No signer of ours answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.certificates.signing_request import signer_mistakes, types
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import POD_CERTIFICATE_REQUESTS
from seamark.kinds.subresource import bare_status_of
from seamark.kinds.values.fields import Errors, immutable, invalid, required
from seamark.kinds.values.metadata import dns_subdomain
from seamark.kinds.values.times import age

SHORTEST_SECONDS, LONGEST_SECONDS = 3600, 91 * 86400
_NAMES = ("podName", "serviceAccountName", "nodeName")
_UIDS = ("podUID", "serviceAccountUID", "nodeUID")


class PodCertificateRequestKind(Kind):
    resource = POD_CERTIFICATE_REQUESTS
    singular = "podcertificaterequest"
    shape_name = "io.k8s.api.certificates.v1.PodCertificateRequest"
    subresources = (bare_status_of("PodCertificateRequest"),)
    columns = (
        Column("Name", format="name"),
        Column("PodName"),
        Column("ServiceAccountName"),
        Column("NodeName"),
        Column("SignerName"),
        Column("State"),
        Column("Age"),
    )
    unconditional_update: ClassVar[bool] = False
    field_names = ("spec.signerName", "spec.podName", "spec.nodeName")

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> Errors:
        spec = obj["spec"]
        errors = signer_mistakes(spec.get("signerName", ""), "spec.signerName")
        for field in _NAMES:
            errors += [invalid(f"spec.{field}", spec.get(field, ""), w) for w in dns_subdomain(spec.get(field, ""))]
        errors += [required(f"spec.{field}", "must not be empty") for field in _UIDS if not spec.get(field)]
        seconds = spec.get("maxExpirationSeconds")
        if seconds is None:
            errors.append(required("spec.maxExpirationSeconds", "must be set"))
        elif not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS:
            sentence = f"must be in the range [{SHORTEST_SECONDS}, {LONGEST_SECONDS}]"
            errors.append(invalid("spec.maxExpirationSeconds", seconds, sentence))
        return errors

    def prepare_update(self, obj: Object, old: Object) -> None:
        obj["status"] = old["status"]

    def validate_update(self, obj: Object, old: Object) -> Errors:
        return [immutable("spec", obj["spec"])] if obj["spec"] != old["spec"] else []

    def fields(self, obj: Object) -> Mapping[str, str]:
        return {name: obj["spec"].get(name.removeprefix("spec."), "") for name in self.field_names}

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec, found = obj["metadata"], obj["spec"], types(obj.get("status") or {})
        state = next((word for word in ("Denied", "Failed", "Issued") if word in found), "Pending")
        shown = [spec.get(field, "") for field in ("podName", "serviceAccountName", "nodeName", "signerName")]
        return [meta.get("name", ""), *shown, state, age(now, meta.get("creationTimestamp"))]


POD_CERTIFICATE_REQUEST = PodCertificateRequestKind()
