"""OpenAPI: what ``kubectl explain``, code generators and other readers of schemas ask for.

    /openapi/v3                  which documents there are
    /openapi/v3/apis/apps/v1     the document of one group version
    /openapi/v2                  everything in one document of the older dialect

An :class:`OpenApi` is about one set of kinds.  When a kind appears or vanishes, the server makes a new one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from itertools import chain

import msgspec

from seamark import __version__
from seamark.api.aggregation.backends import Foreign
from seamark.api.http.negotiate import not_acceptable, parse_accept
from seamark.api.http.wire.messages import Request, Response
from seamark.api.openapi import field_docs, protobuf_v2, protobuf_v3
from seamark.api.openapi import paths as openapi_paths
from seamark.api.openapi.discovery import by_version
from seamark.api.openapi.schemas import WholeObjects, definitions, whole_objects
from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.language import shapes

JSON = "application/json"
PLAIN_TEXT = "text/plain; charset=utf-8"

# Raise it when documents change though neither kinds, shapes nor words did: clients keep documents by their hash.
_EDITION = 3


class OpenApi:
    """The documents about these kinds; each is made when first asked for, and kept as bytes.

    ``before`` is about the kinds there were before one came or went: what it has of others is taken over.
    ``foreign`` is what other servers serve: they answer for their documents of v3 themselves.
    """

    def __init__(self, kinds: Iterable[Kind], before: OpenApi | None = None, foreign: Sequence[Foreign] = ()) -> None:
        self._by_version = by_version(kinds)
        self._foreign = foreign
        self._kinds = [kind for versions in self._by_version.values() for kind in chain(*versions.values())]
        self._documents: dict[tuple[str, str], Document] = {}
        self._hashes: dict[tuple[str, str], str] = {}
        if before is None:
            return
        for group, versions in self._by_version.items():
            for version, members in versions.items():
                place = group, version
                if before._by_version.get(group, {}).get(version) != members:
                    continue
                if place in before._documents:
                    self._documents[place] = before._documents[place]
                if place in before._hashes:
                    self._hashes[place] = before._hashes[place]

    def answer(self, request: Request) -> Response | None:
        """The answer to a path below ``/openapi``, None if nothing is there."""
        parts = request.path.strip("/").split("/")
        if parts == ["openapi", "v2"]:
            if _accepts(request, JSON, *protobuf_v2.ACCEPTED) == JSON:
                return _respond(request, self.v2, JSON)
            return _respond(request, self.protobuf_v2, protobuf_v2.CONTENT_TYPE)
        if parts == ["openapi", "v3"]:
            return _respond(request, self.index, PLAIN_TEXT)
        if parts[:2] != ["openapi", "v3"]:
            return None
        found = self._group_version(parts[2:])
        if found is None:
            return None
        liked = _accepts(request, JSON, *protobuf_v3.ACCEPTED)
        wanted = self._hash(*found)
        _, _, given = request.query.partition("hash=")
        given = given.partition("&")[0]
        if given and given != wanted:
            return Response(301, b"", PLAIN_TEXT, (("Location", f"{request.path}?hash={wanted}"),))
        document = self.v3(*found)
        if liked == JSON:
            return _respond(request, document, JSON, forever=bool(given))
        return _respond(request, document.protobuf_v3, protobuf_v3.CONTENT_TYPE, forever=bool(given))

    def _group_version(self, parts: list[str]) -> tuple[str, str] | None:
        """``apis/apps/v1`` → ``apps``, ``v1``, if that is served."""
        match parts:
            case ["api", version]:
                found = "", version
            case ["apis", group, version]:
                found = group, version
            case _:
                return None
        return found if found[1] in self._by_version.get(found[0], {}) else None

    # --- documents -------------------------------------------------------------------------------------

    @cached_property
    def index(self) -> Document:
        """Where the documents of v3 are; the hash in an address changes when the document does."""
        found: Object = {}
        for group, versions in self._by_version.items():
            for version in versions:
                path = f"apis/{group}/{version}" if group else f"api/{version}"
                found[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={self._hash(group, version)}"}
        for each in self._foreign:
            if entry := each.openapi.get("v3"):
                found[f"apis/{each.group}/{each.version}"] = entry
        return Document(msgspec.json.encode({"paths": dict(sorted(found.items()))}))

    def v3(self, group: str, version: str) -> Document:
        """One group version's paths and schemas."""
        known = self._documents.get((group, version))
        if known is None:
            members = self._by_version[group][version]
            document = {
                "openapi": "3.0.0",
                "info": {"title": "Kubernetes", "version": "unversioned"},
                "paths": openapi_paths.paths(members),
                "components": {
                    "schemas": definitions(openapi_paths.shapes_of(members), "v3", self._whole_objects),
                    "securitySchemes": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
                },
                "security": [{"BearerToken": []}],
            }
            known = self._documents[group, version] = Document(msgspec.json.encode(document))
        return known

    @cached_property
    def v2(self) -> Document:
        """All paths and definitions."""
        return Document(msgspec.json.encode(self._v2()))

    @cached_property
    def protobuf_v2(self) -> Document:
        """The same in protobuf."""
        return Document(protobuf_v2.document(self._v2()))

    def _v2(self) -> Object:
        document = self._own_v2()
        for each in self._foreign:
            theirs = each.openapi.get("v2") or {}
            # Where a name means something here and there, ours stays: it is one of the shared types.
            for part in ("paths", "definitions"):
                document[part] = (theirs.get(part) or {}) | document[part]
        return document

    def _own_v2(self) -> Object:
        return {
            "swagger": "2.0",
            "info": {"title": "Kubernetes", "version": "unversioned"},
            "paths": openapi_paths.as_v2(openapi_paths.documents(self._kinds) | openapi_paths.paths(self._kinds)),
            "definitions": definitions(openapi_paths.shapes_of(self._kinds), "v2", self._whole_objects),
            "securityDefinitions": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
            "security": [{"BearerToken": []}],
        }

    # --- what documents are made from ------------------------------------------------------------------

    @cached_property
    def _whole_objects(self) -> WholeObjects:
        return whole_objects(self._kinds)

    def _hash(self, group: str, version: str) -> str:
        """Of all a document is made from, so that the index does not cost making every document.

        Those of built-in kinds do not change when others come and go, so that clients need not fetch them again.
        """
        known = self._hashes.get((group, version))
        if known is None:
            known = self._hashes[group, version] = self._new_hash(self._by_version[group][version])
        return known

    def _new_hash(self, members: list[Kind]) -> str:
        facts = [
            [kind.resource, kind.list_kind, kind.verbs, _listed(kind), kind.delete_answers_object] for kind in members
        ]
        served = list(dict.fromkeys((k.resource.group, k.resource.version) for k in self._kinds if k.built_in))
        words = [_EDITION, __version__, field_docs.edition(), facts, served]
        given = [kind.schema_digest for kind in members]
        return hashlib.sha512(b"".join([msgspec.json.encode(words), _shape_facts(), *given])).hexdigest().upper()


@cache
def _shape_facts() -> bytes:
    """A digest of the shapes of all built-in kinds."""
    return hashlib.sha512(shapes.FACTS.read_bytes()).digest()


class Document(msgspec.Struct, frozen=True, dict=True):
    """A document as it is sent."""

    body: bytes

    @cached_property
    def tag(self) -> str:
        return f'"{hashlib.sha256(self.body).hexdigest().upper()}"'

    @cached_property
    def protobuf_v3(self) -> Document:
        """A document of v3 in protobuf."""
        return Document(protobuf_v3.document(msgspec.json.decode(self.body)))


def _listed(kind: Kind) -> list[list[object]]:
    """What documents say of a kind's subresources."""
    return [[sub.name, sub.verbs, sub.kind, sub.group, sub.version] for sub in kind.subresources]


def _accepts(request: Request, *offered: str) -> str:
    """The one of these media types that the client likes best, the first if it takes anything; else a 406."""
    liked = [media.type for media in parse_accept(request.headers.get("accept", "")) if media.quality > 0]
    for name in liked or ["*/*"]:
        if name in ("*/*", "application/*"):
            return offered[0]
        if name in offered:
            return name
    raise not_acceptable()


def _respond(request: Request, document: Document, content_type: str, *, forever: bool = False) -> Response:
    headers = [("ETag", document.tag), ("Vary", "Accept")]
    if forever:
        headers.append(("Cache-Control", "public, immutable, max-age=31536000"))
    if request.headers.get("if-none-match") == document.tag:
        return Response(304, b"", content_type, headers)
    return Response(200, document.body, content_type, headers)
