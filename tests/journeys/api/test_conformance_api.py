"""The recorded behaviour of a real Kubernetes API server, replayed against Seamark on either store."""

from __future__ import annotations

import pytest
from replaying import replay
from seamark_process import Seamark


@pytest.mark.xdist_group("conformance")
def test_every_recorded_exchange_is_repeated(server: Seamark) -> None:
    assert replay(server, "replay_api.py", "api", "--jobs", "16") >= 397
