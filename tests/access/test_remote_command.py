"""A command in a Pod: what its Status says about its end."""

from __future__ import annotations

import pytest

from seamark.access.remote_command import outcome


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"status": "Success"}, (0, "")),
        ({"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "7"}]}}, (7, "")),
        ({"status": "Failure", "message": "no such container"}, (1, "no such container")),
        ({"status": "Failure", "details": None, "message": "gone"}, (1, "gone")),
    ],
)
def test_the_outcome(status, expected):
    assert outcome(status) == expected
