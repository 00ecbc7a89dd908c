"""``seamark controllers``: what its flags mean, and what it says when they mean nothing."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from seamark.cli import main
from seamark.cli.running.controllers import parser
from seamark.cli.settings import config_of
from seamark.config import Config
from seamark.controllers.settings import DiscoverySettings, ElectionSettings
from seamark.runtime.manager import Manager

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: ""}}]
current-context: c
"""


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """The command sets up logging to the stderr of its test, which is closed once that ends."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def config(*arguments: str) -> Config:
    return config_of(parser().parse_args(arguments), "controllers")


def test_by_default_the_discovery_controllers_and_the_probes_run_elected() -> None:
    made = config()
    assert made.discovery == DiscoverySettings()
    assert made.discovery.controllers == ("endpoints", "endpointslices", "endpointslicemirroring", "probes")
    assert made.election == ElectionSettings()
    assert (made.election.namespace, made.election.name) == ("kube-system", "seamark-discovery")


def test_flags_become_settings() -> None:
    made = config(
        *("--controllers", "endpointslices, endpoints", "--concurrent", "9", "--batch", "0.5"),
        *("--max-endpoints-per-slice", "1000", "--leader-elect-namespace", "here", "--leader-elect-name", "lock"),
        *("--leader-elect-identity", "me", "--leader-elect-lease-duration", "60", "--kubeconfig", "k", "-v"),
    )
    assert made.discovery == DiscoverySettings(
        controllers=("endpointslices", "endpoints"), workers=9, batch=0.5, max_endpoints_per_slice=1000
    )
    assert made.election == ElectionSettings(namespace="here", name="lock", identity="me", lease_duration=60)
    assert (made.cluster.kubeconfig, made.log.level) == ("k", "info")


def test_a_file_and_variables_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "seamark.toml").write_text("[discovery]\nbatch = 0.5\nworkers = 2\n[nodes]\ncount = 1\n")
    monkeypatch.setenv("SEAMARK_CONFIG", str(tmp_path / "seamark.toml"))
    monkeypatch.setenv("SEAMARK_CONCURRENT", "3")
    monkeypatch.setenv("SEAMARK_LEADER_ELECT", "false")
    monkeypatch.setenv("SEAMARK_NODES", "nonsense, but of another command")
    made = config("--max-endpoints-per-slice", "7")
    assert made.discovery == DiscoverySettings(workers=3, batch=0.5, max_endpoints_per_slice=7)
    assert made.election.enabled is False
    assert config("--leader-elect").election.enabled is True


@pytest.mark.parametrize("flag", ["--no-leader-elect", "--leader-elect=false"])
def test_without_election(flag: str) -> None:
    assert config(flag).election.enabled is False


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--controllers", "endpoints,garbage"), "controllers: 'garbage' is not one of endpoints, endpointslices"),
        (("--controllers", ","), "no controllers: name some of endpoints"),
        (("--max-endpoints-per-slice", "1001"), "between 1 and 1000, not 1001"),
        (("--concurrent", "0"), "at least one worker"),
        (("--batch", "-1"), "a number of seconds"),
        (("--status", "nowhere"), "[discovery] cannot listen on 'nowhere'"),
        (("--leader-elect-renew-deadline", "20"), "renew_deadline < duration"),
    ],
)
def test_a_setting_that_makes_no_sense_is_one_line_and_exit_code_two(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["controllers", *arguments]) == 2
    line = capsys.readouterr().err
    assert said in line
    assert line.startswith("seamark: ")
    assert line.count("\n") == 1


def test_a_kubeconfig_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["controllers", "--kubeconfig", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err == f"seamark: there is no kubeconfig at {tmp_path / 'none'}\n"


def test_a_status_port_that_is_taken_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config").write_text(KUBECONFIG)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        arguments = ["--kubeconfig", str(tmp_path / "config"), "--status", f"127.0.0.1:{port}"]
        assert main(["controllers", *arguments]) == 1
    line = capsys.readouterr().err
    assert line.startswith(f"seamark: cannot serve the status on 127.0.0.1:{port}: ")
    assert line.count("\n") == 1


def test_a_defect_ends_it_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own supervisor, such as a kubelet, starts it again."""

    async def die(_: Manager) -> None:
        raise ValueError("it\nbroke")

    monkeypatch.setattr(Manager, "work", die)
    (tmp_path / "config").write_text(KUBECONFIG)
    log = tmp_path / "log"
    assert (
        main(["controllers", "--kubeconfig", str(tmp_path / "config"), "--no-leader-elect", "--log-file", str(log)])
        == 1
    )
    assert capsys.readouterr().err == "seamark: the controllers failed: ValueError: it broke\n"
    assert log.read_text().count("Traceback") > 0


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["controllers", "--help"])
    assert ended.value.code == 0
    assert "examples:" in capsys.readouterr().out
