"""The recorded behaviour of a real Kubernetes API server, replayed against Seamark on either store."""

from __future__ import annotations

import pytest
from replaying import replay
from seamark_process import Start


@pytest.mark.xdist_group("conformance")
def test_every_recorded_exchange_is_repeated(start: Start, store: list[str]) -> None:
    server = start("--profile", "plain", *store)
    assert replay(server, "replay_api.py", "api", "--jobs", "16", "--profile", "plain") >= 397
