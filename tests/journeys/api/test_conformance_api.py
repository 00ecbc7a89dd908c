"""The recorded behaviour of a real Kubernetes API server, replayed against Seamark on either store."""

from __future__ import annotations

import pytest
from replaying import replay
from seamark_process import Start


# A real cluster without nodes, as the recordings were made; each file is played once in each set-up.
@pytest.mark.xdist_group("conformance")
@pytest.mark.parametrize(("profile", "cases"), [("plain", 600), ("full", 526)])
def test_every_recorded_exchange_is_repeated(start: Start, store: list[str], profile: str, cases: int) -> None:
    server = start("--dns-port", "0", "--nodes", "0", "--profile", profile, *store, verb="up")
    assert replay(server, "replay_api.py", "api", "--jobs", "8", "--profile", profile) >= cases
