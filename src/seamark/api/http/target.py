"""What a URL path means: a frozen :class:`Target`, parsed before anything is decided.

/api/v1/nodes                                       all objects of a cluster-wide kind
/api/v1/nodes/NAME[/SUBRESOURCE]                    one of them
/api/v1/pods                                        all objects of a namespaced kind, everywhere
/api/v1/namespaces/NS/pods[/NAME[/SUBRESOURCE…]]    those of one namespace, one of them
/api/v1/watch/…                                     the same, as a watch (an old form kept for old clients)
/apis/GROUP/VERSION/…                               the same for the other groups
"""

from __future__ import annotations

import msgspec

from seamark import errors
from seamark.kinds.kind import Kind, Subresource
from seamark.kinds.table import Kinds


class Target(msgspec.Struct, frozen=True, gc=False):
    """An object, a collection or a subresource.  ``rest`` is what follows a subresource (``proxy/PATH``)."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: Subresource | None = None
    rest: str = ""
    watch: bool = False


def not_found() -> errors.NotFound:
    """Nothing of that name is served here."""
    return errors.NotFound("the server could not find the requested resource", details={})


def not_allowed() -> errors.MethodNotAllowed:
    return errors.MethodNotAllowed("the server does not allow this method on the requested resource", details={})


def parse(path: str, kinds: Kinds) -> Target | None:
    """The target of a path below a served group and version; None if the group is not served at all.

    Raises NotFound for a resource that a served group does not have.
    """
    if path.startswith("//"):
        return None
    parts = path.strip("/").split("/")
    if parts[0] == "api":
        group, rest = "", parts[1:]
    elif parts[0] == "apis" and len(parts) > 1:
        group, rest = parts[1], parts[2:]
    else:
        return None
    if group and group not in kinds.groups:
        return None
    if len(rest) < 2:
        raise not_found()
    version, *rest = rest
    watch = rest[0] == "watch"
    if watch:
        rest = rest[1:]
    return _object(kinds, group, version, rest, watch)


def _object(kinds: Kinds, group: str, version: str, parts: list[str], watch: bool) -> Target:
    namespace = ""
    # `namespaces/NS/pods` leads into a namespace; `namespaces/NS/status` is the Namespace's own subresource.
    if len(parts) >= 3 and parts[0] == "namespaces":
        inner = kinds.by_plural(group, version, parts[2])
        if inner is not None and inner.resource.namespaced:
            namespace, parts = parts[1], parts[2:]
    kind = kinds.by_plural(group, version, parts[0]) if parts else None
    if kind is None:
        raise not_found()
    name = parts[1] if len(parts) > 1 else ""
    if kind.resource.namespaced and name and not namespace:
        raise not_found()
    subresource = None
    rest = ""
    if len(parts) > 2:
        subresource = next((s for s in kind.subresources if s.name == parts[2]), None)
        rest = "/".join(parts[3:])
        if subresource is None or (rest and subresource.name != "proxy"):
            raise not_found()
    return Target(kind, namespace, name, subresource, rest, watch)
