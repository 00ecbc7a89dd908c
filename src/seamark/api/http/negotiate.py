"""Which representation a client asks for: JSON, YAML or protobuf; the object, its metadata or a Table of it.

And how it gets the bytes: indented for people, compressed for those who accept that.
"""

from __future__ import annotations

import gzip
from functools import lru_cache
from typing import Literal

import msgspec

from seamark import errors
from seamark.api.http.url import first, parse_query
from seamark.api.http.wire.messages import Request, Response
from seamark.remembering import LONGEST

# Bodies below this are not worth compressing (Kubernetes' own threshold).
GZIP_FROM = 128 * 1024
# Larger ones are compressed piece by piece as they are sent, because to compress them takes long.
PACKED_IN_PIECES_FROM = 512 * 1024
# User agents at a terminal or in a browser: a person reads the answer, so its JSON is indented.
_PEOPLE = ("curl", "Wget", "Mozilla/5.0")

PROTOBUF = "application/vnd.kubernetes.protobuf"
AVAILABLE = f"application/json, application/yaml, {PROTOBUF}"

Format = Literal["json", "yaml", "protobuf"]
_FORMATS: dict[str, Format] = {
    "application/json": "json",
    "application/*": "json",
    "*/*": "json",
    "application/yaml": "yaml",
    "text/yaml": "yaml",
    PROTOBUF: "protobuf",
}
_CONTENT_TYPES: dict[Format, str] = {"json": "application/json", "yaml": "application/yaml", "protobuf": PROTOBUF}


# Further media types are not looked at, nor further parameters of one: no client has as many, and a head may.
MOST_TYPES = 100
MOST_PARAMETERS = 20


class Media(msgspec.Struct, frozen=True):
    """One acceptable media type with its parameters."""

    type: str
    parameters: dict[str, str]
    quality: float


class Representation(msgspec.Struct, frozen=True):
    """``as_`` is "", "Table", "PartialObjectMetadata" or "PartialObjectMetadataList"; ``version`` goes with it."""

    format: Format = "json"
    as_: str = ""
    version: str = ""

    @property
    def plain(self) -> bool:
        """Just the object in JSON: stored bytes can go out as they are."""
        return self.format == "json" and not self.as_

    @property
    def content_type(self) -> str:
        return _CONTENT_TYPES[self.format]

    @property
    def streamed_as(self) -> str:
        """The content type of a watch."""
        return f"{PROTOBUF};stream=watch" if self.format == "protobuf" else self.content_type


PLAIN = Representation()
# Both forms of metadata are allowed here; the renderer refuses the one that does not fit an object or a list.
STORED = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})
STREAMED = frozenset({"Table", "PartialObjectMetadata"})
TABLES = frozenset({"Table"})  # none exist of documents that are only answered, such as reviews
NONE: frozenset[str] = frozenset()


def parse_accept(header: str) -> list[Media]:
    """Media types, best first; among equals the more specific, then the one named first."""
    found: list[Media] = []
    for part in header.split(",", MOST_TYPES)[:MOST_TYPES]:
        name, *rest = (piece.strip() for piece in part.split(";", MOST_PARAMETERS)[:MOST_PARAMETERS])
        if not name:
            continue
        parameters = dict(piece.partition("=")[::2] for piece in rest)
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        found.append(Media(name.lower(), parameters, quality))
    return sorted(found, key=lambda media: (-media.quality, *(part == "*" for part in media.type.split("/"))))


def not_streamable() -> errors.NotAcceptable:
    """For a watch in YAML, which cannot be sent line by line."""
    return errors.NotAcceptable("only the following media types are accepted: application/json;stream=watch")


def not_acceptable() -> errors.NotAcceptable:
    return errors.NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {AVAILABLE}", details={})


def negotiate_error(accept: str) -> Representation:
    """The representation of an error; NotAcceptable if the client takes no format that we have."""
    try:
        return negotiate(accept, NONE, protobuf=PROTOBUF in accept)
    except errors.NotAcceptable as error:
        if error.details is None:
            return PLAIN  # the client takes JSON, but only as something that an error is not
        raise


def negotiate(accept: str, allowed: frozenset[str], *, protobuf: bool = False) -> Representation:
    """The best representation that both sides support; ``allowed`` are the transformations this answer has."""
    choose = _negotiate if len(accept) <= LONGEST else _negotiate.__wrapped__
    return choose(accept, allowed, protobuf=protobuf)


@lru_cache(maxsize=256)
def _negotiate(accept: str, allowed: frozenset[str], *, protobuf: bool) -> Representation:
    if not accept or accept == "application/json":
        return PLAIN
    transformed = False
    for media in parse_accept(accept):
        if media.quality <= 0:
            continue
        format = _FORMATS.get(media.type)
        if format is None or (format == "protobuf" and not protobuf):
            continue
        if media.parameters.get("stream", "watch") != "watch":
            continue
        as_ = media.parameters.get("as", "")
        if not as_:
            return Representation(format)
        version = media.parameters.get("v", "")
        transformed = True
        if media.parameters.get("g") == "meta.k8s.io" and version in ("v1", "v1beta1") and as_ in allowed:
            if format == "protobuf" and as_ == "Table":
                continue  # the cells of a Table have no types that protobuf could write
            return Representation(format, as_, version)
    if transformed:
        # Kubernetes has other words, and no details, when only the transformation is unknown.
        raise errors.NotAcceptable(f"only the following media types are accepted: {AVAILABLE}")
    raise not_acceptable()


def indented(request: Request, answer: Response) -> Response:
    """The answer with its JSON indented, for people and for clients that ask for it."""
    try:
        asked = first(parse_query(request.query), "pretty") if "pretty" in request.query else ""
    except errors.BadRequest:  # which is what the answer says
        asked = ""
    wanted = asked in ("1", "t", "T", "TRUE", "true", "True")
    if not (wanted or (not asked and request.headers.get("user-agent", "").startswith(_PEOPLE))):
        return answer
    if answer.content_type != "application/json":
        return answer
    whole = b"".join(answer.body) if isinstance(answer.body, list) else answer.body
    return Response(answer.status, msgspec.json.format(whole.rstrip(), indent=2), answer.content_type, answer.headers)


def compressed(request: Request, answer: Response) -> Response:
    """The answer in gzip, if it is long and the client accepts that."""
    body = answer.body
    size = sum(map(len, body)) if isinstance(body, list) else len(body)
    if size < GZIP_FROM or "gzip" not in request.headers.get("accept-encoding", ""):
        return answer
    headers = (*answer.headers, ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"))
    if size >= PACKED_IN_PIECES_FROM and request.version != "1.0":
        return Response(answer.status, body, answer.content_type, headers, pack=True)
    whole = b"".join(body) if isinstance(body, list) else body
    packed = gzip.compress(whole, compresslevel=1, mtime=0)
    return Response(answer.status, packed, answer.content_type, headers)
