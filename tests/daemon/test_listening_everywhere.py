"""A server that listens on every address of its machine: its own kubeconfig works here, its certificate from afar."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509

from seamark.access.kubeconfig import load
from seamark.access.remote import RemoteCluster
from seamark.api.bootstrap import advertised_address
from seamark.api.certificates import Authority
from seamark.config import settled
from seamark.daemon import Daemon
from seamark.daemon.requirements import server_names
from seamark.kinds.resource import NAMESPACES


@pytest.mark.parametrize(("host", "here"), [("0.0.0.0", "127.0.0.1"), ("::", "[::1]")])
async def test_its_kubeconfig_names_an_address_that_is_in_its_certificate(tmp_path: Path, host: str, here: str) -> None:
    config = settled({"data_dir": str(tmp_path), "ephemeral": True, "api": {"port": 0, "host": host}})
    daemon = Daemon(config, ())
    async with daemon.running():
        connection = load(daemon.kubeconfig_path)
        assert connection.server.startswith(f"https://{here}:")
        cluster = RemoteCluster(connection)
        assert (await cluster.get(NAMESPACES, "default"))["kind"] == "Namespace"
        await cluster.close()


def test_its_certificate_has_the_address_that_other_hosts_are_told(tmp_path: Path) -> None:
    if not (address := advertised_address("0.0.0.0")):
        pytest.skip("this machine has no address but loopback")
    config = settled({"data_dir": str(tmp_path), "api": {"host": "0.0.0.0"}})
    authority = Authority(tmp_path)
    authority.prepare(server_names(config))
    made = x509.load_pem_x509_certificate(authority.server_path.read_bytes())
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert address in map(str, names.get_values_for_type(x509.IPAddress))
    assert address not in server_names(settled({"data_dir": str(tmp_path)}))  # of loopback, no other host is told
