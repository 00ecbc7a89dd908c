"""Bookmarks: an object of the watched kind that holds nothing but a version."""

from __future__ import annotations

import msgspec

from seamark.api.state.render import Renderer
from seamark.errors import Object
from seamark.kinds.language import decode
from seamark.kinds.language.shape import Shape


def _blank(shape: Shape) -> bytes:
    """An empty object, as Go would encode it."""
    return msgspec.json.encode(decode.conform({}, shape)[0])


def bookmark(renderer: Renderer, metadata: Object, first: bool) -> bytes:
    """The bookmark's object in the representation the watch was opened with; ``first`` if no event came before it."""
    resource = renderer.kind.resource
    blank = msgspec.json.decode(renderer.kind.shape.form(_blank))
    obj = {**blank, "kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    return msgspec.json.encode(renderer.in_watch(obj, first=first))
