"""Admission of CertificateSigningRequests: who asks, when conditions were set, and requests that are never allowed."""

from __future__ import annotations

from base64 import b64decode

from seamark.errors import Object
from seamark.kinds.admission import Operation, Plugin, Request
from seamark.kinds.certificates import pkcs10, signers
from seamark.kinds.kind import Kind
from seamark.kinds.resource import SIGNING_REQUESTS


class Requesters(Plugin):
    """Writes in who asks, whatever was sent, and when conditions were set; refuses certificates for all rights."""

    def concerns(self, kind: Kind, operation: Operation, part: str) -> bool:
        created = operation == "CREATE" and not part
        return kind.resource == SIGNING_REQUESTS and (created or part in ("approval", "status"))

    def mutate(self, request: Request) -> None:
        if request.old is None:
            spec, user = request.obj["spec"], request.user
            who = {
                "username": user.name,
                "uid": user.uid,
                "groups": list(user.groups),
                "extra": {name: list(values) for name, values in user.extra},
            }
            for key, value in who.items():
                spec.pop(key, None)
                if value:
                    spec[key] = value
        else:
            stamp(request.obj, request.old, request.now)

    def validate(self, request: Request) -> None:
        spec = request.obj["spec"]
        if request.old is not None or spec["signerName"] != signers.CLIENT:
            return
        wanted = pkcs10.wanted(pkcs10.parsed(b64decode(spec["request"])))
        if signers.MASTERS in wanted.organizations:
            sentence = f"use of {signers.CLIENT} signer with {signers.MASTERS} group is not allowed"
            raise request.forbidden(sentence)


def stamp(obj: Object, old: Object, now: str) -> None:
    """Set the times of conditions that have none; one that stays as it was keeps the time of its last change."""
    status = obj.get("status") or {}
    before = {
        (each.get("type"), each.get("status")): each["lastTransitionTime"]
        for each in old["status"].get("conditions") or ()
        if each.get("lastTransitionTime")
    }
    for condition in status.get("conditions") or ():
        if not condition.get("lastUpdateTime"):
            condition["lastUpdateTime"] = now
        if not condition.get("lastTransitionTime"):
            known = before.get((condition.get("type"), condition.get("status")))
            condition["lastTransitionTime"] = known or now
