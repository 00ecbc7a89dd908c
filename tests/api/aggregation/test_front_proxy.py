"""The front proxy's certificate is renewed in time, and when the clock had been ahead."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from seamark.api.aggregation.front_proxy import NAME, FrontProxy

DAY = 86400


@pytest.mark.parametrize(("made", "kept"), [(0, True), (-200, True), (-301, False), (300, False)])
def test_the_certificate_is_neither_old_nor_of_the_future(tmp_path: Path, made: int, kept: bool) -> None:
    FrontProxy(tmp_path).prepare()
    before = FrontProxy(tmp_path).certificate()
    moment = time.time() + made * DAY
    os.utime(tmp_path / f"{NAME}.crt", (moment, moment))
    assert (FrontProxy(tmp_path).certificate() == before) is kept
