"""Creates and deletes the Pods of a workload, each exactly once.

The Pod's name is chosen here, not by the server: when the answer to a creation is lost, the name shows later whether
the Pod was created.  Until the informer shows all writes, nothing more is created or deleted.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal, TypeVar

from seamark.access.cluster import Cluster, Receipt
from seamark.access.correlation import Reference
from seamark.access.events import EventRecorder
from seamark.access.informer import Informer, key_of, split_key
from seamark.controllers.workloads.templates import ALPHABET, name_prefix
from seamark.errors import AlreadyExists, ApiError, NotFound, Object
from seamark.kinds.resource import PODS
from seamark.rules.objects.pod import Pod
from seamark.runtime.ledger import Ledger
from seamark.runtime.queue import Key

T = TypeVar("T")

# The limit of simultaneous writes for one workload, so that other clients of the server do not wait for all of them.
AT_ONCE = 32
FOLLOWING = 4  # writes that follow one that succeeded (two in Kubernetes): the limit is reached after three of them
_LONGEST_BASE = 58
_NAME_ATTEMPTS = 8


Verb = Literal["create", "delete"]
Wording = Callable[[Reference, Verb, str, ApiError | None], str]


def plain_wording(workload: Reference, verb: Verb, pod: str, error: ApiError | None) -> str:
    """The Event message of most workloads for a Pod that was, or could not be, created or deleted."""
    if error is not None:
        return f"Error {'creating' if verb == 'create' else 'deleting'}: {error}"
    return f"{'Created' if verb == 'create' else 'Deleted'} pod: {pod}"


async def slow_start(work: Iterable[T], do: Callable[[T], Awaitable[None]]) -> ApiError | None:
    """Do all work, until the first failure; returns its error, if any.

    A failure of one Pod (a quota, a refused template) usually affects all, so a thousand attempts would be wasted: one
    is made at first, and each that succeeds is followed by four, up to the limit at once.
    """
    left, failed, hands = iter(work), list[ApiError](), 1

    async def hand() -> None:
        nonlocal hands
        for item in left:
            try:
                await do(item)
            except ApiError as error:
                failed.append(error)
            if failed:
                return
            more = min(FOLLOWING - 1, AT_ONCE - hands)
            hands += more
            for _ in range(more):
                group.create_task(hand())

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(hand())
    except* Exception as several:
        raise several.exceptions[0] from None
    return failed[0] if failed else None


class PodKeeper:
    """Creates and deletes Pods for the workloads of one kind, and writes Events about it."""

    def __init__(
        self,
        cluster: Cluster,
        pods: Informer[Pod],
        recorder: EventRecorder,
        *,
        wording: Wording = plain_wording,
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._recorder = recorder
        self._wording = wording
        self._chance = random.Random()
        self._ledger = Ledger(pods, there=lambda pod: not pod.terminating)

    async def settled(self, key: Key) -> bool:
        """Whether the informer shows all writes for this workload; only then may more be made."""
        for pod in self._ledger.doubts(key):
            await self._resolve(key, pod)
        return self._ledger.caught_up(key)

    def forget(self, key: Key) -> None:
        """Drop everything recorded for a workload that is gone."""
        self._ledger.forget(key)

    async def create(self, key: Key, about: Reference, pods: Sequence[Object]) -> ApiError | None:
        """Create these Pods until one fails; returns the error, if any."""
        return await slow_start(pods, lambda pod: self._create(key, about, pod))

    async def delete(self, key: Key, about: Reference, pods: Sequence[Pod]) -> ApiError | None:
        """Delete these Pods; returns the error, if any."""
        outcomes: list[ApiError | None] = []
        for first in range(0, len(pods), AT_ONCE):
            some = pods[first : first + AT_ONCE]
            outcomes += await asyncio.gather(*(self._delete(key, about, pod) for pod in some))
        return next((outcome for outcome in outcomes if outcome is not None), None)

    # --- one Pod -----------------------------------------------------------------------------------

    async def _create(self, key: Key, about: Reference, pod: Object) -> None:
        namespace, workload = split_key(key)
        for attempt in range(1, _NAME_ATTEMPTS + 1):
            named = self._named(pod, workload)
            name = named["metadata"]["name"]
            try:
                made = await self._cluster.create(PODS, named, namespace=namespace, as_=Receipt)
                break
            except AlreadyExists:
                if "name" in pod["metadata"] or attempt == _NAME_ATTEMPTS:
                    raise
            except ApiError as error:
                if error.namespace_terminating:
                    return
                if error.uncertain:
                    self._ledger.doubt(key, key_of(namespace, name))
                self._tell(about, "create", name, error)
                raise
        self._ledger.wrote(key, made.version)
        self._tell(about, "create", name)

    def _named(self, pod: Object, workload: str) -> Object:
        """The Pod with a name: its own if it has one, or a random one that is most likely free."""
        prefix = pod["metadata"].get("generateName") or name_prefix(workload)
        chosen = prefix[:_LONGEST_BASE] + "".join(self._chance.choices(ALPHABET, k=5))
        return {**pod, "metadata": {"generateName": prefix, "name": chosen, **pod["metadata"]}}

    async def _delete(self, key: Key, about: Reference, pod: Pod) -> ApiError | None:
        meta = pod.metadata
        try:
            # The uid is given so that a new Pod of the same name is not deleted.
            await self._cluster.delete(PODS, meta.name, namespace=meta.namespace, uid=meta.uid)
        except NotFound:
            return None
        except ApiError as error:
            self._tell(about, "delete", meta.name, error)
            return error
        self._ledger.deleted(key, pod)
        self._tell(about, "delete", meta.name)
        return None

    def _tell(self, about: Reference, verb: Verb, pod: str, error: ApiError | None = None) -> None:
        outcome = "Successful" if error is None else "Failed"
        message = self._wording(about, verb, pod, error)
        type: Literal["Normal", "Warning"] = "Normal" if error is None else "Warning"
        self._recorder.record(about, type, reason=f"{outcome}{verb.capitalize()}", message=message)

    async def _resolve(self, key: Key, pod: Key) -> None:
        """Ask the server whether a Pod exists after the answer to its creation was lost."""
        namespace, name = split_key(pod)
        try:
            found = await self._cluster.get(PODS, name, namespace=namespace, as_=Receipt)
        except NotFound:
            self._ledger.certain(key, pod)
            return
        # It may have changed since its creation; waiting for the later version does no harm.
        self._ledger.wrote(key, found.version)
        self._ledger.certain(key, pod)
