"""The metadata of an object, and the references from one object to another."""

import msgspec


class View(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A part of an object as it is on the wire: unnamed fields are dropped, missing ones get their default."""


class OwnerReference(View, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Metadata(View, frozen=True):
    """All of ``metadata`` but ``managedFields``, which the API server keeps when a write leaves them out."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """``default/web``, or just ``node-a`` for an object outside of namespaces: the key informers use."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def controller(self) -> OwnerReference | None:
        """The one owner that manages it, if there is one."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


class ObjectView(View, frozen=True):
    """A part of an object with all of its metadata; the base of the views that informers keep."""

    metadata: Metadata


def namespace_of(view: ObjectView) -> tuple[str, ...]:
    """The key of an index by namespace; one function for all, because readers share indexes by their function."""
    return (view.metadata.namespace,)


class Written(ObjectView, frozen=True):
    """The answer to a write.  Only its metadata is decoded: the writer knows the rest."""


class ObjectReference(View, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""
