"""Where a webhook is called: a URL, or a Service with a path and a port."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from seamark.errors import Object
from seamark.kinds.values.fields import Errors, invalid, required
from seamark.kinds.values.metadata import dns_subdomain
from seamark.kinds.values.ports import port_number_mistakes

_FORM = "; desired format: https://host[/path]"
_escape = re.compile("%(?![0-9a-fA-F]{2}).{0,2}")


def default_client(client: Object) -> None:
    if (service := client.get("service")) is not None:
        service.setdefault("port", 443)


def client_mistakes(client: Object, at: str) -> Errors:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return [required(at, "exactly one of url or service is required")]
    return _url_mistakes(url, f"{at}.url") if url is not None else _service_mistakes(service or {}, f"{at}.service")


def _url_mistakes(url: str, at: str) -> Errors:
    if problem := _unreadable(url):
        return [required(at, f'url must be a valid URL: parse "{url}": {problem}{_FORM}')]
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    errors: Errors = []
    if parts.scheme != "https":
        errors.append(invalid(at, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    if not host:
        errors.append(invalid(at, host, f"host must be specified{_FORM}"))
    if user:
        errors.append(invalid(at, user, "user information is not permitted in the URL"))
    if parts.fragment:
        errors.append(invalid(at, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        errors.append(invalid(at, parts.query, "query parameters are not permitted in the URL"))
    return errors


def _unreadable(url: str) -> str:
    """Why Go cannot read a URL; empty if it can."""
    if (broken := _escape.search(url)) is not None:
        return f'invalid URL escape "{broken[0]}"'
    first, colon, _ = url.partition("/")[0].partition(":")
    if colon and not re.fullmatch("[a-zA-Z][a-zA-Z0-9+.-]*", first):
        return "first path segment in URL cannot contain colon" if first else "missing protocol scheme"
    return ""


def _service_mistakes(service: Object, at: str) -> Errors:
    errors = [required(f"{at}.{field}") for field in ("name", "namespace") if not service.get(field)]
    port = service.get("port", 443)
    if port_number_mistakes("", port):
        sentence = "port is not valid: must be between 1 and 65535, inclusive"
        errors.append(invalid(f"{at}.port", port, sentence))
    path = service.get("path")
    if path in (None, "", "/"):
        return errors
    at = f"{at}.path"
    if path == "//":
        return [*errors, invalid(at, path, "segment[0] may not be empty")]
    if not path.startswith("/"):
        errors.append(invalid(at, path, "must start with a '/'"))
    for i, step in enumerate(path[1:].removesuffix("/").split("/")):
        wrong = [f": {sentence}" for sentence in dns_subdomain(step)] if step else [" may not be empty"]
        errors += [invalid(at, path, f"segment[{i}]{sentence}") for sentence in wrong]
    return errors
