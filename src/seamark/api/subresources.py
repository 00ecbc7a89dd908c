"""Subresources that are no mere view of their object: scale, binding and eviction."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from seamark.api.context import Writing
from seamark.api.delete import Deleter
from seamark.api.fields import fieldsets, managed
from seamark.api.fields.edits import shown
from seamark.api.fields.managed import Entries
from seamark.api.http.options import DeleteOptions
from seamark.api.write import Writer
from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.pod import binding as bindings
from seamark.kinds.resource import PODS, Resource
from seamark.kinds.table import Kinds
from seamark.kinds.workloads import scale


class BindingKind(Kind):
    """``bindings``: the older way to post a Binding; like a review it is done and forgotten."""

    resource = Resource("", "v1", "bindings", "Binding")
    singular = "binding"
    shape_name = "io.k8s.api.core.v1.Binding"
    verbs = ("create",)


BINDING = BindingKind()
_REPLICAS: fieldsets.Fields = {"f:spec": {"f:replicas": {}}}


def applied_scale(kind: Kind, edit: Callable[[Object | None], Object]) -> Callable[[Object], Object]:
    """What a server-side apply of a Scale makes of a workload; ``edit`` is the apply to the Scale itself.

    Whoever owns the workload's replicas owns those of its Scale, and the other way round.
    """

    def make(old: Object) -> Object:
        current = shown(kind, old)
        entries = managed.parse(old["metadata"].get("managedFields") or ())
        live = scale.of(kind, current)
        live["metadata"]["managedFields"] = [
            {**entry, "apiVersion": scale.SCALES.api_version, "fieldsV1": _REPLICAS}
            for entry in entries
            if fieldsets.intersection(entry["fieldsV1"], _REPLICAS)
        ]
        applied = edit(live)
        changed = scale.apply(kind, current, applied)
        owners = managed.parse(applied["metadata"].get("managedFields") or ())
        changed["metadata"]["managedFields"] = _with_owners(kind, entries, owners)
        return changed

    return make


def _with_owners(kind: Kind, entries: Entries, owners: Entries) -> Entries:
    """The workload's managers, when these are left to own the replicas of its Scale."""
    new = {_who(owner): owner for owner in owners}
    left: Entries = []
    for entry in entries:
        fields = entry["fieldsV1"]
        if _who(entry) not in new:
            fields = fieldsets.difference(fields, _REPLICAS)
        elif fieldsets.intersection(fields, _REPLICAS):
            del new[_who(entry)]
        if fields:
            left.append({**entry, "fieldsV1": fields})
    left += ({**owner, "apiVersion": kind.resource.api_version} for owner in new.values())
    return managed.arranged(left)


def _who(entry: Object) -> tuple[str, str, str]:
    return entry.get("manager", ""), entry.get("operation", ""), entry.get("subresource", "")


async def bind(writer: Writer, kinds: Kinds, namespace: str, name: str, binding: Object, how: Writing) -> None:
    """Give a Pod its node, once."""
    pods = kinds.by_plural(PODS.group, PODS.version, PODS.plural)
    assert pods is not None, "Pods are always served"

    def make(old: Object) -> Object:
        pod = bindings.bind(shown(pods, old), binding, how.now)
        writer.admission.copy_topology(pod, pod["spec"]["nodeName"])
        return pod

    await writer.edit(pods, namespace, name, make, how)


async def evict(
    writer: Writer, deleter: Deleter, where: tuple[Kind, str, str], options: DeleteOptions, how: Writing
) -> None:
    """Say in the Pod's status why it goes, then delete it; ``where`` is the Pod's kind, namespace and name."""
    if how.dry_run:
        await deleter.delete(*where, options, how)
        return

    def make(old: Object) -> Object:
        deleter.check(where[0], old["metadata"], options, where[2])
        return bindings.evicted(shown(where[0], old), how.now)

    written = await writer.edit(*where, make, how)
    if options.version:
        options = msgspec.structs.replace(options, version=str(written.entry.revision))
    await deleter.delete(*where, options, how)
