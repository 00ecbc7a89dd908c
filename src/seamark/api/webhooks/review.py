"""The AdmissionReview that a webhook receives, and what its answer says; pure."""

from __future__ import annotations

from typing import Any

import msgspec

from seamark.api.call import DeleteOptions, WriteOptions
from seamark.api.fields.patch import HEADER_TYPE
from seamark.api.webhooks.hooks import Hook
from seamark.errors import ApiError, Object
from seamark.kinds.admission import Operation, Request
from seamark.kinds.kind import Kind
from seamark.kinds.language import shapes
from seamark.kinds.language.decode import DecodeError, conform
from seamark.kinds.language.scalars import found
from seamark.kinds.resource import NAMESPACES, Resource
from seamark.kinds.subresource import Action, Question, View

GROUP = "admission.k8s.io"
KIND = "AdmissionReview"
STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"
LONGEST_SHOWN = 16 * 1024  # bytes of an answer that are told to the client
# Longer YAML is not read; Kubernetes does not say what webhooks may send.
LONGEST_YAML = 3 * 1024 * 1024
_SCHEME = 'in scheme "pkg/util/webhook/client.go:74"'
_OPTIONS: dict[Operation, str] = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
# What the server sets itself when an object is created; a webhook that edits a new object does not see it yet.
_OF_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


class Refused(Exception):
    """An answer that cannot be used; the text says why."""


class Verdict(msgspec.Struct, frozen=True):
    """What a webhook answered."""

    allowed: bool
    status: Object | None = None
    patch: bytes = b""
    patch_type: str = ""
    warnings: tuple[str, ...] = ()
    annotations: dict[str, str] = {}


class Document(msgspec.Struct, frozen=True):
    """What a webhook is shown of a request: the kind of the documents, the new one and the old one."""

    resource: Resource  # of the kind
    kind: Kind | None  # None for the options of a CONNECT
    obj: Object | None
    old: Object | None


# --- the question -----------------------------------------------------------------------------------


def document(request: Request) -> Document:
    """What the request is about, in the version of the request."""
    sub, kind, obj = request.sub, request.kind, request.obj
    if request.operation == "CONNECT":
        assert sub is not None, "connections are made to subresources"
        resource = Resource(sub.group or kind.resource.group, sub.version or kind.resource.version, "", sub.kind)
        return Document(resource, None, obj, None)
    if isinstance(sub, View):
        old = None if request.old is None else sub.start(kind, request.old)
        return Document(sub.sent.resource, sub.sent, sub.start(kind, obj), old)
    if isinstance(sub, Action | Question):
        return Document(sub.sent.resource, sub.sent, headed(sub.sent.resource, obj), None)
    new = None if request.operation == "DELETE" else headed(kind.resource, obj)
    return Document(kind.resource, kind, new, None if request.old is None else headed(kind.resource, request.old))


def headed(resource: Resource, obj: Object) -> Object:
    """The object with the apiVersion and kind of this resource."""
    return {**obj, "kind": resource.kind, "apiVersion": resource.api_version}


def question(hook: Hook, request: Request, own: Document, shown: Document, by: Resource, uid: str) -> Object:
    """What a webhook is asked; ``own`` is what was sent, ``shown`` the same in the version that the webhook is for."""
    resource, sent = request.kind.resource, own.obj
    if hook.mutating and request.operation == "CREATE" and shown.obj is not None and "metadata" in shown.obj:
        meta = {key: value for key, value in shown.obj["metadata"].items() if key not in _OF_SERVER}
        shown = msgspec.structs.replace(shown, obj={**shown.obj, "metadata": meta})
    name = request.name if request.place is not None else (sent or own.old or {}).get("metadata", {}).get("name")
    namespace = name if resource == NAMESPACES else request.namespace
    body = {
        "uid": uid,
        "kind": _kind(shown.resource),
        "resource": _resource(by),
        "subResource": request.part,
        "requestKind": _kind(own.resource),
        "requestResource": _resource(resource),
        "requestSubResource": request.part,
        "name": name,
        "namespace": namespace,
        "operation": request.operation,
        "userInfo": _user(request),
        "object": shown.obj,
        "oldObject": shown.old,
        "dryRun": request.dry_run,
        "options": options(request),
    }
    optional = ("subResource", "requestSubResource", "name", "namespace")
    return {key: value for key, value in body.items() if value or key not in optional}


def review(hook: Hook, asked: Object) -> bytes:
    """The review that asks it."""
    return msgspec.json.encode({"kind": KIND, "apiVersion": f"{GROUP}/{hook.version}", "request": asked})


def _kind(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _resource(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def _user(request: Request) -> Object:
    user = request.user
    extra = {name: list(values) for name, values in user.extra}
    fields = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    return {name: value for name, value in fields.items() if value}


def options(request: Request) -> Object | None:
    """The options of a request, as the object they are in a review."""
    kind = _OPTIONS.get(request.operation)
    if kind is None:
        return None
    sent: Object = {}
    match request.options:
        case WriteOptions() as given:
            sent = {"fieldManager": given.field_manager, "fieldValidation": given.field_validation}
        case DeleteOptions() as given:
            preconditions = {"uid": given.uid, "resourceVersion": given.version}
            sent = {
                "gracePeriodSeconds": given.grace_seconds,
                "preconditions": {key: value for key, value in preconditions.items() if value},
                "orphanDependents": given.orphan,
                "propagationPolicy": given.propagation,
            }
    said = {key: value for key, value in sent.items() if value or value is False or value == 0}
    if request.dry_run:
        said["dryRun"] = ["All"]
    return {"kind": kind, "apiVersion": "meta.k8s.io/v1", **said}


# --- the answer -------------------------------------------------------------------------------------


class _Response(msgspec.Struct):
    uid: str = ""
    allowed: bool = False
    status: dict[str, Any] | None = None
    patch: bytes | None = None
    patchType: str | None = None  # noqa: N815  # the field's name
    warnings: list[str] | None = None
    auditAnnotations: dict[str, str] | None = None  # noqa: N815


# What Kubernetes' client says of an answer with this HTTP status.
_WORDS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


def found_in_go(value: Any) -> str:
    """Go's name for the type in which it holds a JSON value."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case list():
            return "[]interface {}"
        case dict():
            return "map[string]interface {}"
        case _:
            return "string"


def unfit(status: int, content_type: str, body: bytes) -> str:
    """Why an answer is none that could be read, in the words of Kubernetes' client; empty if it may be one."""
    if 200 <= status <= 206:
        return "" if body else f"0-length response with status code: {status} and content type: {content_type}"
    said = _shown(body).strip() if content_type.startswith("text/") else ""
    if status in _WORDS:
        return _WORDS[status]
    if status == 403:
        return said or "unknown"
    if status >= 500:
        return f'an error on the server ("{said or "unknown"}") has prevented the request from succeeding'
    return f"the server responded with the status code {status} but did not return more information"


def _shown(body: bytes) -> str:
    """The beginning of an answer, for a sentence about it."""
    return body[:LONGEST_SHOWN].decode(errors="replace")


def read(body: bytes, kinds: tuple[tuple[str, str], ...]) -> Object:
    """The object in an answer, which has to be of one of these (apiVersion, kind); raises :class:`Refused`."""
    value = _decoded(body)
    if not isinstance(value, dict):
        raise Refused(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {found(value)} into Go value of type "
            f"{HEADER_TYPE}"
        )
    for key, name in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        if not value.get(key):
            raise Refused(f"Object '{name}' is missing in '{_shown(body)}'")
    if (value["apiVersion"], value["kind"]) not in kinds:
        kind, version = (str(value[key])[:LONGEST_SHOWN] for key in ("kind", "apiVersion"))
        raise Refused(f'no kind "{kind}" is registered for version "{version}" {_SCHEME}')
    return value


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if len(body) > LONGEST_YAML:
            raise Refused("couldn't get version/kind; the answer is too long, and no JSON") from None
        from seamark.kinds.language import yaml_body

        try:  # as Kubernetes does, which takes YAML wherever it takes JSON
            return yaml_body.read(body)[0]
        except yaml_body.YamlFault as error:
            raise Refused(f"couldn't get version/kind; json parse error: {error}") from error


REVIEWS = ((f"{GROUP}/v1", KIND), (f"{GROUP}/v1beta1", KIND))


def verdict(answer: Object, *, version: str, uid: str, mutating: bool) -> Verdict:
    """What an AdmissionReview says in answer to one of this version; raises :class:`Refused`."""
    if answer.get("response") is None:
        raise Refused("webhook response was absent")
    try:
        response = msgspec.convert(answer["response"], _Response)
        status = None if response.status is None else conform(response.status, shapes.of(STATUS))[0]
    except (msgspec.ValidationError, DecodeError) as error:
        raise Refused(f"json: cannot unmarshal response: {error}") from error
    patch, patch_type = response.patch or b"", response.patchType or ""
    if version == "v1":
        _check(answer, response, uid, mutating=mutating)
    elif patch:
        patch_type = "JSONPatch"
    return Verdict(
        response.allowed,
        status,
        patch if mutating else b"",
        patch_type,
        tuple(response.warnings or ()),
        response.auditAnnotations or {},
    )


def _check(answer: Object, response: _Response, uid: str, *, mutating: bool) -> None:
    """Raise unless an answer has all that version v1 demands."""
    if response.uid != uid:
        raise Refused(f'expected response.uid="{uid}", got "{response.uid}"')
    if answer["apiVersion"] != f"{GROUP}/v1":
        raise Refused(
            f"expected webhook response of {GROUP}/v1, Kind={KIND}, got {answer['apiVersion']}, Kind={answer['kind']}"
        )
    if not mutating:
        if response.patch:
            raise Refused("validating webhook may not return response.patch")
        if response.patchType is not None:
            raise Refused("validating webhook may not return response.patchType")
    elif response.patchType == "":
        raise Refused('webhook returned invalid response.patchType of ""')
    elif response.patch and response.patchType is None:
        raise Refused("webhook returned response.patch but not response.patchType")
    elif response.patchType and not response.patch:
        raise Refused("webhook returned response.patchType but not response.patch")


def denial(name: str, status: Object | None) -> ApiError:
    """The error for a request that a webhook refused."""
    status = status or {}
    said = status.get("message") or status.get("reason") or ""
    denied = f'admission webhook "{name}" denied the request'
    details = status.get("details")
    code = status.get("code")
    return ApiError(
        f"{denied}: {said}" if said else f"{denied} without explanation",
        code=code if isinstance(code, int) and 400 <= code < 1000 else 400,  # HTTP has no others
        reason=str(status.get("reason") or ""),
        details=details if isinstance(details, dict) else None,
    )
