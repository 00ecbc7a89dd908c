"""A cluster that notes what is asked of it, in RBAC's words: (verb, group, resource)."""


class RecordingCluster:
    def __init__(self, cluster):
        self.cluster = cluster
        self.calls = set()

    def _note(self, verb, resource, subresource=""):
        self.calls.add((verb, resource.group, resource.plural + (f"/{subresource}" if subresource else "")))

    async def get(self, resource, name, **more):
        self._note("get", resource)
        return await self.cluster.get(resource, name, **more)

    async def list(self, resource, **more):
        self._note("list", resource)
        return await self.cluster.list(resource, **more)

    async def watch(self, resource, **more):
        self._note("watch", resource)
        async for change in self.cluster.watch(resource, **more):
            yield change

    async def create(self, resource, object, *, subresource="", **more):
        self._note("create", resource, subresource)
        return await self.cluster.create(resource, object, subresource=subresource, **more)

    async def update(self, resource, object, *, subresource="", **more):
        self._note("update", resource, subresource)
        return await self.cluster.update(resource, object, subresource=subresource, **more)

    async def patch(self, resource, name, patch, *, subresource="", **more):
        self._note("patch", resource, subresource)
        return await self.cluster.patch(resource, name, patch, subresource=subresource, **more)

    async def delete(self, resource, name, **more):
        self._note("delete", resource)
        return await self.cluster.delete(resource, name, **more)

    async def delete_all(self, resource, **more):
        self._note("deletecollection", resource)
        return await self.cluster.delete_all(resource, **more)
