"""Asks a webhook, and measures how that went."""

from __future__ import annotations

import time
from functools import partial

from seamark.api.outgoing.calling import CallFailed, Outgoing
from seamark.api.webhooks.hooks import Hook
from seamark.api.webhooks.review import REVIEWS, Refused, Verdict, read, unfit, verdict
from seamark.kinds.admission import Operation
from seamark.metrics import Registry

DURATION = "apiserver_admission_webhook_admission_duration_seconds"
REQUESTS = "apiserver_admission_webhook_request_total"
REJECTIONS = "apiserver_admission_webhook_rejection_count"
FAILED_OPEN = "apiserver_admission_webhook_fail_open_count"
# The longest patch that makes an object which can be stored takes 2 MiB in base64.
LONGEST_ANSWER = 4 * 1024 * 1024
BUCKETS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0)


class AskFailed(Exception):
    """A webhook gave no usable answer; the text says why."""


class Asking:
    """Sends reviews to webhooks."""

    def __init__(self, outgoing: Outgoing, metrics: Registry) -> None:
        self._outgoing = outgoing
        self._metrics = metrics

    async def ask(self, hook: Hook, body: bytes, uid: str, operation: Operation) -> Verdict:
        """The answer of a webhook; raises :class:`AskFailed` if it gives none that can be used."""
        began = time.perf_counter()
        code, rejected = 0, False
        try:
            answer = await self._outgoing.post(
                hook.client,
                body,
                query=f"timeout={hook.seconds}s",
                seconds=hook.seconds,
                accept="application/json, */*",
                longest=LONGEST_ANSWER,
            )
            code = answer.status
            if why := unfit(answer.status, answer.content_type, answer.body):
                raise AskFailed(_failed(hook, f"failed to call webhook: {why}"))
            try:
                value = await self._outgoing.understood(answer, partial(read, kinds=REVIEWS))
            except Refused as error:
                raise AskFailed(_failed(hook, f"failed to call webhook: {error}")) from error
            try:
                found = verdict(value, version=hook.version, uid=uid, mutating=hook.mutating)
            except Refused as error:
                raise AskFailed(_failed(hook, f"received invalid webhook response: {error}")) from error
            rejected = not found.allowed
            return found
        except CallFailed as error:
            shown = f"{with_path(hook.client.address)}?timeout={hook.seconds}s"
            raise AskFailed(_failed(hook, f'failed to call webhook: Post "{shown}": {error}')) from error
        finally:
            self._count(hook, operation, time.perf_counter() - began, code, rejected=rejected)

    # --- metrics ------------------------------------------------------------------------------------

    def _count(self, hook: Hook, operation: Operation, seconds: float, code: int, *, rejected: bool) -> None:
        kind, word = kind_of(hook), "true" if rejected else "false"
        self._metrics.histogram(
            DURATION,
            "Time that admission webhooks took to answer.",
            *(hook.name, kind, operation, word),
            labels=("name", "type", "operation", "rejected"),
            buckets=BUCKETS,
        ).observe(seconds)
        self._metrics.counter(
            REQUESTS,
            "Requests to admission webhooks, by the HTTP status of the answer; 0 if there was none.",
            *(hook.name, kind, operation, str(code), word),
            labels=("name", "type", "operation", "code", "rejected"),
        ).add()

    def rejected(self, hook: Hook, operation: Operation, error_type: str, code: int) -> None:
        """Count a write that was refused because of a webhook."""
        self._metrics.counter(
            REJECTIONS,
            "Writes refused because of an admission webhook.",
            *(hook.name, kind_of(hook), operation, error_type, str(code)),
            labels=("name", "type", "operation", "error_type", "rejection_code"),
        ).add()

    def failed_open(self, hook: Hook) -> None:
        """Count a write that went on although a webhook gave no answer."""
        self._metrics.counter(
            FAILED_OPEN,
            "Writes that went on although an admission webhook failed.",
            *(hook.name, kind_of(hook)),
            labels=("name", "type"),
        ).add()

    def forget(self, hook: Hook) -> None:
        """Say no more about a webhook that is gone."""
        for metric in (DURATION, REQUESTS, REJECTIONS, FAILED_OPEN):
            self._metrics.forget(metric, hook.name, kind_of(hook))


def kind_of(hook: Hook) -> str:
    return "admit" if hook.mutating else "validating"


def _failed(hook: Hook, why: str) -> str:
    return f'failed calling webhook "{hook.name}": {why}'


def with_path(url: str) -> str:
    return url if "/" in url.removeprefix("https://") else f"{url}/"
