"""Certificates that were made elsewhere: one to serve with, and an authority of clients."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest
from called_servers import issue_authority

from seamark.api.admission import PLUGINS, without
from seamark.api.certificates import Authority
from seamark.api.settings import ApiSettings
from seamark.config import ConfigError, settled
from seamark.daemon import Daemon
from seamark.daemon.requirements import serving_tls
from seamark.kinds.core.automount import ServiceAccounts


def made(folder: Path, **api: Any) -> Daemon:
    config = {"data_dir": str(folder / "data"), "ephemeral": True, "api": {"port": 0, **api}}
    return Daemon(settled(config), ())


async def get(url: str, path: str, trust: ssl.SSLContext) -> bytes:
    host, _, port = url.removeprefix("https://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=trust)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize("issued", [False, True])
async def test_a_given_certificate_and_clients_of_another_authority(tmp_path: Path, issued: bool) -> None:
    if issued:  # it is trusted without the authority that issued it
        issue_authority(tmp_path / "clients", "clients")
    serving, clients = Authority(tmp_path / "serving"), Authority(tmp_path / "clients")
    serving.prepare(["127.0.0.1"])
    clients.prepare(["127.0.0.1"])
    daemon = made(
        tmp_path,
        tls_certificate=str(serving.server_path),
        tls_key=str(serving.server_key_path),
        client_authority=str(clients.ca_path),
        disabled_plugins=["ServiceAccount"],
    )
    (tmp_path / "ann.pem").write_bytes(b"".join(clients.client("ann", ["system:masters"])))
    trust = ssl.create_default_context(cafile=str(serving.ca_path))
    trust.load_cert_chain(tmp_path / "ann.pem")
    async with daemon.running():
        assert b" 200 OK" in await get(daemon.url, "/api/v1/namespaces/default", trust)
        plain = ssl.create_default_context(cafile=str(serving.ca_path))
        assert b" 403 Forbidden" in await get(daemon.url, "/api/v1/namespaces/default", plain)


@pytest.mark.parametrize(
    ("api", "named"),
    [
        ({"client_authority": "/nowhere"}, "/nowhere: No such file"),
        ({"tls_certificate": "/nowhere", "tls_key": "/no"}, "/nowhere and /no: No such file"),
    ],
)
def test_files_that_are_not_there_are_named(tmp_path: Path, api: dict[str, str], named: str) -> None:
    own = Authority(tmp_path)
    own.prepare(["127.0.0.1"])
    with pytest.raises(ConfigError, match=named):
        serving_tls(own, ApiSettings(**api))


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="belong together"):
        made(tmp_path, tls_certificate="a.crt")


def test_steps_of_admission_are_left_out_by_their_names_in_kubernetes() -> None:
    left = without(PLUGINS, ["ServiceAccount", "NodeRestriction"])
    assert len(left) == len(PLUGINS) - 1
    assert not any(isinstance(each, ServiceAccounts) for each in left)
