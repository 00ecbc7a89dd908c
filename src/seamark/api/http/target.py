"""What a URL path means, parsed before anything is decided.

/api/v1/nodes                                       all objects of a cluster-wide kind
/api/v1/nodes/NAME[/SUBRESOURCE]                    one of them
/api/v1/pods                                        all objects of a namespaced kind, in all namespaces
/api/v1/namespaces/NS/pods[/NAME[/SUBRESOURCE…]]    those of one namespace, one of them
/api/v1/watch/…                                     the same, as a watch (an old form kept for old clients)
/apis/GROUP/VERSION/…                               the same for the other groups
"""

from __future__ import annotations

import msgspec

from seamark.api.call import Target, not_found, target
from seamark.kinds.table import Kinds


class Place(msgspec.Struct, frozen=True, gc=False):
    """What a path leads to; ``watch`` if the path itself says that it is a watch."""

    target: Target
    watch: bool = False


def parse(path: str, kinds: Kinds) -> Place | None:
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
    return Place(_object(kinds, group, version, rest[1:] if watch else rest), watch)


def _object(kinds: Kinds, group: str, version: str, parts: list[str]) -> Target:
    namespace = ""
    # `namespaces/NS/pods` leads into a namespace; `namespaces/NS/status` is the Namespace's own subresource.
    if len(parts) >= 3 and parts[0] == "namespaces":
        inner = kinds.by_plural(group, version, parts[2])
        if inner is not None and inner.resource.namespaced:
            namespace, parts = parts[1], parts[2:]
    if not parts:
        raise not_found()
    plural, name, subresource = (*parts[:3], "", "")[:3]
    if len(parts) > 2 and not subresource:
        raise not_found()
    found = target(kinds.by_plural(group, version, plural), namespace, name, subresource)
    if len(parts) > 3 and not (found.subresource is not None and found.subresource.goes_on):
        raise not_found()
    return found
