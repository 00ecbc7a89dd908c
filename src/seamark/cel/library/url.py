"""URLs as Go's ``net/url`` reads them in a request: absolute, or a path from the root."""

from __future__ import annotations

import re
from typing import ClassVar
from urllib.parse import parse_qs, quote

from seamark.cel.errors import EvaluationError
from seamark.cel.types import overload
from seamark.cel.values import Opaque

_scheme = re.compile(r"([a-zA-Z][a-zA-Z0-9+.\-]*):(.*)", re.DOTALL)
_escape = re.compile(r"%(?![0-9a-fA-F]{2}).{0,2}", re.DOTALL)
_control = re.compile(r"[\x00-\x1f\x7f]")
_port = re.compile(r":[0-9]*", re.ASCII)


class URL(Opaque):
    """The parts of a URL, as they were written."""

    type_name: ClassVar[str] = "kubernetes.URL"

    def __init__(self, text: str) -> None:
        self.scheme, self.host, self.path, self.query = "", "", "", ""
        rest = text
        if match := _scheme.fullmatch(text):
            self.scheme, rest = match[1].lower(), match[2]
        elif not text.startswith("/"):
            raise ValueError("invalid URI for request")
        rest, _, self.query = rest.partition("?")
        if not rest.startswith("/"):
            raise ValueError("invalid URI for request")
        if self.scheme and rest.startswith("//"):
            authority, slash, path = rest[2:].partition("/")
            rest = slash + path
            self.host = _host(authority.rpartition("@")[2])
        if bad := _escape.search(rest):
            raise ValueError(f'invalid URL escape "{bad[0]}"')
        self.path = rest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, URL) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((self.scheme, self.host, self.path, self.query))

    @property
    def hostname(self) -> str:
        if self.host.startswith("["):
            return self.host[1:].partition("]")[0]
        return self.host.partition(":")[0]

    @property
    def port(self) -> str:
        rest = self.host.rpartition("]")[2] if self.host.startswith("[") else self.host
        return rest.partition(":")[2]


def _host(host: str) -> str:
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise ValueError("missing ']' in host")
        port = host[end + 1 :]
    else:
        colon = host.rfind(":")
        port = host[colon:] if colon >= 0 else ""
        if bad := re.search(r'[ "<>\\^`{|}]', host):
            raise ValueError(f'invalid character "{bad[0]}" in host name')
    if port and not _port.fullmatch(port):
        raise ValueError(f'invalid port "{port}" after host')
    return host


def _parsed(text: str) -> URL:
    if _control.search(text):
        raise ValueError("net/url: invalid control character in URL")
    if not text:
        raise ValueError("empty url")
    return URL(text)


def _url(text: str) -> URL:
    try:
        return _parsed(text)
    except ValueError as error:
        shown = text.replace("\\", "\\\\").replace('"', '\\"')
        raise EvaluationError(f'URL parse error during conversion from string: parse "{shown}": {error}') from None


def _is_url(text: str) -> bool:
    try:
        _parsed(text)
    except ValueError:
        return False
    return True


def _escaped(url: URL) -> str:
    return quote(url.path, safe="/%:@!$&'()*+,;=-._~")


def _query(url: URL) -> dict[str, list[str]]:
    return parse_qs(url.query, keep_blank_values=True)


FUNCTIONS = [
    overload("isURL(string) -> bool", _is_url),
    overload("url(string) -> kubernetes.URL", _url),
    overload("kubernetes.URL.getScheme() -> string", lambda url: url.scheme),
    overload("kubernetes.URL.getHost() -> string", lambda url: url.host),
    overload("kubernetes.URL.getHostname() -> string", lambda url: url.hostname),
    overload("kubernetes.URL.getPort() -> string", lambda url: url.port),
    overload("kubernetes.URL.getEscapedPath() -> string", _escaped),
    overload("kubernetes.URL.getQuery() -> map<string, list<string>>", _query),
]
