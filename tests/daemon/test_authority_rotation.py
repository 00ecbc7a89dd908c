"""A new authority while the server runs: none is cut off before the old one is dropped; then its certificates end."""

from __future__ import annotations

import asyncio
import base64
import ssl
from pathlib import Path

import pytest
import yaml

from seamark.api.certificates import Authority, single
from seamark.cli import main
from seamark.config import settled
from seamark.daemon import Daemon
from seamark.kinds.resource import CONFIGMAPS


class Client:
    """A client that trusts some authorities, and may have a certificate; its connection stays open."""

    def __init__(self, url: str, trusts: bytes, certificate: Path | None = None) -> None:
        self._address = url.removeprefix("https://").rpartition(":")
        self._tls = ssl.create_default_context(cadata=trusts.decode())
        if certificate is not None:
            self._tls.load_cert_chain(certificate)

    async def __aenter__(self) -> Client:
        host, _, port = self._address
        self._reader, self._writer = await asyncio.open_connection(host, int(port), ssl=self._tls)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def status(self, path: str = "/api/v1/namespaces/default") -> int:
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        await self._reader.readexactly(int(length.split()[1]))
        return int(head.split()[1])


async def status(url: str, trusts: bytes, certificate: Path | None = None) -> int:
    async with Client(url, trusts, certificate) as client:
        return await client.status()


def admins(daemon: Daemon, path: Path) -> Path:
    """The certificate in the kubeconfig and its key, as a file."""
    user = yaml.safe_load(daemon.kubeconfig_path.read_text())["users"][0]["user"]
    path.write_bytes(b"".join(base64.b64decode(user[f"client-{name}-data"]) for name in ("certificate", "key")))
    return path


def in_kubeconfig(daemon: Daemon) -> bytes:
    cluster = yaml.safe_load(daemon.kubeconfig_path.read_text())["clusters"][0]["cluster"]
    return base64.b64decode(cluster["certificate-authority-data"])


async def test_certificates_of_both_are_good_until_the_old_authority_is_dropped(tmp_path: Path) -> None:
    config = {"data_dir": str(tmp_path / "data"), "ephemeral": True, "api": {"port": 0}}
    daemon = Daemon(settled(config), ("controllers", "surroundings"))
    authority = Authority(tmp_path / "data" / "pki")

    def user(name: str) -> Path:
        path = tmp_path / f"{name}.pem"
        path.write_bytes(b"".join(authority.client(name, ["system:masters"])))
        return path

    async with daemon.running():
        cluster = daemon.api.cluster("root-ca-certificate-publisher-controller")

        async def looked() -> None:
            """As the server does every ten seconds; returns when every part knows the authorities."""
            await daemon.renewal.look()
            for namespace, name, key in (
                ("default", "kube-root-ca.crt", "ca.crt"),
                ("kube-system", "extension-apiserver-authentication", "client-ca-file"),
            ):
                while True:
                    held = await cluster.get(CONFIGMAPS, name, namespace=namespace)
                    if set(single(held["data"][key].encode())) == set(single(authority.ca_pem)):
                        break
                    await asyncio.sleep(0.01)

        url, old = daemon.url, authority.ca_pem
        before, admin = user("before"), admins(daemon, tmp_path / "admin.pem")
        async with Client(url, old, before) as open_since_before:
            assert await open_since_before.status() == 200
            authority.new_ca()
            await looked()
            both, after = authority.ca_pem, user("after")
            admin_after = admins(daemon, tmp_path / "admin-after.pem")
            assert in_kubeconfig(daemon) == both
            for trusts in (old, both):
                for certificate in (before, after, admin, admin_after):
                    assert await status(url, trusts, certificate) == 200
            assert await open_since_before.status() == 200

            authority.drop_earlier_cas()
            await looked()
            new = authority.ca_pem
            assert in_kubeconfig(daemon) == new
            assert single(both)[0] == new
            assert await status(url, new, after) == 200
            assert await status(url, new, before) == 401
            assert await status(url, new, admin) == 401
            assert await status(url, new, admin_after) == 200, "who took the kubeconfig in the meantime goes on"
            assert await open_since_before.status() == 401, "also on a connection that was open"
            with pytest.raises(ssl.SSLCertVerificationError):
                await status(url, old)


async def test_the_admins_certificate_ends_with_the_token_also_on_open_connections(tmp_path: Path) -> None:
    config = {"data_dir": str(tmp_path / "data"), "ephemeral": True, "api": {"port": 0}}
    daemon = Daemon(settled(config), ())
    async with daemon.running():
        first = admins(daemon, tmp_path / "first.pem")
        authority = Authority(tmp_path / "data" / "pki")
        async with Client(daemon.url, authority.ca_pem, first) as client:
            assert await client.status() == 200
            assert main(["rotate", "admin-token", "--data-dir", str(tmp_path / "data")]) == 0
            second = admins(daemon, tmp_path / "second.pem")
            assert await status(daemon.url, authority.ca_pem, second) == 200, "and the server has looked at the file"
            assert await client.status() == 401
