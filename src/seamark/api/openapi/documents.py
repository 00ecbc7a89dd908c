"""OpenAPI: what ``kubectl explain``, code generators and other readers of schemas ask for.

    /openapi/v3                  which documents there are
    /openapi/v3/apis/apps/v1     the document of one group version
    /openapi/v2                  everything in one document of the older dialect

Documents are made from the kinds and their shapes when first asked for, and kept as bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources

import msgspec

from seamark import __version__
from seamark.api.http.negotiate import not_acceptable, parse_accept
from seamark.api.http.protocol import Request, Response
from seamark.api.openapi import field_docs
from seamark.api.openapi import paths as openapi_paths
from seamark.api.openapi import protobuf as openapi_protobuf
from seamark.api.openapi.discovery import by_version
from seamark.api.openapi.schemas import definitions
from seamark.errors import Object
from seamark.kinds.kind import Kind

JSON = "application/json"
PLAIN_TEXT = "text/plain; charset=utf-8"

# Raise it when documents change though neither kinds, shapes nor words did: clients keep documents by their hash.
_EDITION = 1

Kinds = tuple[Kind, ...]


def answer(kinds: Iterable[Kind], request: Request) -> Response | None:
    """The answer to a path below ``/openapi``, None if nothing is there."""
    fixed = tuple(kinds)
    parts = request.path.strip("/").split("/")
    if parts == ["openapi", "v2"]:
        if _accepts(request, JSON, *openapi_protobuf.ACCEPTED) == JSON:
            return _respond(request, document_v2(fixed), JSON)
        return _respond(request, protobuf_v2(fixed), openapi_protobuf.CONTENT_TYPE)
    if parts == ["openapi", "v3"]:
        return _respond(request, index_v3(fixed), PLAIN_TEXT)
    if parts[:2] != ["openapi", "v3"]:
        return None
    found = group_version("/".join(parts[2:]), fixed)
    if found is None:
        return None
    _accepts(request, JSON)
    wanted = _hash(fixed, *found)
    _, _, given = request.query.partition("hash=")
    given = given.partition("&")[0]
    if given and given != wanted:
        return Response(301, b"", PLAIN_TEXT, (("Location", f"{request.path}?hash={wanted}"),))
    return _respond(request, document_v3(fixed, *found), JSON, forever=bool(given))


def _accepts(request: Request, *offered: str) -> str:
    """The one of these media types that the client likes best, the first if it takes anything; else a 406."""
    liked = [media.type for media in parse_accept(request.headers.get("accept", "")) if media.quality > 0]
    for name in liked or ["*/*"]:
        if name in ("*/*", "application/*"):
            return offered[0]
        if name in offered:
            return name
    raise not_acceptable()


def _respond(request: Request, body: bytes, content_type: str, *, forever: bool = False) -> Response:
    tag = f'"{hashlib.sha256(body).hexdigest().upper()}"'
    headers = [("ETag", tag), ("Vary", "Accept")]
    if forever:
        headers.append(("Cache-Control", "public, immutable, max-age=31536000"))
    if request.headers.get("if-none-match") == tag:
        return Response(304, b"", content_type, headers)
    return Response(200, body, content_type, headers)


def group_version(path: str, kinds: Kinds) -> tuple[str, str] | None:
    """``apis/apps/v1`` → ``apps``, ``v1``, if that is served."""
    match path.split("/"):
        case ["api", version]:
            found = "", version
        case ["apis", group, version]:
            found = group, version
        case _:
            return None
    return found if found[1] in by_version(kinds).get(found[0], {}) else None


# --- documents -------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def index_v3(kinds: Kinds) -> bytes:
    """Where the documents are; the hash in an address changes when the document does."""
    found: Object = {}
    for group, versions in by_version(kinds).items():
        for version in versions:
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            found[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={_hash(kinds, group, version)}"}
    return msgspec.json.encode({"paths": dict(sorted(found.items()))})


@lru_cache(maxsize=64)
def document_v3(kinds: Kinds, group: str, version: str) -> bytes:
    """One group version's paths and schemas."""
    members = by_version(kinds)[group][version]
    document = {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": openapi_paths.paths(members),
        "components": {
            "schemas": definitions(openapi_paths.shapes_of(members), "v3", _group_versions(kinds)),
            "securitySchemes": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
        },
        "security": [{"BearerToken": []}],
    }
    return msgspec.json.encode(document)


@lru_cache(maxsize=4)
def document_v2(kinds: Kinds) -> bytes:
    """All paths and definitions."""
    return msgspec.json.encode(_v2(kinds))


@lru_cache(maxsize=4)
def protobuf_v2(kinds: Kinds) -> bytes:
    """The same in protobuf."""
    return openapi_protobuf.document(_v2(kinds))


def _v2(kinds: Kinds) -> Object:
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": openapi_paths.as_v2(openapi_paths.paths(kinds)),
        "definitions": definitions(openapi_paths.shapes_of(kinds), "v2", _group_versions(kinds)),
        "securityDefinitions": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
        "security": [{"BearerToken": []}],
    }


def _group_versions(kinds: Kinds) -> list[tuple[str, str]]:
    return [(group, version) for group, versions in by_version(kinds).items() for version in versions]


@lru_cache(maxsize=64)
def _hash(kinds: Kinds, group: str, version: str) -> str:
    """Of all a document is made from, so that the index does not cost making every document."""
    facts = [
        [kind.resource, kind.shape.name, kind.verbs, kind.subresources, kind.delete_answers_object]
        for kind in by_version(kinds)[group][version]
    ]
    shape_facts = resources.files("seamark.kinds.language").joinpath("shapes.json").read_bytes()
    words = [_EDITION, __version__, field_docs.edition(), facts, _group_versions(kinds)]
    return hashlib.sha512(msgspec.json.encode(words) + shape_facts).hexdigest().upper()
