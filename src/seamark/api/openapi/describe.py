"""Discovery and OpenAPI by path.  Both describe the kinds served, so they are made from the same table."""

from __future__ import annotations

from seamark.api.http.protocol import Request, Response
from seamark.kinds.table import Kinds


class Descriptions:
    """Answers the paths that describe the API; everything is made when first asked for."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds

    def answer(self, request: Request) -> Response | None:
        """None for a path that describes nothing."""
        if request.path.startswith("/openapi"):
            from seamark.api.openapi import documents as openapi

            return openapi.answer(self._kinds, request)
        from seamark.api.openapi import discovery

        return discovery.answer(self._kinds, request)
