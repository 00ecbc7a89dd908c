"""What is logged of a request at one stage of it: an ``Event`` of ``audit.k8s.io/v1``, one line of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from seamark.api.audit.policy import API_VERSION, Extent, Level, Stage
from seamark.api.authorization import Attributes, Decision, User
from seamark.errors import Object

LEVEL_WORDS = {
    Level.METADATA: "Metadata",
    Level.REQUEST: "Request",
    Level.REQUEST_RESPONSE: "RequestResponse",
}


class Audited(msgspec.Struct):
    """A request that is logged: what is known of it so far."""

    id: str
    extent: Extent
    user: User
    asked: Attributes
    uri: str
    received: str  # RFC 3339 with microseconds
    addresses: tuple[str, ...] = ()
    agent: str = ""
    acts_as: User | None = None
    constraint: str = ""  # the verb of constrained impersonation by which the user may act as that one
    subject: Mapping[str, str] = {}  # what the body of a create or update says of its object: name, uid, …
    decision: Decision | None = None  # the authorizer's; it is not asked about a user whom the sender may not act as
    request_object: Any = None
    response_object: Any = None
    code: int = 0
    annotations: dict[str, str] = {}  # what admission noted


def event(audited: Audited, stage: Stage, now: str) -> Object | None:
    """The event of this stage; None if the policy leaves it out."""
    extent = audited.extent
    if extent.level is Level.NONE or stage in extent.omit_stages:
        return None
    asked = audited.asked
    made: Object = {
        "kind": "Event",
        "apiVersion": API_VERSION,
        "level": LEVEL_WORDS[extent.level],
        "auditID": audited.id,
        "stage": stage,
        "requestURI": audited.uri,
        "verb": asked.verb,
        "user": audited.user.info,
    }
    if audited.acts_as is not None:
        made["impersonatedUser"] = audited.acts_as.info
    if audited.constraint:
        made["authenticationMetadata"] = {"impersonationConstraint": audited.constraint}
    if audited.addresses:
        made["sourceIPs"] = list(audited.addresses)
    if audited.agent:
        made["userAgent"] = audited.agent
    if not asked.path:
        made["objectRef"] = _reference(asked, audited.subject)
    if stage != "RequestReceived":
        made |= _answer(audited)
    made |= {"requestReceivedTimestamp": audited.received, "stageTimestamp": now}
    if stage != "RequestReceived" and (annotations := _annotations(audited)):
        made["annotations"] = annotations
    return made


def _annotations(audited: Audited) -> Mapping[str, str]:
    if (decision := audited.decision) is None:
        return audited.annotations
    return {
        "authorization.k8s.io/decision": "allow" if decision.allowed else "forbid",
        "authorization.k8s.io/reason": decision.reason,
        **audited.annotations,
    }


def _reference(asked: Attributes, subject: Mapping[str, str]) -> Object:
    """The object by its path; what that leaves open, by what was sent."""
    fields = {
        "resource": asked.resource,
        "namespace": asked.namespace,
        "name": asked.name,
        "apiGroup": asked.group,
        "apiVersion": asked.version,
        "subresource": asked.subresource,
    }
    return {**subject, **{name: value for name, value in fields.items() if value}}


def _answer(audited: Audited) -> Object:
    level, made = audited.extent.level, {}
    status: Object = {"metadata": {}, "code": audited.code}
    answer = audited.response_object
    if audited.code >= 400 and isinstance(answer, dict) and answer.get("kind") == "Status":
        status |= {name: answer[name] for name in ("status", "message", "reason", "details") if name in answer}
    made["responseStatus"] = status
    for name, value, least in (
        ("requestObject", audited.request_object, Level.REQUEST),
        ("responseObject", answer, Level.REQUEST_RESPONSE),
    ):
        if value is not None and level >= least:
            made[name] = _without_managed_fields(value) if audited.extent.omit_managed_fields else value
    return made


def _without_managed_fields(value: Any) -> Any:
    """The object, or every object of a list or table, without its managedFields."""
    if not isinstance(value, dict):
        return value
    kept = value
    if isinstance(meta := value.get("metadata"), dict) and "managedFields" in meta:
        kept = {**value, "metadata": {name: each for name, each in meta.items() if name != "managedFields"}}
    if isinstance(items := kept.get("items"), list):
        kept = {**kept, "items": [_without_managed_fields(item) for item in items]}
    if kept.get("kind") == "Table" and isinstance(rows := kept.get("rows"), list):
        shown = [{**row, "object": _without_managed_fields(row["object"])} if "object" in row else row for row in rows]
        kept = {**kept, "rows": shown}
    return kept
