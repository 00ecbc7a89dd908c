"""Bookmarks: an object of the watched kind that holds nothing but a version."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from seamark.api.state.render import Renderer
from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.language import decode, shapes


@lru_cache(maxsize=256)
def _blank(kind: Kind) -> bytes:
    """An empty object of a kind, as Go would encode it."""
    return msgspec.json.encode(decode.conform({}, shapes.of(kind.shape))[0])


def bookmark(renderer: Renderer, metadata: Object, first: bool) -> bytes:
    """The bookmark's object in the representation the watch was opened with; ``first`` if no event came before it."""
    resource = renderer.kind.resource
    blank = msgspec.json.decode(_blank(renderer.kind))
    obj = {**blank, "kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    return msgspec.json.encode(renderer.in_watch(obj, first=first))
