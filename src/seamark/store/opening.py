"""Turns a ``--store`` URL into an engine.

- ``sqlite:///var/lib/seamark/store.db``, or a bare path: one file
- ``memory:``: a store that is deleted when it is closed
- ``etcd://host:port,host:port/prefix?ca=FILE&cert=FILE&key=FILE&user=NAME&password=WORD``: a real etcd

``?history=SECONDS`` says how long history is kept; the default is five minutes.  Compacting an etcd removes the history
of all its keys, also those of other tenants; ``?history=none`` leaves compaction to another process.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from seamark.store.protocol import Store, StoreError

DEFAULT_HISTORY_SECONDS = 300.0
ETCD_PORT = 2379
STORES = ("", "sqlite", "memory", "etcd")  # the schemes there are


def store_scheme(url: str) -> str:
    """``etcd`` of ``etcd://…``; empty for the path of a file."""
    scheme, colon, _ = url.partition(":")
    return scheme.lower() if colon and "/" not in scheme else ""


def is_shared(url: str) -> bool:
    """Whether several processes can open the store, each by itself."""
    return store_scheme(url) == "etcd"


def open_store(url: str) -> Store:
    """The engine for a URL, not yet opened; ``StoreError`` says what is wrong with the URL."""
    if not url:
        raise StoreError("the store URL is empty")
    if not store_scheme(url):
        return _sqlite(url, {})
    shown = url.partition("?")[0]  # the options may hold a password
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise StoreError(f"the store URL {shown} cannot be read: {error}") from error
    options = _options(shown, parts.query)
    match parts.scheme:
        case "memory" if not parts.netloc and not parts.path:
            return _sqlite(None, options)
        case "sqlite" if parts.netloc:
            raise StoreError(f"the store URL {shown} has a host; a file is sqlite:///absolute/path")
        case "sqlite" if parts.path in ("", "/"):
            raise StoreError(f"the store URL {shown} names no file; a file is sqlite:///absolute/path")
        case "sqlite":
            return _sqlite(unquote(parts.path), options)
        case "etcd":
            return _etcd(_addresses(shown, parts.netloc), unquote(parts.path), options)
    raise StoreError(f"the store URL {shown} is of no known kind: sqlite:///path, memory: or etcd://host:port/prefix")


def _sqlite(path: str | None, options: dict[str, str]) -> Store:
    from seamark.store.sqlite import SqliteStore

    history = _history(options, DEFAULT_HISTORY_SECONDS)
    _refuse_rest(options)
    return SqliteStore(path, history_seconds=history)


def _addresses(shown: str, hosts: str) -> list[str]:
    addresses = hosts.split(",")
    if not all(addresses):
        raise StoreError(f"the store URL {shown} names no host; an etcd is etcd://host:port,host:port/prefix")
    if "@" in hosts:
        raise StoreError("an etcd store's user and password are options: etcd://host:port/prefix?user=…&password=…")
    return [address if _has_port(address) else f"{address}:{ETCD_PORT}" for address in addresses]


def _has_port(address: str) -> bool:
    return ":" in address.rpartition("]")[2]  # the colons of an IPv6 address are in brackets


def _etcd(addresses: list[str], prefix: str, options: dict[str, str]) -> Store:
    try:
        from seamark.store.etcd import EtcdStore
    except ImportError as error:
        raise StoreError(f"etcd needs the extra packages of `pip install 'seamark[etcd]'` ({error})") from error
    settings: dict[str, Any] = {
        name: options.pop(name) for name in ("ca", "cert", "key", "user", "password") if name in options
    }
    history = _history(options, DEFAULT_HISTORY_SECONDS)
    _refuse_rest(options)
    return EtcdStore(addresses, prefix=prefix, history_seconds=history, **settings)


def _options(shown: str, query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
    except ValueError as error:
        raise StoreError(f"the store URL {shown} has options that are not name=value") from error
    return dict(pairs)


def _history(options: dict[str, str], default: float | None) -> float | None:
    text = options.pop("history", None)
    if text is None:
        return default
    if text == "none":
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds < float("inf"):
        raise StoreError(f"the store option history={text} is neither a number of seconds, one at least, nor none")
    return seconds


def _refuse_rest(options: dict[str, str]) -> None:
    if options:
        raise StoreError(f"the store option {', '.join(sorted(options))} is not known")
