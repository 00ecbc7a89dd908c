"""The stage on which the demo plays its commands."""

from pathlib import Path

import pytest

from seamark import cli
from seamark.cli.running.demo import DemoCluster, TerminalStage


def test_ctrl_c_during_a_command_ends_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_arguments: list[str]) -> int:
        return cli.guarded(lambda _: (_ for _ in ()).throw(KeyboardInterrupt), [])

    stage = TerminalStage("demo", DemoCluster(Path("kubeconfig"), "", ""), pause=False)
    monkeypatch.setattr(cli, "main", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stage.output("seamark get pods")
