"""Every error an API request can end with: one class per Kubernetes ``Status`` reason.

    ApiError
    ├── BadRequest               400  the request is malformed
    ├── Unauthorized             401  no valid credentials
    ├── Forbidden                403  the user is not allowed to (also: the namespace is terminating)
    ├── NotFound                 404
    ├── MethodNotAllowed         405
    ├── NotAcceptable            406  no representation fits the Accept header
    ├── Conflict                 409  the object has changed since it was read
    │   └── AlreadyExists        409
    ├── Expired                  410  the requested resourceVersion is no longer known: list again
    ├── Gone                     410
    ├── RequestEntityTooLarge    413
    ├── UnsupportedMediaType     415
    ├── Invalid                  422  the object breaks the rules of its kind
    ├── TooManyRequests          429
    ├── InternalError            500
    ├── ServerTimeout            500  the server could not finish in time: try again
    ├── ServiceUnavailable       503
    └── Timeout                  504

Code that handles a request raises these; :func:`status` turns an error into the ``Status`` object that is sent, and
:func:`from_status` turns the ``Status`` of another server into the same class.  Nothing else builds a ``Status``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

Object = dict[str, Any]


class Cause(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of ``details.causes``; ``field`` is a dotted path."""

    reason: str = ""
    message: str = ""
    field: str = ""


class ApiError(Exception):
    """A failed API request.  ``reason`` may be empty, as it is in some of Kubernetes' own errors."""

    code = 500
    reason = ""

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        causes: Iterable[Cause] = (),
        retry_after: int | None = None,
        code: int | None = None,
        reason: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.metadata = dict(
            metadata or {}
        )  # list metadata: the answer to an expired continue token contains a new one
        self.message = message
        self.causes = tuple(causes)
        self.details = dict(details) if details is not None else None
        self.retry_after = retry_after
        if code is not None:
            self.code = code
        if reason is not None:
            self.reason = reason

    @property
    def uncertain(self) -> bool:
        """Whether a write may have been done although it failed: a refusal is certain, a lost answer is not."""
        return self.code >= 500

    @property
    def namespace_terminating(self) -> bool:
        """Whether nothing can be created because the namespace is being deleted, with everything in it."""
        return any(cause.reason == "NamespaceTerminating" for cause in self.causes)


class BadRequest(ApiError):
    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    code, reason = 401, "Unauthorized"

    def __init__(self, message: str = "Unauthorized", **more: Any) -> None:
        super().__init__(message, **more)


class Forbidden(ApiError):
    code, reason = 403, "Forbidden"


class NotFound(ApiError):
    code, reason = 404, "NotFound"


class MethodNotAllowed(ApiError):
    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):
    code, reason = 406, "NotAcceptable"


class Conflict(ApiError):
    code, reason = 409, "Conflict"


class AlreadyExists(Conflict):
    reason = "AlreadyExists"


class Expired(ApiError):
    code, reason = 410, "Expired"


class Gone(ApiError):
    code, reason = 410, "Gone"


class RequestEntityTooLarge(ApiError):
    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):
    code, reason = 429, "TooManyRequests"


class InternalError(ApiError):
    code, reason = 500, "InternalError"


class ServiceUnavailable(ApiError):
    code, reason = 503, "ServiceUnavailable"


class ServerTimeout(ApiError):
    code, reason = 500, "ServerTimeout"


class Timeout(ApiError):
    code, reason = 504, "Timeout"


def internal(text: str) -> InternalError:
    """A fault, told as Kubernetes tells it: the cause repeats what the message says."""
    return InternalError(f"Internal error occurred: {text}", details={}, causes=[Cause(message=text)])


def status(error: ApiError) -> Object:
    """The ``Status`` object that describes the error."""
    answer: Object = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": error.metadata,
        "status": "Failure",
        "message": error.message,
    }
    if error.reason:
        answer["reason"] = error.reason
    details = error.details
    if error.causes or error.retry_after is not None:
        details = dict(details or {})
        if error.causes:
            details["causes"] = [msgspec.to_builtins(cause) for cause in error.causes]
        if error.retry_after is not None:
            details["retryAfterSeconds"] = error.retry_after
    if details is not None:
        answer["details"] = details
    answer["code"] = error.code
    return answer


def _classes(base: type[ApiError]) -> Iterable[type[ApiError]]:
    for sub in base.__subclasses__():
        yield sub
        yield from _classes(sub)


def _said(answer: Mapping[str, Any], name: str, type: type[T]) -> T | None:
    try:
        return msgspec.convert(answer.get(name), type | None)
    except msgspec.ValidationError:
        return None


def from_status(answer: Mapping[str, Any]) -> ApiError:
    """The error that another server describes by this ``Status``; its class follows from the reason, else the code.

    What has other types than those of a ``Status`` counts as not said: the server may be of any make.
    """
    code = _said(answer, "code", int) or 500
    reason = str(answer.get("reason") or "")
    details = _said(answer, "details", dict[str, Any]) or {}
    causes = _said(details, "causes", list[Cause]) or ()
    # Subclasses elsewhere in the program take other arguments.
    known: tuple[type[ApiError], ...] = (
        ApiError,
        *(each for each in _classes(ApiError) if each.__module__ == __name__),
    )
    match = next((k for k in known if (k.reason == reason if reason else k.code == code)), ApiError)
    return match(
        str(answer.get("message") or reason or f"HTTP {code}"),
        details={k: v for k, v in details.items() if k not in ("causes", "retryAfterSeconds")},
        causes=causes,
        retry_after=_said(details, "retryAfterSeconds", int),
        code=code,
        reason=reason,
    )
