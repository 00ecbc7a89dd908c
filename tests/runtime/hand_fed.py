"""An informer that a test feeds by hand, as a server would."""

from seamark.access.cluster import Change
from seamark.access.informer import Informer
from seamark.kinds.resource import PODS
from seamark.rules.objects.metadata import Metadata, View


class Thing(View, frozen=True):
    metadata: Metadata
    color: str = ""


def thing(name, version, *, uid="", color="", deleted=False):
    when = "2026-01-01T00:00:00Z" if deleted else None
    meta = Metadata(
        name=name, namespace="default", uid=uid or f"uid-{name}", resource_version=str(version), deletion_timestamp=when
    )
    return Thing(meta, color)


class HandFed(Informer):
    def __init__(self, *things):
        super().__init__(None, PODS, as_=Thing)
        self.last_version = "1"
        for each in things:
            self.show(each)
        self.synced.set()

    def show(self, obj):
        """A watch event: the object is there and like this."""
        self._apply(Change("MODIFIED", obj, obj.metadata.resource_version))

    def drop(self, name, version):
        """A watch event: the object is gone."""
        self._apply(Change("DELETED", self.get(name, "default"), str(version)))

    def reach(self, version):
        """A bookmark, or another object changed."""
        self._apply(Change("BOOKMARK", None, str(version)))
