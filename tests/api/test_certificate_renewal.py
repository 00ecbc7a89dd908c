"""A serving certificate that grows old while the server runs."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path

from cryptography import x509

from seamark.api.certificates import DAY, RENEWAL_CHECK_SECONDS, Authority
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


async def test_new_connections_see_the_renewed_one(tmp_path: Path) -> None:
    now = time.time()
    clock = VirtualClock(now - 340 * DAY)  # the certificate to renew was made almost a year ago
    authority = Authority(tmp_path / "pki", clock)
    authority.prepare(NAMES)
    old, context = serial(authority), authority.tls()
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    assert await seen(port, authority) == old
    keeping = asyncio.create_task(authority.keep_fresh(context, NAMES))
    await clock.advance(RENEWAL_CHECK_SECONDS)
    assert serial(authority) == old, "it is good for another month"
    clock.now = now - RENEWAL_CHECK_SECONDS
    await clock.advance(RENEWAL_CHECK_SECONDS)
    assert await seen(port, authority) == serial(authority) != old
    keeping.cancel()
    server.close()
    await server.wait_closed()
