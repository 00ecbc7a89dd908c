"""Imports the HTTP client for a process that is ours alone."""

from __future__ import annotations

import os


def import_http_client() -> None:
    """Import aiohttp without the system's certificates.

    While it is imported it reads all of them twice, for contexts that our connections do not use: a tenth of a second
    of CPU time.  A process that others import us into must keep them, so this is for commands only.
    """
    name = "SSL_CERT_FILE"
    given = os.environ.get(name)
    os.environ[name] = os.devnull
    try:
        import aiohttp  # noqa: F401
    finally:
        del os.environ[name]
        if given is not None:
            os.environ[name] = given
