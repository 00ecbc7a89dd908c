"""What verbs answer: objects in the form asked for, and what the client should be warned about."""

from __future__ import annotations

import re

from seamark.api.http.protocol import Response, Streaming
from seamark.api.state.cache import Entry
from seamark.api.state.render import Renderer
from seamark.api.write import Written
from seamark.errors import Object

Answer = Response | Streaming

# All warnings of an answer together; beyond that each is cut.
MAX_WARNINGS, CUT_WARNING = 4096, 256
_control = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def of_entry(renderer: Renderer, entry: Entry, status: int = 200, warnings: list[str] | None = None) -> Answer:
    """An object as it is kept."""
    headers = warning_headers(warnings or [])
    return Response(status, renderer.one(entry), renderer.representation.content_type, headers)


def of_written(renderer: Renderer, written: Written, warnings: list[str]) -> Answer:
    """An object as a write left it."""
    return of_entry(renderer, written.entry, 201 if written.created else 200, warnings + written.warnings)


def of_object(renderer: Renderer, obj: Object, status: int = 200, warnings: list[str] | None = None) -> Answer:
    """An object made for the occasion."""
    headers = warning_headers(warnings or [])
    return Response(status, renderer.encode(obj), renderer.representation.content_type, headers)


def of_list(renderer: Renderer, pieces: list[bytes]) -> Answer:
    return Response(200, pieces, renderer.representation.content_type)


def success(*, details: Object | None = None, code: int | None = None) -> Object:
    """The Status of something that worked and has nothing better to show."""
    answer: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        answer["details"] = details
    if code is not None:
        answer["code"] = code
    return answer


def warning_headers(sentences: list[str]) -> list[tuple[str, str]]:
    """Warnings as headers.  What no header can carry is left out; many long ones are cut, as Kubernetes does."""
    if not sentences:
        return []
    seen = [s for s in dict.fromkeys(sentences) if s and not _control.search(s)]
    if sum(map(len, seen)) > MAX_WARNINGS:
        seen = [s[:CUT_WARNING] for s in seen][: MAX_WARNINGS // CUT_WARNING]
    return [("Warning", '299 - "{}"'.format(s.replace("\\", "\\\\").replace('"', '\\"'))) for s in seen]
