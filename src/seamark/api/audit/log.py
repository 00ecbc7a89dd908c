"""The audit log as a file: one event per line, appended.

An event is written before the answer to its request is sent, so the file has everything that a client knows of.  If
the disk, or the reader of a pipe, cannot take an event, that is logged and counted, and requests go on: an API that
stops with its audit disk would be easier to bring down than one without.
"""

from __future__ import annotations

import logging
import os
import uuid
from pathlib import Path

import msgspec

from seamark.api.audit.events import Audited, event
from seamark.api.audit.policy import DEFAULT, Level, Policy, Stage
from seamark.api.authorization import Attributes, User
from seamark.clock import Clock
from seamark.kinds.values import times
from seamark.metrics import Registry
from seamark.private_files import open_log

log = logging.getLogger(__name__)


class AuditLog:
    """Writes the events of requests that the policy asks for."""

    def __init__(self, file: Path, *, policy: Policy = DEFAULT, clock: Clock, metrics: Registry) -> None:
        self._file = file
        self._policy = policy
        self._clock = clock
        self._written = metrics.counter("seamark_audit_events_total", "Events written to the audit log.")
        self._lost = metrics.counter("seamark_audit_events_lost_total", "Events that the audit log could not take.")
        self._descriptor = self._opened()
        self._failing = False  # the last event could not be written
        self._cut = False  # the file ends with the beginning of an event

    def _opened(self) -> int:
        descriptor = open_log(str(self._file), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.set_blocking(descriptor, False)  # the server does not wait for the reader of a pipe
        return descriptor

    def close(self) -> None:
        os.close(self._descriptor)

    def begin(
        self, user: User, asked: Attributes, *, uri: str, address: str, agent: str, id: str = ""
    ) -> Audited | None:
        """Note a request; None if nothing of it is to be logged.  ``id`` is what its client calls it, if anything."""
        extent = self._policy.judge(user, asked)
        if extent.level is Level.NONE:
            return None
        addresses = (address,) if address else ()
        audited = Audited(id or str(uuid.uuid4()), extent, user, asked, uri, self._now(), addresses, agent)
        self.write(audited, "RequestReceived")
        return audited

    def write(self, audited: Audited, stage: Stage) -> None:
        made = event(audited, stage, self._now())
        if made is None:
            return
        try:
            line = msgspec.json.encode(made) + b"\n"
        except RecursionError:
            # What is nested as deep as it can be read cannot be written within an event; who did what can.
            for name in ("requestObject", "responseObject"):
                made.pop(name, None)
            line = msgspec.json.encode(made) + b"\n"
        try:
            self._append(line)
        except OSError as error:
            self._lost.add()
            if not self._failing:  # once, and not with every request
                log.error("the audit log %s cannot be written: %s", self._file, error.strerror)
            self._failing = True
        else:
            self._written.add()
            self._failing = False

    def _append(self, line: bytes) -> None:
        if self._moved():
            opened = self._opened()  # If that fails, the old one must stay open: its number may become another's.
            os.close(self._descriptor)
            self._descriptor, self._cut = opened, False
        rest = memoryview(b"\n" + line if self._cut else line)
        while rest:
            written = os.write(self._descriptor, rest)
            rest = rest[written:]
            self._cut = bool(rest)

    def _moved(self) -> bool:
        """Whether the file was rotated: moved or removed, so that a new one has to be begun."""
        try:
            return not os.path.samestat(os.stat(self._file), os.fstat(self._descriptor))
        except FileNotFoundError:
            return True

    def _now(self) -> str:
        return times.micro_text(self._clock.time())
