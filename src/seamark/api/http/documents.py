"""Answers that are not objects: health, version, metrics, discovery and OpenAPI."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from seamark.api.aggregation.backends import Foreign
from seamark.api.call import not_allowed, not_found
from seamark.api.http.url import Query, parse_query
from seamark.api.http.wire.messages import Request, Response
from seamark.kinds.kind import Kind
from seamark.kinds.table import Kinds
from seamark.kinds.values.fields import show
from seamark.kinds.wellknown import KUBERNETES_MINOR
from seamark.metrics import Registry

if TYPE_CHECKING:
    from seamark.api.openapi.discovery import Discovery
    from seamark.api.openapi.documents import OpenApi

PLAIN_TEXT = "text/plain; charset=utf-8"
METRICS = "text/plain; version=0.0.4; charset=utf-8"
_LAST = "Whether a health check went well when it was last asked for."
_TOTAL = "Health checks that were asked for, by how they went."
HEALTH = ("/healthz", "/livez", "/readyz")

# A health check: None if all is well, else one line about what is wrong.
Check = Callable[[], str | None]

# More of them, which come and go while the server runs: what is wrong by name, None where all is well.
Readiness = Callable[[], Mapping[str, str | None]]

Page = Callable[[Request], Response]


class Report(msgspec.Struct, frozen=True):
    """What several processes that serve together say of all of them: what is wrong by name, and their metrics."""

    problems: Mapping[str, str | None]
    metrics: str


class Elsewhere(Protocol):
    """What other servers serve of this API; the revision grows with every change."""

    @property
    def revision(self) -> int: ...

    @property
    def foreign(self) -> Sequence[Foreign]: ...


class Documents:
    """Everything that is served by its path alone."""

    def __init__(
        self,
        *,
        kinds: Kinds,
        metrics: Registry,
        checks: Mapping[str, Check],
        readiness: Readiness,
        pages: Mapping[str, Page],
        elsewhere: Elsewhere,
        report: Callable[[], Awaitable[Report]] | None,
    ) -> None:
        """``readiness`` counts for ``/readyz`` only: the process lives and serves although a part beside it failed.

        ``pages`` are further documents, by their path.  ``report`` asks all processes, if this is one of several.
        """
        self._kinds = kinds
        self._metrics = metrics
        self._slis = Registry()
        self._checks = {"ping": _well, **checks}
        self._readiness = readiness
        self._pages = pages
        self._elsewhere = elsewhere
        self._report = report
        self._openapi: OpenApi | None = None
        self._describing = asyncio.Lock()
        self._discovery: Discovery | None = None
        self._openapi_revision = self._discovery_revision = (0, 0)  # those of the kinds described, here and elsewhere

    def serves(self, path: str) -> bool:
        root = path.split("/", 2)[1] if path.startswith("/") else ""
        if root in ("healthz", "livez", "readyz", "version", "metrics", "openapi") or path in self._pages:
            return True
        parts = path.strip("/").split("/")
        return parts == [""] or (parts[0] == "api" and len(parts) <= 2) or (parts[0] == "apis" and len(parts) <= 3)

    def takes_time(self, path: str) -> bool:
        """Whether :meth:`described` answers, rather than :meth:`answer`."""
        if path.startswith("/openapi"):
            return True
        return self._report is not None and path.split("/", 2)[1] in ("metrics", "readyz")

    def answer(self, request: Request) -> Response:
        return self._answer(request, self._readiness, self._metrics.text)

    def _answer(self, request: Request, readiness: Readiness, metrics: Callable[[], str]) -> Response:
        path = request.path.rstrip("/") or "/"
        for root in HEALTH:
            if path == root or path.startswith(root + "/"):
                found = {label: check() for label, check in self._checks.items()}
                if root == "/readyz":
                    found |= readiness()
                name = path[len(root) + 1 :]
                self._note(found, root, name)
                return _health(found, root, name, parse_query(request.query))
        if request.method not in ("GET", "HEAD"):
            raise not_allowed()
        if page := self._pages.get(path):
            return page(request)
        if path == "/version":
            return Response(200, msgspec.json.format(msgspec.json.encode(version()), indent=2))
        if path == "/metrics":
            return Response(200, metrics().encode(), METRICS)
        if path == "/metrics/slis":
            return Response(200, self._slis.text().encode(), METRICS)
        discovered = self._discovered(request)
        if discovered is not None:
            return discovered
        if path.startswith("/apis/") and self._is_foreign(path):
            return Response(404, b"404 page not found\n", PLAIN_TEXT)
        raise not_found()

    def _note(self, found: Mapping[str, str | None], root: str, name: str) -> None:
        """Keep how the checks that a request is about went, for ``/metrics/slis``."""
        probe, asked = root[1:], [name] if name else ["ping"] if root == "/livez" else list(found)
        for each in asked:
            if each not in found:
                continue
            well = found[each] is None
            status = "success" if well else "error"
            last = self._slis.gauge("kubernetes_healthcheck", _LAST, each, probe, labels=("name", "type"))
            last.set(well)
            labels = ("name", "status", "type")
            total = self._slis.counter("kubernetes_healthchecks_total", _TOTAL, each, status, probe, labels=labels)
            total.add()

    def _is_foreign(self, path: str) -> bool:
        """Whether a path is a group that is not served, or below one that only definitions define."""
        _, _, group, *version = path.split("/")
        return not version or group not in self._kinds.built_in_groups

    # Discovery and OpenAPI are kept until a kind appears or vanishes, and imported when they are first asked for.

    @property
    def _revision(self) -> tuple[int, int]:
        return self._kinds.revision, self._elsewhere.revision

    def _discovered(self, request: Request) -> Response | None:
        """Discovery of the kinds that are served now; None for any other path."""
        if self._discovery is None or self._discovery_revision != self._revision:
            from seamark.api.openapi.discovery import Discovery

            self._discovery, self._discovery_revision = Discovery(self._kinds, self._elsewhere.foreign), self._revision
        return self._discovery.answer(request)

    async def described(self, request: Request) -> Response:
        """OpenAPI of the kinds that are served now, or what all processes say together.

        Documents about hundreds of kinds take a second to make.  A thread makes them, so that others are answered
        meanwhile; one at a time, because requests usually ask for the same.
        """
        if self._report is not None and not request.path.startswith("/openapi"):
            report = await self._report()
            return self._answer(request, lambda: report.problems, lambda: report.metrics)
        if request.method not in ("GET", "HEAD"):
            raise not_allowed()
        async with self._describing:
            found = await asyncio.to_thread(self._describe, request, self._revision, list(self._kinds))
        if found is not None:
            return found
        if request.path.startswith("/openapi/v3"):
            return Response(404, b"", "")
        if request.path.rstrip("/") == "/openapi":
            return Response(404, b"404 page not found\n", PLAIN_TEXT)
        raise not_found()

    def _describe(self, request: Request, revision: tuple[int, int], kinds: list[Kind]) -> Response | None:
        if self._openapi is None or self._openapi_revision != revision:
            from seamark.api.openapi.documents import OpenApi

            self._openapi = OpenApi(kinds, self._openapi, self._elsewhere.foreign)
            self._openapi_revision = revision
        return self._openapi.answer(request)


def _health(found: dict[str, str | None], root: str, name: str, query: Query) -> Response:
    if name:
        if name not in found:
            return Response(404, b"404 page not found\n", PLAIN_TEXT)
        wrong = found[name]
        text = b"ok" if wrong is None else f"internal server error: {wrong}\n".encode()
        return Response(200 if wrong is None else 500, text, PLAIN_TEXT)
    if root == "/livez":
        # A restart mends nothing that is outside of this process, so only /healthz and /readyz look at it.
        found = {"ping": None}
    excluded = set(query.get("exclude", ()))
    lines = [_line(label, wrong, excluded) for label, wrong in found.items()]
    if unknown := sorted(excluded.difference(found)):
        names = ",".join(show(each) for each in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
    word = root[1:]
    if all(wrong is None or label in excluded for label, wrong in found.items()):
        verbose = "verbose" in query
        return Response(200, "".join([*lines, f"{word} check passed\n"]).encode() if verbose else b"ok", PLAIN_TEXT)
    return Response(500, "".join([*lines, f"{word} check failed\n"]).encode(), PLAIN_TEXT)


def _line(label: str, wrong: str | None, excluded: Container[str]) -> str:
    if label in excluded:
        return f"[+]{label} excluded: ok\n"
    return f"[+]{label} ok\n" if wrong is None else f"[-]{label} failed: {wrong}\n"


def _well() -> str | None:
    return None


def version() -> dict[str, str]:
    """What ``kubectl version`` shows: the compatible version of Kubernetes, and Seamark's own."""
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
