"""Certificates that grow old, or are replaced, while the server runs."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509

from seamark.api.certificates import DAY, Authority
from seamark.api.identity.keys import LOOK_SECONDS
from seamark.api.renewal import Renewal
from seamark.private_files import write_private
from virtual_time import VirtualClock

NAMES = ["localhost", "127.0.0.1"]


def serial(authority: Authority) -> int:
    return x509.load_pem_x509_certificate(authority.server_path.read_bytes()).serial_number


async def seen(port: int, authority: Authority) -> int:
    """The serial number a new connection is shown."""
    tls = ssl.create_default_context(cafile=str(authority.ca_path))
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname="localhost")
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return x509.load_der_x509_certificate(der).serial_number


@asynccontextmanager
async def serving(context: ssl.SSLContext) -> AsyncIterator[int]:
    """The port of a server that only shows its certificate."""
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    yield server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()


async def nothing() -> None:
    pass


async def test_new_connections_see_the_renewed_one(tmp_path: Path) -> None:
    now = time.time()
    clock = VirtualClock(now - 340 * DAY)  # the certificate to renew was made almost a year ago
    authority = Authority(tmp_path / "pki", clock)
    authority.prepare(NAMES)
    old, context = serial(authority), authority.tls()
    async with serving(context) as port:
        assert await seen(port, authority) == old
        keeping = asyncio.create_task(Renewal(authority, context, NAMES, nothing, clock=clock).follow())
        await clock.advance(LOOK_SECONDS)
        assert serial(authority) == old, "it is good for another month"
        clock.now = now - LOOK_SECONDS
        await clock.advance(LOOK_SECONDS)
        assert await seen(port, authority) == serial(authority) != old
        keeping.cancel()


async def test_a_certificate_without_its_key_changes_nothing(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path / "pki"), Authority(tmp_path / "other")
    authority.prepare(NAMES)
    other.prepare(NAMES)
    context = authority.tls()
    old, key = serial(authority), authority.server_key_path.read_bytes()
    renewal = Renewal(authority, context, NAMES, nothing)
    async with serving(context) as port:
        write_private(authority.server_key_path, other.server_key_path.read_bytes())  # its certificate would come next
        await renewal.look()
        assert await seen(port, authority) == old
        write_private(authority.server_key_path, key)
        await renewal.look()
        assert await seen(port, authority) == old


async def test_a_certificate_from_elsewhere_is_read_again_but_never_renewed(tmp_path: Path) -> None:
    authority, given = Authority(tmp_path / "pki"), Authority(tmp_path / "given")
    authority.prepare(NAMES)
    given.prepare(NAMES)
    files = (str(given.server_path), str(given.server_key_path))
    context = authority.tls(files)
    renewal = Renewal(authority, context, ["a.name.that.it.lacks"], nothing, given=files)
    async with serving(context) as port:
        own = serial(authority)
        given.renew(["127.0.0.1", "localhost", "another"])
        await renewal.look()
        assert await seen(port, given) == serial(given)
        assert serial(authority) == own


async def test_an_authority_that_is_not_valid_now_is_told_once_and_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = VirtualClock(time.time())
    authority = Authority(tmp_path / "pki", clock)
    authority.prepare(NAMES)
    made = authority.ca_pem
    renewal = Renewal(authority, authority.tls(), NAMES, nothing, clock=clock)
    for days, told in ((0, 0), (-30, 1), (-30, 1), (0, 1), (3651, 2)):
        clock.now = time.time() + days * DAY
        await renewal.look()
        said = [record.getMessage() for record in caplog.records if "no authority" in record.getMessage()]
        assert len(said) == told
    assert "set the clock" in said[0]
    assert authority.ca_pem == made
