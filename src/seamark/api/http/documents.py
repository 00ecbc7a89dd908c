"""Answers that are no objects: health, version, metrics, discovery and OpenAPI."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping

import msgspec

from seamark import errors
from seamark.api.http.protocol import Request, Response
from seamark.api.http.target import not_allowed
from seamark.metrics import Registry

PLAIN_TEXT = "text/plain; charset=utf-8"
HEALTH = ("/healthz", "/livez", "/readyz")
KUBERNETES_MINOR = "38"

# A named check: None if all is well, else one line about what is not.
Check = Callable[[], str | None]


class Documents:
    """Everything served by path alone."""

    def __init__(
        self, *, metrics: Registry, checks: Mapping[str, Check], described: Callable[[Request], Response | None]
    ) -> None:
        """``described`` answers discovery and OpenAPI paths, None for any other."""
        self._metrics = metrics
        self._checks = {"ping": _well, **checks}
        self._described = described

    def serves(self, path: str) -> bool:
        root = path.split("/", 2)[1] if path.startswith("/") else ""
        if root in ("healthz", "livez", "readyz", "version", "metrics", "openapi"):
            return True
        parts = path.strip("/").split("/")
        return parts == [""] or (parts[0] == "api" and len(parts) <= 2) or (parts[0] == "apis" and len(parts) <= 3)

    def answer(self, request: Request) -> Response:
        path = request.path.rstrip("/") or "/"
        for root in HEALTH:
            if path == root or path.startswith(root + "/"):
                return self._health(root, path[len(root) + 1 :], verbose="verbose" in request.query)
        if request.method not in ("GET", "HEAD"):
            raise not_allowed()
        if path == "/version":
            return Response(200, msgspec.json.encode(version()))
        if path == "/metrics":
            return Response(200, self._metrics.text().encode(), "text/plain; version=0.0.4; charset=utf-8")
        described = self._described(request)
        if described is not None:
            return described
        if path.startswith("/openapi/v3"):
            return Response(404, b"", "")
        if path.startswith("/apis/") and path.count("/") == 2:
            return Response(404, b"404 page not found\n", PLAIN_TEXT)
        raise errors.NotFound("the server could not find the requested resource", details={})

    def _health(self, root: str, name: str, *, verbose: bool) -> Response:
        if name:
            check = self._checks.get(name)
            if check is None:
                return Response(404, b"404 page not found\n", PLAIN_TEXT)
            wrong = check()
            text = b"ok" if wrong is None else f"internal server error: {wrong}\n".encode()
            return Response(200 if wrong is None else 500, text, PLAIN_TEXT)
        lines = []
        well = True
        for label, check in self._checks.items():
            wrong = check()
            well = well and wrong is None
            lines.append(f"[+]{label} ok\n" if wrong is None else f"[-]{label} failed: {wrong}\n")
        word = root[1:]
        if well:
            return Response(200, "".join([*lines, f"{word} check passed\n"]).encode() if verbose else b"ok", PLAIN_TEXT)
        return Response(500, "".join([*lines, f"{word} check failed\n"]).encode(), PLAIN_TEXT)


def _well() -> str | None:
    return None


def version() -> dict[str, str]:
    """What ``kubectl version`` shows: the Kubernetes version we are compatible with, and that it is us."""
    from seamark import __version__

    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "major": "1",
        "minor": KUBERNETES_MINOR,
        "gitVersion": f"v1.{KUBERNETES_MINOR}.0+seamark-{__version__}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{machine}",
    }
