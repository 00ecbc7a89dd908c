"""How the host of an address with a port is written."""

from __future__ import annotations


def bracketed(host: str) -> str:
    """A host as URLs write it before a port: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host
