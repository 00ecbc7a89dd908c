"""Requests and answers as the audit log sees them: objects out of bodies, and the end of streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import msgspec

from seamark.api.audit.events import Audited
from seamark.api.audit.log import AuditLog
from seamark.api.audit.policy import Level
from seamark.api.authorization import Attributes, User
from seamark.api.http.wire.messages import Request, Response, Streaming
from seamark.api.http.wire.stream import Stream

# Longer YAML that was not parsed for the request itself is left out: to read it would keep all others waiting.
LONGEST_YAML = 64 * 1024
# As in Kubernetes, characters.
LONGEST_AGENT = 1024
LONGEST_ID = 64


def id_of(request: Request) -> str:
    """The name of a request in logs and in its answer: what its client calls it, or a new one."""
    said = request.headers.get("audit-id", "")[:LONGEST_ID]
    return said if said and said.isascii() and said.isprintable() else str(uuid4())


class Auditing:
    """Writes the stages of a request to the audit log."""

    def __init__(self, log: AuditLog) -> None:
        self._log = log

    def begin(self, request: Request, user: User, asked: Attributes) -> Audited | None:
        """Note a request whose head is known; None if nothing of it is to be logged."""
        uri = f"{request.path}?{request.query}" if request.query else request.path
        agent = request.headers.get("user-agent", "")
        if len(agent) > LONGEST_AGENT:
            agent = f"{agent[:LONGEST_AGENT]}...TRUNCATED"
        audited = self._log.begin(user, asked, uri=uri, address=request.peer, agent=agent, id=id_of(request))
        request.recorded = audited is not None and audited.extent.level >= Level.REQUEST
        return audited

    def end(self, audited: Audited, request: Request, answer: Response | Streaming) -> None:
        """Note the answer: all of a response, and the beginning and later the end of a stream."""
        audited.code = answer.status
        audited.subject = request.subject
        level = audited.extent.level
        if level >= Level.REQUEST:
            audited.request_object = _request_object(request)
        if isinstance(answer, Streaming):
            self._log.write(audited, "ResponseStarted")
            answer.start = self._noticing_the_end(audited, answer.start)
            return
        if level is Level.REQUEST_RESPONSE or answer.status >= 400:
            audited.response_object = _response_object(answer, whole=not audited.extent.omit_managed_fields)
        self._log.write(audited, "ResponseComplete")

    def _noticing_the_end(self, audited: Audited, start: Callable[[Stream], None]) -> Callable[[Stream], None]:
        def begin(stream: Stream) -> None:
            stream.on_end = lambda: self._log.write(audited, "ResponseComplete")
            start(stream)

        return begin


def _request_object(request: Request) -> Any:
    """The object in a body; None for one that cannot be read."""
    if request.parsed is not None:
        return request.parsed
    return _object(request.body, request.headers.get("content-type", ""))


def _response_object(answer: Response, *, whole: bool) -> Any:
    if answer.plain is not None:
        body = answer.plain()
        return msgspec.Raw(body.rstrip()) if whole and answer.status < 400 else msgspec.json.decode(body)
    if isinstance(answer.body, list):
        body = b"".join(answer.body)
        if whole and answer.content_type == "application/json":
            return msgspec.Raw(body.rstrip())  # a long list of ours, which is one line of JSON: to read it takes long
        return _object(body, answer.content_type)
    return _object(answer.body, answer.content_type)


def _object(body: bytes, content_type: str) -> Any:
    if not body or "protobuf" in content_type:
        return None
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # it may be YAML
    if "yaml" not in content_type or len(body) > LONGEST_YAML:
        return None
    from seamark.kinds.language import yaml_body

    try:
        return yaml_body.read(body)[0]
    except yaml_body.YamlFault:
        return None
