"""``seamark dns`` as its users run it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from seamark_process import Process


class DnsProcess(Process):
    """One running ``seamark dns``."""

    def __init__(self, kubeconfig: Path, *arguments: str) -> None:
        place = ["--kubeconfig", str(kubeconfig), "--listen", "127.0.0.1:0"]
        super().__init__("dns", *place, *arguments, log=kubeconfig.with_name("dns.log"))

    @property
    def address(self) -> tuple[str, int]:
        return dns_address(self.lines)

    @property
    def status(self) -> tuple[str, int]:
        url = next(line.split()[1] for line in self.lines if line.startswith("status "))
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port


def dns_address(lines: list[str]) -> tuple[str, int]:
    """Where a started process says its DNS is."""
    text = next(line.split()[1] for line in lines if line.startswith("DNS "))
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)
