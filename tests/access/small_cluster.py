"""A cluster of one resource in a few lines: a log of versions that can be forgotten, and watches that can be cut."""

import asyncio

import msgspec

from seamark import errors
from seamark.access.cluster import Change, Listing, Unreadable
from seamark.kinds.values.selectors import parse_labels


class SmallCluster:
    def __init__(self):
        self.version = 1
        self.compacted = 1
        self.objects = {}
        self.log = []  # (version, type, object)
        self.failures = []  # errors that the next requests end with
        self.lists = 0
        self.open = 0  # watches right now
        self._news = asyncio.Event()
        self._cut = None  # an error, or "end", for every open watch

    # --- what happens to it ------------------------------------------------------------------------

    def put(self, name, **fields):
        before = self.objects.get(name)
        uid = before["metadata"]["uid"] if before else f"uid-{self.version + 1}"
        self._write(name, "MODIFIED" if before else "ADDED", fields, uid)

    def remove(self, name):
        if before := self.objects.pop(name, None):
            self._log("DELETED", {**before, "metadata": {**before["metadata"], "resourceVersion": self._next()}})

    def bookmark(self):
        self._log("BOOKMARK", {"metadata": {"resourceVersion": self._next()}})

    def compact(self):
        self.compacted = self.version

    def cut(self, error="end"):
        self._cut = error
        self._wake()

    def _write(self, name, type_, fields, uid):
        metadata = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": self._next()}
        if "labels" in fields:
            metadata["labels"] = fields.pop("labels")
        self.objects[name] = {"metadata": metadata, **fields}
        self._log(type_, self.objects[name])

    def _next(self):
        self.version += 1
        return str(self.version)

    def _log(self, type_, obj):
        self.log.append((self.version, type_, obj))
        self._wake()

    def _wake(self):
        self._news.set()
        self._news = asyncio.Event()

    # --- the seam ----------------------------------------------------------------------------------

    async def list(self, resource, *, namespace="", labels="", fields="", as_=dict):
        self.lists += 1
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        selector = parse_labels(labels)
        items = [o for o in self.objects.values() if selector.matches(o["metadata"].get("labels", {}))]
        found = [(decoded(obj, as_), strange(obj, as_)) for obj in items]
        version = str(self.version)
        return Listing([obj for obj, no in found if no is None], version, [no for _, no in found if no is not None])

    async def watch(self, resource, *, since, namespace="", labels="", fields="", as_=dict):
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        if int(since) < self.compacted:
            raise errors.Expired("too old resource version")
        self._cut = None
        self.open += 1
        try:
            yield Change("BOOKMARK", None, since)
            async for change in self._changes(int(since), as_):
                yield change
        finally:
            self.open -= 1

    async def _changes(self, at, as_):
        while True:
            news = self._news
            for version, type_, obj in [entry for entry in self.log if entry[0] > at]:
                if self._cut is not None:
                    break
                at = version
                if type_ == "BOOKMARK":
                    yield Change(type_, None, str(version))
                else:
                    yield Change(type_, decoded(obj, as_), str(version), strange(obj, as_))
            if self._cut == "end":
                return
            if self._cut is not None:
                raise self._cut
            await news.wait()


def decoded(obj, as_):
    """The object in this view; None if the view cannot hold it."""
    return msgspec.convert(obj, as_) if strange(obj, as_) is None else None


def strange(obj, as_):
    """The reason why the view cannot hold the object; None if it can."""
    try:
        msgspec.convert(obj, as_)
    except msgspec.ValidationError as error:
        return Unreadable.of(msgspec.json.encode(obj), error)
    return None
