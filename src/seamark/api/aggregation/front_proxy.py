"""The front proxy's certificate: aggregated servers believe the user's name in a request that comes with it.

It has an authority of its own.  Were it the one that signs the certificates of users, a user who gets a certificate
of a chosen name signed could pretend to be any user.

    DIR/front-proxy-ca.crt  front-proxy-ca.key          valid for ten years
    DIR/front-proxy-client.crt  front-proxy-client.key  valid for a year, renewed when most of that has passed
"""

from __future__ import annotations

import time
from pathlib import Path

from seamark.access.credentials import Certificate
from seamark.api.certificates import BACKDATED, Authority
from seamark.private_files import check_private, write_private

NAME = "front-proxy-client"
_RENEW_SECONDS = 300 * 86400.0


class FrontProxy:
    """The files of one directory; :meth:`prepare` first."""

    def __init__(self, directory: Path) -> None:
        self._authority = Authority(directory, prefix="front-proxy-")
        self._certificate = directory / f"{NAME}.crt"
        self._key = directory / f"{NAME}.key"
        self._kept: tuple[float, Certificate] | None = None  # when it was made, and itself

    def prepare(self) -> None:
        """Make what is missing."""
        self._authority.prepare_ca()

    @property
    def ca(self) -> str:
        """Its authority's certificate, PEM."""
        return self._authority.ca_pem.decode()

    def certificate(self) -> Certificate:
        """The certificate and its key, made when they are first needed."""
        if self._kept is not None and _is_good(self._kept[0]):
            return self._kept[1]
        there = self._certificate.exists() and self._key.exists()
        if not there or not _is_good(self._certificate.stat().st_mtime):
            certificate, key = self._authority.client(NAME)
            write_private(self._key, key)
            write_private(self._certificate, certificate)
        check_private(self._key)
        made = self._certificate.stat().st_mtime
        self._kept = (made, Certificate(self._certificate.read_bytes(), self._key.read_bytes()))
        return self._kept[1]


def _is_good(made: float) -> bool:
    """Whether a certificate of that time is neither old nor of the future, made by a clock that was ahead."""
    return -BACKDATED.total_seconds() < time.time() - made < _RENEW_SECONDS
