"""A serving certificate that grows old while the server runs."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path

import pytest
from cryptography import x509

from seamark.api import certificates
from seamark.api.certificates import DAY, Authority

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


async def test_new_connections_see_the_renewed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    clock = [now - 340 * DAY]  # the certificate to renew was made almost a year ago
    authority = Authority(tmp_path / "pki", clock=lambda: clock[0])
    authority.prepare(NAMES)
    old, context = serial(authority), authority.tls()
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    assert await seen(port, authority) == old
    monkeypatch.setattr(certificates, "RENEWAL_CHECK_SECONDS", 0.0)
    keeping = asyncio.create_task(authority.keep_fresh(context, NAMES))
    for _ in range(5):
        await asyncio.sleep(0)
    assert serial(authority) == old, "it is good for another month"
    clock[0] = now
    while serial(authority) == old:
        await asyncio.sleep(0.01)
    assert await seen(port, authority) == serial(authority) != old
    keeping.cancel()
    server.close()
    await server.wait_closed()
