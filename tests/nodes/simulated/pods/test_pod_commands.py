"""Commands whose end can be told without running them."""

from math import inf

import pytest

from seamark.nodes.simulated.pods import commands


@pytest.mark.parametrize(
    ("command", "arguments", "end"),
    [
        (["sleep", "300"], [], (300.0, 0)),
        (["/bin/sleep"], ["1.5m"], (90.0, 0)),
        (["sleep", "infinity"], [], (inf, 0)),
        (["/bin/true"], [], (0.0, 0)),
        (["/bin/false"], [], (0.0, 1)),
        (["sh", "-c", "exit 0"], [], (0.0, 0)),
        (["/bin/sh", "-c"], ["sleep 5; exit 3"], (5.0, 3)),
        (["bash", "-c", "sleep 1 && sleep 2"], [], (3.0, 0)),
        (["sh", "-c", "false && sleep 9; sleep 1"], [], (1.0, 0)),
        (["sh", "-c", "false && exit 0"], [], (0.0, 1)),
        (["sh", "-c", "exit 2; sleep 10"], [], (0.0, 2)),
        ([], ["sleep", "5"], None),
        (["sleep"], [], None),
        (["sleep", "long"], [], None),
        (["sleep", "nan"], [], None),
        (["sleep", "-1"], [], None),
        (["sh", "-c", "exit 256"], [], None),
        (["sh", "-c", "while true; do sleep 1; done"], [], None),
        (["sh", "-c", "sleep 1 || true"], [], None),
        (["sh", "-c", 'sleep "$TIME"'], [], None),
        (["nginx"], ["-g", "daemon off;"], None),
    ],
)
def test_how_it_ends(command, arguments, end):
    assert commands.end(command, arguments) == end
