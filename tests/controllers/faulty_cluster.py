"""A cluster seen through a bad connection: requests fail before or after they are done, watches lag, others meddle."""

import asyncio


def each_once(coming):
    """A fault for each (verb, resource, fault) of this list, which is empty once all of them have happened."""

    def fault(verb, resource, name):
        found = next((entry for entry in coming if entry[:2] == (verb, resource)), None)
        if found is None:
            return None
        coming.remove(found)
        return found[2]

    return fault


class FaultyCluster:
    """Hands everything on to another cluster, as far as its faults allow.

    ``fault(verb, resource, name)`` may return an error to raise instead of doing it, or ("after", error) to raise once
    it is done.  Watches of resources that ``lag`` deliver nothing.  ``before`` is awaited before every write.
    """

    def __init__(self, cluster, fault=lambda verb, resource, name: None):
        self.cluster = cluster
        self.fault = fault
        self.before = None
        self._behind = {}

    def lag(self, *resources):
        self._behind = {resource: asyncio.Event() for resource in resources}

    def catch_up(self):
        for event in self._behind.values():
            event.set()
        self._behind = {}

    async def get(self, resource, name, **more):
        return await self._do("get", resource, name, self.cluster.get(resource, name, **more))

    async def list(self, resource, **more):
        return await self._do("list", resource, "", self.cluster.list(resource, **more))

    async def watch(self, resource, **more):
        error = self.fault("watch", resource, "")
        if error is not None:
            raise error
        async for change in self.cluster.watch(resource, **more):
            if resource in self._behind:
                await self._behind[resource].wait()
            yield change

    async def create(self, resource, object, **more):
        return await self._write("create", resource, "", self.cluster.create(resource, object, **more))

    async def update(self, resource, object, **more):
        name = object["metadata"]["name"] if isinstance(object, dict) else object.metadata.name
        return await self._write("update", resource, name, self.cluster.update(resource, object, **more))

    async def patch(self, resource, name, patch, **more):
        return await self._write("patch", resource, name, self.cluster.patch(resource, name, patch, **more))

    async def delete(self, resource, name, **more):
        return await self._write("delete", resource, name, self.cluster.delete(resource, name, **more))

    async def _write(self, verb, resource, name, doing):
        if self.before is not None:
            try:
                await self.before(verb, resource, name)
            except BaseException:
                doing.close()
                raise
        return await self._do(verb, resource, name, doing)

    async def _do(self, verb, resource, name, doing):
        error = self.fault(verb, resource, name)
        if error is not None and not isinstance(error, tuple):
            doing.close()
            raise error
        answer = await doing
        if error is not None:
            raise error[1]
        return answer
