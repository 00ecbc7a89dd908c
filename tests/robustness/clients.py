"""Clients that do random things to a few objects and write down what became of it, and watchers of the same objects."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol

from history import LAST, Recorder, Seen, Verb

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.errors import Object
from seamark.kinds.resource import CONFIGMAPS, SERVICES, Resource

NAMESPACE = "robust"
RESOURCES: Mapping[str, Resource] = {"configmaps/": CONFIGMAPS, "services/": SERVICES}
# Few names and a small range, so that clients get into each other's way; END is for the end of a run.
NAMES = ("a", "b", "c", "d")
END = "end"
RANGE = "10.96.0.0/28"
ADDRESSES = ("10.96.0.5", "10.96.0.6")
NODE_PORTS = (30000, 30005)

VERBS: Mapping[str, Mapping[Verb, int]] = {
    "configmaps/": {"create": 4, "update": 6, "patch": 4, "apply": 3, "delete": 2, "get": 6, "list": 2},
    "services/": {"create": 12, "update": 2, "patch": 3, "delete": 12, "get": 2, "list": 2},
}


class Site(Protocol):
    """Where a run happens: servers to talk to, which may go away."""

    def cluster(self) -> Cluster:
        """One of the servers."""
        ...

    async def reachable(self) -> None:
        """Wait until it is worth trying again."""
        ...


def seen_of(resource: str, obj: Object) -> Seen:
    """What a history keeps of an object."""
    meta, spec = obj["metadata"], obj.get("spec") or {}
    ports = [f"node port {port['nodePort']}" for port in spec.get("ports") or () if port.get("nodePort")]
    claims = (*(spec.get("clusterIPs") or ()), *ports)
    return Seen(resource + meta["name"], int(meta["resourceVersion"]), meta.get("annotations", {}), meta["uid"], claims)


class Client:
    """One client: one operation at a time, chosen by its own seeded random.

    Sometimes it loses patience with a request (``gives_up``), and then does not know what became of it.
    """

    def __init__(self, name: str, site: Site, recorder: Recorder, chance: random.Random, *, gives_up: float) -> None:
        self.name = name
        self._site = site
        self._recorder = recorder
        self._chance = chance
        self._gives_up = gives_up
        self._tokens = 0
        self._known: dict[str, Object] = {}  # by key: the object as this client saw it last

    async def run(self, operations: int) -> None:
        for _ in range(operations):
            resource = self._chance.choice(list(RESOURCES))
            verbs = VERBS[resource]
            (verb,) = self._chance.choices(list(verbs), list(verbs.values()))
            await self.perform(verb, resource + ("" if verb == "list" else self._chance.choice(NAMES)))

    async def insist(self, key: str, *verbs: Verb) -> int:
        """Try the verbs in turn until one is done; returns the version."""
        while True:
            for verb in verbs:
                if done := await self.perform(verb, key):
                    return done

    async def perform(self, verb: Verb, key: str) -> int:
        """One operation, recorded; returns the version in the answer, 0 if there is none."""
        prefix, _, name = key.partition("/")
        resource, cluster = RESOURCES[f"{prefix}/"], self._site.cluster()
        where: dict[str, Any] = {"namespace": NAMESPACE}
        notes = self._notes()
        known = self._known.get(key)
        version = known["metadata"]["resourceVersion"] if known is not None else ""
        facts: dict[str, Any] = {"sent": notes}
        call: Awaitable[Any]
        match verb:
            case "create":
                call = cluster.create(resource, self._new(resource, name, notes), **where)
            case "update" if known is None:
                return await self.perform("get", key)
            case "update":
                facts["expected"] = int(version)
                changed = {**known, "metadata": {**known["metadata"], "annotations": notes}}
                call = cluster.update(resource, changed, **where)
            case "patch":
                call = cluster.patch(resource, name, self._patch(resource, notes), **where)
            case "apply":
                body = {"apiVersion": "v1", "kind": resource.kind, "metadata": {"name": name, "annotations": notes}}
                more = {"type": "apply", "field_manager": self.name, "force": True}
                call = cluster.patch(resource, name, body, **more, **where)
            case "delete":
                careful = bool(version) and self._chance.random() < 0.5
                facts = {"expected": int(version)} if careful else {}
                call = cluster.delete(resource, name, version=version if careful else "", **where)
            case "get":
                facts = {}
                call = cluster.get(resource, name, **where)
            case "list":
                facts = {}
                call = cluster.list(resource, **where)
        return await self._recorded(verb, key, call, facts)

    async def _recorded(self, verb: Verb, key: str, call: Awaitable[Any], facts: Object) -> int:
        operation = self._recorder.begin(self.name, verb, key, **facts)
        try:
            answer = await self._patiently(call)
        except errors.ApiError as error:
            if never_sent(error):
                self._recorder.never_sent(operation)
                await self._site.reachable()
                return 0
            outcome = "unknown" if error.uncertain else "refused"
            self._recorder.end(operation, outcome, reason=error.reason)
            if error.uncertain:
                await self._site.reachable()
            if error.code in (404, 409):
                self._known.pop(key, None)
            return 0
        except asyncio.CancelledError:
            if asyncio.current_task().cancelling():  # type: ignore[union-attr]  # a coroutine runs in a task
                raise
            self._recorder.end(operation, "unknown", reason="gave up")
            return 0
        prefix = key[: key.index("/") + 1]
        if verb == "list":
            version, seen = int(answer.version), [seen_of(prefix, item) for item in answer.items]
        elif verb == "delete":
            version, seen = 0, []
        else:
            self._known[key] = answer
            version, seen = int(answer["metadata"]["resourceVersion"]), [seen_of(prefix, answer)]
        self._recorder.end(operation, "done", version=version, seen=tuple(seen))
        return version

    async def _patiently(self, call: Awaitable[Any]) -> Any:
        """The answer, unless the client gives up after some turns of the event loop; CancelledError if it does."""
        if self._chance.random() >= self._gives_up:
            return await call
        task = asyncio.ensure_future(call)
        for _ in range(self._chance.randrange(1, 30)):
            await asyncio.sleep(0)
        task.cancel()
        return await task

    def _notes(self) -> dict[str, str]:
        """The annotations of a write: its token, also under this client's own name, which others leave alone."""
        self._tokens += 1
        token = f"{self.name}-{self._tokens}"
        return {LAST: token, self.name: token}

    def _new(self, resource: Resource, name: str, notes: Mapping[str, str]) -> Object:
        obj: Object = {"metadata": {"name": name, "annotations": notes}}
        if resource is not SERVICES:
            return obj
        port: Object = {"port": 80}
        obj["spec"] = {"type": self._chance.choice(("ClusterIP", "NodePort", "NodePort")), "ports": [port]}
        if obj["spec"]["type"] == "NodePort" and self._chance.random() < 0.7:
            port["nodePort"] = self._chance.choice(NODE_PORTS)
        if self._chance.random() < 0.3:
            obj["spec"]["clusterIP"] = self._chance.choice(ADDRESSES)
        return obj

    def _patch(self, resource: Resource, notes: Mapping[str, str]) -> Object:
        patch: Object = {"metadata": {"annotations": notes}}
        if resource is SERVICES and self._chance.random() < 0.5:
            patch["spec"] = {"type": self._chance.choice(("ClusterIP", "NodePort"))}
        return patch


def never_sent(error: errors.ApiError) -> bool:
    """Whether the server could not even be connected to, so that the request cannot have been done."""
    return error.message.startswith("cannot reach ")


class Watcher:
    """Lists, watches on from there, and reconnects where it was, whenever the watch ends or it feels like it."""

    def __init__(self, name: str, resource: str, site: Site, recorder: Recorder, chance: random.Random) -> None:
        self.name, self.resource = name, resource
        self.version = 0  # the last one it was told
        self._site = site
        self._recorder = recorder
        self._chance = chance

    def begin(self, version: int) -> None:
        """Begin at a version at which nothing was there."""
        self.version = version
        self._recorder.deliver(self.name, self.resource, "LISTED", version)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                if not self.version:
                    await self._list()
                await self._watch()
            except (errors.Expired, errors.Gone):
                self.version = 0
            except errors.ApiError:
                await self._site.reachable()

    async def _list(self) -> None:
        listing = await self._site.cluster().list(RESOURCES[self.resource], namespace=NAMESPACE)
        self.version = int(listing.version)
        seen = [seen_of(self.resource, item) for item in listing.items]
        self._recorder.deliver(self.name, self.resource, "LISTED", self.version, seen)

    async def _watch(self) -> None:
        changes = self._site.cluster().watch(RESOURCES[self.resource], since=str(self.version), namespace=NAMESPACE)
        try:
            async for change in changes:
                seen = [] if change.object is None else [seen_of(self.resource, change.object)]
                self._recorder.deliver(self.name, self.resource, change.type, int(change.version), seen)
                self.version = int(change.version)
                if self._chance.random() < 0.03:
                    return
        finally:
            await changes.aclose()  # type: ignore[attr-defined]  # an async generator, which has it


async def settle(site: Site, recorder: Recorder, watchers: Sequence[Watcher]) -> None:
    """Write until every watcher has been told of a write made after all others, and read everything once more."""
    last = Client("last", site, recorder, random.Random(0), gives_up=0)
    for resource in RESOURCES:
        goal = await last.insist(resource + END, "create", "patch")
        await _told(last, goal, [watcher for watcher in watchers if watcher.resource == resource])
        await last.insist(resource, "list")
        # Watch once more from before the first write, so that the past is told as it was told when it happened.
        replay = Watcher(f"replay-{resource[:-1]}", resource, site, recorder, random.Random(0))
        replay.begin(recorder.beginning)
        watching, told = asyncio.create_task(replay.run()), asyncio.create_task(_told(last, goal, [replay]))
        await asyncio.wait([watching, told], return_when=asyncio.FIRST_COMPLETED)
        await stop(watching)
        await told


async def _told(last: Client, goal: int, watchers: Sequence[Watcher]) -> None:
    """Wait until watchers of one resource have come as far; each time write, for one that was not told of the rest."""
    while any(watcher.version < goal for watcher in watchers):
        await last.insist(watchers[0].resource + END, "create", "patch")
        await asyncio.sleep(0.01)


async def stop(task: asyncio.Task[None]) -> None:
    """End a task, passing on what it failed with."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
