"""ClusterTrustBundle: certificates of authorities that Pods of the whole cluster may trust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.certificates import pkcs10
from seamark.kinds.certificates.signing_request import signer_mistakes
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import TRUST_BUNDLES
from seamark.kinds.values.fields import Errors, immutable, invalid, too_long
from seamark.kinds.values.metadata import dns_subdomain, path_segment
from seamark.kinds.values.times import age

LARGEST_BYTES = 1 << 20


class TrustBundleKind(Kind):
    resource = TRUST_BUNDLES
    singular = "clustertrustbundle"
    shape_name = "io.k8s.api.certificates.v1.ClusterTrustBundle"
    columns = (Column("Name", format="name"), Column("SignerName"), Column("Age"))
    unconditional_update: ClassVar[bool] = False
    field_names = ("spec.signerName",)

    def validate_name(self, name: str, *, prefix: bool) -> list[str]:
        return path_segment(name, prefix=prefix)  # more depends on the signer, in ``validate``

    def validate(self, obj: Object) -> Errors:
        return _mistakes(obj) + _bundle_mistakes(obj["spec"].get("trustBundle", ""))

    def validate_update(self, obj: Object, old: Object) -> Errors:
        signer, bundle = obj["spec"].get("signerName", ""), obj["spec"].get("trustBundle", "")
        errors = _mistakes(obj)
        if bundle != old["spec"].get("trustBundle", ""):
            errors += _bundle_mistakes(bundle)
        if signer != old["spec"].get("signerName", ""):
            errors.append(immutable("spec.signerName", signer))
        return errors

    def fields(self, obj: Object) -> Mapping[str, str]:
        return {"spec.signerName": obj["spec"].get("signerName", "")}

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta = obj["metadata"]
        return [
            meta.get("name", ""),
            obj["spec"].get("signerName") or "<none>",
            age(now, meta.get("creationTimestamp")),
        ]


def _mistakes(obj: Object) -> Errors:
    name, signer = obj["metadata"].get("name", ""), obj["spec"].get("signerName", "")
    errors = signer_mistakes(signer, "spec.signerName") if signer else Errors()
    wanted = signer.replace("/", ":") + ":" if signer else ""
    if not signer and ":" in name:
        wrong = ['ClusterTrustBundle without signer name must not have ":" in its name']
    elif not name.startswith(wanted):
        wrong = [f"ClusterTrustBundle for signerName {signer} must be named with prefix {wanted}"]
    else:
        wrong = dns_subdomain(name.removeprefix(wanted))
    return [invalid("metadata.name", name, sentence) for sentence in wrong] + errors


def _bundle_mistakes(bundle: str) -> Errors:
    if len(bundle.encode()) > LARGEST_BYTES:
        return [too_long("spec.trustBundle", LARGEST_BYTES)]
    return [invalid("spec.trustBundle", "<value omitted>", sentence) for sentence in pkcs10.anchor_mistakes(bundle)]


TRUST_BUNDLE = TrustBundleKind()
