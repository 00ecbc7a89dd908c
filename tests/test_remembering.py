"""What is remembered of texts that users send."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

import pytest

from seamark import errors
from seamark.api.http import negotiate
from seamark.kinds.batch import cronjob, schedule
from seamark.kinds.pod.defaults import pull_policy
from seamark.kinds.values import addresses, quantity, selectors, times
from seamark.nodes.simulated.pods import commands
from seamark.remembering import LONGEST, remembered


def test_long_texts_are_not_kept() -> None:
    asked = []

    @remembered(10)
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    for text in ("short", "x" * LONGEST, "x" * (LONGEST + 1)) * 2:
        assert length(text) == len(text)
    assert [len(text) for text in asked] == [5, LONGEST, LONGEST + 1, LONGEST + 1]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (pull_policy, "x"),
        (quantity.canonical, "0"),
        (quantity.amount, "0"),
        (selectors.parse_labels, "a,"),
        (selectors.parse_fields, "a=b,"),
        (addresses.plain, "1"),
        (schedule.parse, " "),
        (cronjob.time_zone, "x"),
        (times.parse, "0"),
        (lambda text: negotiate.negotiate(text, frozenset()), "a/b,"),
        (lambda text: commands.end([text], []), "x"),
    ],
)
def test_no_function_keeps_what_users_send_if_it_is_long(function: Callable[[str], object], text: str) -> None:
    sent = "".join([text] * (LONGEST + 1))
    before = sys.getrefcount(sent)
    with contextlib.suppress(ValueError, errors.ApiError):
        function(sent)
    assert sys.getrefcount(sent) == before
