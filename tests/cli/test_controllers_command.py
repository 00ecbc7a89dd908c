"""``seamark controllers``: what its flags mean, and what it says when they mean nothing."""

from __future__ import annotations

import argparse
import socket
from pathlib import Path

import pytest

from seamark.cli import main
from seamark.cli.controllers import add_options, settings_of

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: ""}}]
current-context: c
"""


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return parser.parse_args(arguments)


def test_by_default_the_three_discovery_controllers_run_elected() -> None:
    which, settings, election = settings_of(parsed())
    assert which == ("endpoints", "endpointslices", "endpointslicemirroring")
    assert (settings.workers, settings.max_endpoints_per_slice, settings.batch) == (5, 100, 0.0)
    assert election is not None
    assert (election.namespace, election.name) == ("kube-system", "seamark-discovery")
    assert (election.timing.duration, election.timing.renew_deadline, election.timing.retry_period) == (15, 10.0, 2.0)


def test_flags_become_settings() -> None:
    which, settings, election = settings_of(
        parsed(
            *("--controllers", "endpointslices, endpoints", "--concurrent", "9", "--batch", "0.5"),
            *("--max-endpoints-per-slice", "1000", "--leader-elect-namespace", "here", "--leader-elect-name", "lock"),
            *("--leader-elect-identity", "me", "--leader-elect-lease-duration", "60"),
        )
    )
    assert which == ("endpoints", "endpointslices")
    assert (settings.workers, settings.max_endpoints_per_slice, settings.batch) == (9, 1000, 0.5)
    assert election is not None
    assert (election.namespace, election.name, election.identity) == ("here", "lock", "me")
    assert election.timing.duration == 60


def test_without_election_there_is_none() -> None:
    assert settings_of(parsed("--no-leader-elect"))[2] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--controllers", "endpoints,garbage"), "no such controller: garbage; there are endpoints, endpointslices"),
        (("--controllers", ","), "which controllers?"),
        (("--max-endpoints-per-slice", "1001"), "between 1 and 1000, not 1001"),
        (("--concurrent", "0"), "at least one worker"),
        (("--batch", "-1"), "a number of seconds"),
        (("--status", "nowhere"), "--status: cannot listen on 'nowhere'"),
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


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["controllers", "--help"])
    assert ended.value.code == 0
    assert "examples:" in capsys.readouterr().out
