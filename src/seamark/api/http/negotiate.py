"""Which representation an Accept header asks for: JSON or YAML, and as what: the object, its metadata or a Table."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from seamark import errors

AVAILABLE = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


class Media(msgspec.Struct, frozen=True):
    """One acceptable media type with its parameters."""

    type: str
    parameters: dict[str, str]
    quality: float


class Representation(msgspec.Struct, frozen=True):
    """``as_`` is "", "Table", "PartialObjectMetadata" or "PartialObjectMetadataList"; ``version`` goes with it."""

    yaml: bool = False
    as_: str = ""
    version: str = ""

    @property
    def plain(self) -> bool:
        """Just the object in JSON: stored bytes can go out as they are."""
        return not self.yaml and not self.as_

    @property
    def content_type(self) -> str:
        return "application/yaml" if self.yaml else "application/json"


PLAIN = Representation()
# Both forms of metadata are allowed here; the renderer refuses the one that does not fit an object or a list.
STORED = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})
STREAMED = frozenset({"Table", "PartialObjectMetadata"})
NONE: frozenset[str] = frozenset()


def parse_accept(header: str) -> list[Media]:
    """Media types, best first; among equals the more specific, then the one named first."""
    found: list[Media] = []
    for part in header.split(","):
        name, *rest = (piece.strip() for piece in part.split(";"))
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
    return errors.NotAcceptable(
        f"406: Not Acceptable\n\nAvailable representations: {AVAILABLE.rpartition(', ')[0]}", details={}
    )


@lru_cache(maxsize=256)
def negotiate(accept: str, allowed: frozenset[str]) -> Representation:
    """The best representation that both sides support; ``allowed`` are the transformations this answer has."""
    if not accept or accept == "application/json":
        return PLAIN
    transformed = False
    for media in parse_accept(accept):
        if media.quality <= 0:
            continue
        yaml = media.type in ("application/yaml", "text/yaml")
        if not yaml and media.type not in ("application/json", "application/*", "*/*"):
            continue
        if media.parameters.get("stream", "watch") != "watch":
            continue
        as_ = media.parameters.get("as", "")
        if not as_:
            return Representation(yaml=yaml)
        version = media.parameters.get("v", "")
        transformed = True
        if media.parameters.get("g") == "meta.k8s.io" and version in ("v1", "v1beta1") and as_ in allowed:
            return Representation(yaml=yaml, as_=as_, version=version)
    if transformed:
        # Kubernetes has other words, and no details, when only the transformation is unknown.
        raise errors.NotAcceptable(f"only the following media types are accepted: {AVAILABLE.rpartition(', ')[0]}")
    raise not_acceptable()
