"""From the command line to the configuration."""

from __future__ import annotations

import logging
import socket
from pathlib import Path

import pytest

from seamark.cli import main
from seamark.cli.failure import Failure
from seamark.cli.running.dns import parser
from seamark.cli.settings import config_of
from seamark.dns.config import DnsConfig, ForwardConfig, Route, ZoneConfig
from seamark.dns.zone.feed import ZoneFeed

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: ""}}]
current-context: c
"""


def options(text: str) -> DnsConfig:
    return config_of(parser().parse_args(text.split()), "dns").dns


def test_the_defaults_are_corednss_and_the_systems_resolvers() -> None:
    assert options("") == DnsConfig()
    assert DnsConfig().forward.routes == (Route(".", ("/etc/resolv.conf",)),)


@pytest.mark.parametrize(
    ("text", "zones"),
    [
        ("--zone a.b", ("a.b", "in-addr.arpa", "ip6.arpa")),
        ("--zone a.b --zone c.d", ("a.b", "c.d", "in-addr.arpa", "ip6.arpa")),
        ("--zone a.b,c.d --no-reverse", ("a.b", "c.d")),
        ("--zone a.b,10.in-addr.arpa", ("a.b", "10.in-addr.arpa")),
    ],
)
def test_zones(text: str, zones: tuple[str, ...]) -> None:
    assert options(text).zone.zones == zones


@pytest.mark.parametrize(
    ("text", "zones"),
    [
        ("", ()),
        ("--fallthrough .", (".",)),
        ("--fallthrough in-addr.arpa,ip6.arpa", ("in-addr.arpa", "ip6.arpa")),
    ],
)
def test_fallthrough(text: str, zones: tuple[str, ...]) -> None:
    assert options(text).zone.fallthrough == zones


@pytest.mark.parametrize(
    ("text", "routes"),
    [
        ("--forward none", ()),
        ("--forward 10.0.0.1,[fd00::1]:5353", (Route(".", ("10.0.0.1", "[fd00::1]:5353")),)),
        (
            "--forward 10.0.0.1 --forward corp.example=10.0.0.2",
            (Route(".", ("10.0.0.1",)), Route("corp.example", ("10.0.0.2",))),
        ),
    ],
)
def test_forward(text: str, routes: tuple[Route, ...]) -> None:
    assert options(text).forward.routes == routes


def test_everything_else(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("10.0.0.1 gate\n")
    made = options(
        f"--listen 127.0.0.1:53 --listen [::1]:53 --pods verified --ttl 30 --workers 2 --hosts {hosts} --no-shuffle "
        "--namespaces a,b --labels x=y --transfer-to 10.0.0.0/8 --stale 60 --cache 0 --endpoint-pod-names"
    )
    assert made == DnsConfig(
        listen=("127.0.0.1:53", "[::1]:53"),
        workers=2,
        zone=ZoneConfig(pods="verified", ttl=30, namespaces=("a", "b"), labels="x=y", endpoint_pod_names=True),
        forward=ForwardConfig(routes=(Route(),), stale_seconds=60.0, cache_entries=0),
        hosts=("10.0.0.1 gate",),
        transfer_to=("10.0.0.0/8",),
        shuffle=False,
    )


@pytest.mark.parametrize(
    "text",
    [
        "--listen nowhere",
        "--status nowhere",
        "--ttl 4000",
        "--workers 0",
        "--forward dns.example.com",
        "--namespaces a --namespace-labels b=c",
        "--hosts /nowhere/hosts",
        "--zone in-addr.arpa",
        "--transfer-to somebody",
        f"--hosts {__file__}",
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(text: str) -> None:
    with pytest.raises(Failure) as caught:
        options(text)
    assert caught.value.code == 2
    assert "\n" not in str(caught.value)


def test_a_defect_ends_it_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own supervisor, such as systemd, starts it again."""

    async def die(_: ZoneFeed) -> None:
        raise ValueError("it\nbroke")

    monkeypatch.setattr(ZoneFeed, "run", die)
    (tmp_path / "config").write_text(KUBECONFIG)
    root, handlers, level = logging.getLogger(), logging.getLogger().handlers[:], logging.getLogger().level
    where = ["--kubeconfig", str(tmp_path / "config"), "--listen", "127.0.0.1:0", "--log-file", str(tmp_path / "log")]
    try:
        assert main(["dns", *where]) == 1
    finally:
        root.handlers[:], root.level = handlers, level
    assert capsys.readouterr().err == "seamark: DNS failed: ValueError: it broke\n"
    assert "Traceback" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("option", ["--listen", "--status"])
def test_an_address_that_is_taken_is_told_with_the_options(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        elsewhere = ["--listen", "127.0.0.1:0"] if option == "--status" else []
        assert main(["dns", "--kubeconfig", str(tmp_path / "kubeconfig"), option, place, *elsewhere]) == 1
    assert capsys.readouterr().err.endswith(
        f"{place}: Address already in use; choose another with --listen or --status\n"
    )
