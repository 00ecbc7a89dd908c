"""Bookmarks: an object of the watched kind that holds nothing but a version."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from seamark.api.render import Renderer
from seamark.errors import Object
from seamark.kinds import decode, shapes
from seamark.kinds.kind import Kind


@lru_cache(maxsize=256)
def _blank(kind: Kind) -> bytes:
    """An empty object of a kind, as Go would encode it."""
    return msgspec.json.encode(decode.conform({}, shapes.of(kind.shape))[0])


def bookmark(renderer: Renderer, metadata: Object) -> bytes:
    """The bookmark's object in the representation the watch was opened with."""
    resource = renderer.kind.resource
    blank = msgspec.json.decode(_blank(renderer.kind))
    obj = {**blank, "kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    match renderer.representation.as_:
        case "Table":
            shown: Object = {
                "kind": "Table",
                "apiVersion": f"meta.k8s.io/{renderer.representation.version}",
                "metadata": {"resourceVersion": metadata["resourceVersion"]},
                "columnDefinitions": None,
                "rows": [{"cells": list(renderer.kind.row(obj, renderer.clock())), "object": obj}],
            }
        case "PartialObjectMetadata":
            shown = renderer.shown(obj)
        case _:
            shown = obj
    return msgspec.json.encode(shown)
