"""Discovery and OpenAPI by path.  Both describe the kinds that are served at the moment of the request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seamark.api.http.protocol import Request, Response
from seamark.kinds.table import Kinds

if TYPE_CHECKING:
    from seamark.api.openapi.documents import OpenApi


class Descriptions:
    """Answers the paths that describe the API.

    What they need is imported when first asked for.  Discovery is made anew for every request, which is cheap; OpenAPI
    is not, so its documents are kept until a kind appears or vanishes.
    """

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._openapi: OpenApi | None = None
        self._openapi_revision = 0  # of the kinds that it describes

    def answer(self, request: Request) -> Response | None:
        """None for a path that describes nothing."""
        if not request.path.startswith("/openapi"):
            from seamark.api.openapi import discovery

            return discovery.answer(self._kinds, request)
        if self._openapi is None or self._openapi_revision != self._kinds.revision:
            from seamark.api.openapi.documents import OpenApi

            self._openapi, self._openapi_revision = OpenApi(self._kinds), self._kinds.revision
        return self._openapi.answer(request)
