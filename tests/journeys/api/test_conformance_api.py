"""The recorded behaviour of a real Kubernetes API server, replayed against Seamark on either store."""

from __future__ import annotations

import pytest
from replaying import replay
from seamark_process import Start


# A cluster without nodes, as the recordings were made; each file is played once in each set-up.  The set-up with more
# objects comes first: in a new etcd the plain one reaches version 80 while a Service with port 80 is compared, and the
# tool takes such a version for the port.
@pytest.mark.parametrize(("profile", "cases"), [("full", 526), ("plain", 600)])
def test_every_recorded_exchange_is_repeated(start: Start, store: list[str], profile: str, cases: int) -> None:
    server = start("--dns-port", "0", "--nodes", "0", "--profile", profile, *store, verb="up")
    assert replay(server, "replay_api.py", "api", "--jobs", "8", "--profile", profile) >= cases


def test_two_processes_repeat_them_as_one(start: Start) -> None:
    server = start("--dns-port", "0", "--nodes", "0", "--workers", "2", verb="up")
    assert replay(server, "replay_api.py", "api", "--jobs", "8", "--profile", "full") >= 526
