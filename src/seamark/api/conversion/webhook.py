"""Asks the conversion webhook of a definition, and measures how that went."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from seamark.api.conversion.review import REVIEWS, VERSIONS, answered, checked, review
from seamark.api.outgoing.calling import CallFailed, Outgoing
from seamark.api.outgoing.targets import client_of
from seamark.api.webhooks.asking import with_path
from seamark.api.webhooks.review import Refused, read, unfit
from seamark.api.write.values import new_uid
from seamark.errors import ApiError, Object
from seamark.kinds.extensions.custom import CustomKind
from seamark.metrics import Registry

SECONDS = 30
BUCKETS = (0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)


def convert_by_webhook(kind: CustomKind, definition: Object, outgoing: Outgoing, metrics: Registry) -> None:
    """Let the definition's webhook convert the objects of the kind, if it has one and several versions."""
    conversion = definition["spec"]["conversion"]
    if conversion["strategy"] == "Webhook" and len(definition["spec"]["versions"]) > 1:
        kind.conversion = ByWebhook(kind, conversion["webhook"], outgoing, metrics)


class ByWebhook:
    """Converts the objects of one version (:class:`seamark.kinds.conversion.Conversion`)."""

    def __init__(self, kind: CustomKind, webhook: Object, outgoing: Outgoing, metrics: Registry) -> None:
        self._kind = kind
        self._client = client_of(webhook.get("clientConfig") or {})
        # The definition names at least one that is known.
        self._version = next(each for each in webhook["conversionReviewVersions"] if each in VERSIONS)
        self._outgoing = outgoing
        self._metrics = metrics

    def needed(self, stored: Object) -> bool:
        return self._kind.stored_version(stored) != self._kind.resource.version

    async def shown(self, stored: Sequence[Object]) -> Sequence[Object]:
        kind = self._kind
        objects = [self._headed(kind.as_stored(obj), kind.stored_version(obj)) for obj in stored]
        return [kind.pruned(obj) for obj in await self._converted(objects, kind.resource.version)]

    async def to_stored(self, obj: Object) -> Object:
        kind = self._kind
        if kind.resource.version != kind.storage_version:
            obj = await self.moved(obj, kind.storage_version)
        return kind.to_stored(obj)

    async def moved(self, obj: Object, version: str) -> Object:
        converted = await self._converted([self._headed(obj, self._kind.resource.version)], version)
        return converted[0]

    def _headed(self, obj: Object, version: str) -> Object:
        resource = self._kind.resource
        return {**obj, "kind": resource.kind, "apiVersion": f"{resource.group}/{version}"}

    async def _converted(self, objects: Sequence[Object], version: str) -> list[Object]:
        """The objects in this version; raises if the webhook does not convert each of them."""
        wanted = f"{self._kind.resource.group}/{version}"
        began, outcome = time.perf_counter(), "failure"
        at = objects[0]
        try:
            found = await self._ask(objects, wanted)
            if len(found) != len(objects):
                raise Refused(f"returned {len(found)} objects, expected {len(objects)}")
            converted = []
            for at, each in zip(objects, found, strict=True):
                converted.append(checked(at, each, wanted=wanted))
            outcome = "success"
            return converted
        except Refused as error:
            raise ApiError(f"conversion webhook for {at['apiVersion']}, Kind={at['kind']} {error}") from error
        finally:
            self._metrics.histogram(
                "apiserver_crd_conversion_webhook_duration_seconds",
                "Time that conversion webhooks took to answer.",
                *(self._kind.resource.qualified, wanted, outcome),
                labels=("crd_name", "to_version", "status"),
                buckets=BUCKETS,
            ).observe(time.perf_counter() - began)

    async def _ask(self, objects: Sequence[Object], wanted: str) -> Sequence[object]:
        uid = new_uid()
        query = f"timeout={SECONDS}s"
        body = review(objects, wanted=wanted, version=self._version, uid=uid)
        try:
            answer = await self._outgoing.post(
                self._client, body, query=query, seconds=SECONDS, accept="application/json, */*"
            )
            if why := unfit(answer.status, answer.content_type, answer.body):
                raise Refused(why)
            found = await self._outgoing.understood(answer, partial(read, kinds=REVIEWS))
            return answered(found, version=self._version, uid=uid)
        except CallFailed as error:
            raise Refused(f'failed: Post "{with_path(self._client.address)}?{query}": {error}') from error
        except Refused as error:
            raise Refused(f"failed: {error}") from error
