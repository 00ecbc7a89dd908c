"""The slices one controller manages, by Service: as seen through its informer, or as just written if that is newer.

An informer is always a little behind.  A controller that planned from it alone would write the same thing again, so
what it writes counts at once, and what the informer then tells about the time before is recognised as old news.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from seamark.access.informer import key_of
from seamark.kinds.wellknown import SERVICE_NAME_LABEL, SLICE_MANAGED_BY_LABEL
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.runtime.confirmations import Confirmations

Key = str
_NONE: Mapping[str, EndpointSlice] = {}


class Sighting(msgspec.Struct, frozen=True):
    """News of a slice: what it is now, None if it is gone from this Service.

    ``taken`` says that it still exists, but is no longer ours or no longer this Service's.  ``trifling`` is what does
    not count as a new generation, such as annotations: it has to be known, but is no reason to look at the Service.
    """

    key: Key
    name: str
    slice: EndpointSlice | None
    taken: bool = False
    trifling: bool = False


class SliceStore:
    """Slices by Service, of one controller."""

    def __init__(self, managed_by: str, confirmations: Confirmations) -> None:
        self._managed_by = managed_by
        self._confirmations = confirmations
        self._shown: set[Key] = set()  # slices the informer knows of, and so would tell us when they go
        self._by_service: dict[Key, dict[str, EndpointSlice]] = {}
        self._where: dict[Key, Key] = {}  # each slice's key → its Service's key
        self._deleted: dict[Key, str] = {}  # slices we have deleted and not yet seen gone, with their uids

    def of(self, service: Key) -> Mapping[str, EndpointSlice]:
        return self._by_service.get(service, _NONE)

    def wrote(self, service: Key, endpoint_slice: EndpointSlice) -> None:
        """We created or updated it, and this is what the server made of it."""
        meta = endpoint_slice.metadata
        key = key_of(meta.namespace, meta.name)
        known = self._known(key)
        if known is not None and known.metadata.uid == meta.uid and known.metadata.generation > meta.generation:
            return  # the informer was faster than the answer, and tells of more than that
        if key not in self._shown:
            self._confirmations.expect(key, service)
        self._put(service, key, endpoint_slice)

    def deleted(self, endpoint_slice: EndpointSlice) -> None:
        """We deleted it, or found it gone."""
        meta = endpoint_slice.metadata
        key = key_of(meta.namespace, meta.name)
        self._confirmations.settle(key)
        if self._take(key) is not None and key in self._shown:
            self._deleted[key] = meta.uid

    def replace(self, service: Key, slices: Mapping[str, EndpointSlice]) -> None:
        """This is all there is for the Service, read from the server itself."""
        for known in list(self.of(service).values()):
            if known.metadata.name not in slices:
                self.deleted(known)
        for endpoint_slice in slices.values():
            self.wrote(service, endpoint_slice)

    def see(self, old: EndpointSlice | None, new: EndpointSlice | None) -> list[Sighting]:
        """Take in what an informer tells; what is left is news."""
        present = new if new is not None else old
        assert present is not None  # an informer never tells nothing about nothing
        meta = present.metadata
        key = key_of(meta.namespace, meta.name)
        known = self._known(key)
        self._confirmations.settle(key)
        if new is None:
            self._shown.discard(key)
        else:
            self._shown.add(key)
        if self._deleted.get(key) == meta.uid:
            if new is None:
                del self._deleted[key]
            return []
        if new is None:
            if known is None or known.metadata.uid != meta.uid:
                return []
            return [Sighting(self._take(key) or "", meta.name, None)]
        if known is not None and _outdated(new, known):
            return []
        service = self._service_of(new)
        news = []
        before = self._where.get(key)
        if before is not None and before != service:
            self._take(key)
            news.append(Sighting(before, meta.name, None, taken=True))
        if service is not None:
            self._put(service, key, new)
            trifling = before == service and known is not None and _same_generation(new, known)
            news.append(Sighting(service, meta.name, new, trifling=trifling))
        return news

    def _service_of(self, endpoint_slice: EndpointSlice) -> Key | None:
        meta = endpoint_slice.metadata
        service = meta.labels.get(SERVICE_NAME_LABEL, "")
        if meta.labels.get(SLICE_MANAGED_BY_LABEL) != self._managed_by or not service:
            return None
        return key_of(meta.namespace, service)

    def _known(self, key: Key) -> EndpointSlice | None:
        service = self._where.get(key)
        return self._by_service[service][key.rpartition("/")[2]] if service is not None else None

    def _put(self, service: Key, key: Key, endpoint_slice: EndpointSlice) -> None:
        self._deleted.pop(key, None)
        if self._where.get(key, service) != service:
            self._take(key)
        self._where[key] = service
        self._by_service.setdefault(service, {})[endpoint_slice.metadata.name] = endpoint_slice

    def _take(self, key: Key) -> Key | None:
        """Forget a slice; says whose it was."""
        service = self._where.pop(key, None)
        if service is not None:
            slices = self._by_service[service]
            del slices[key.rpartition("/")[2]]
            if not slices:
                del self._by_service[service]
        return service


def _same_generation(seen: EndpointSlice, known: EndpointSlice) -> bool:
    """Whether only metadata has been written since; a server that counts no generations leaves that open."""
    new, old = seen.metadata, known.metadata
    return (
        new.uid == old.uid
        and new.generation == old.generation > 0
        and new.resource_version != old.resource_version
        and new.deletion_timestamp == old.deletion_timestamp
    )


def _outdated(seen: EndpointSlice, known: EndpointSlice) -> bool:
    """Whether the informer tells of a state we already know, or of one before it."""
    new, old = seen.metadata, known.metadata
    if new.uid != old.uid:
        return False
    if new.resource_version == old.resource_version:
        # Known from the answer to our own write, whose content is what we sent; a server may have changed that.
        return seen.endpoints == known.endpoints and seen.ports == known.ports
    return new.generation < old.generation
