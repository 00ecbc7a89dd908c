"""The recorded behaviour of a real Kubernetes API server, replayed against Seamark on either store."""

from __future__ import annotations

import pytest
from replaying import replay
from seamark_process import Start


@pytest.mark.xdist_group("conformance")
def test_every_recorded_exchange_is_repeated(start: Start, store: list[str]) -> None:
    server = start("--profile", "plain", *store)
    assert replay(server, "replay_api.py", "api", "--jobs", "16", "--profile", "plain") >= 600


@pytest.mark.parametrize(
    ("topic", "cases"),
    [("rbac/", 53), ("auth/", 6), ("tokens/", 20), ("admission/serviceaccount", 5), ("kinds-other/csr", 3)],
)
def test_identities_and_rights_in_a_full_cluster(start: Start, store: list[str], topic: str, cases: int) -> None:
    server = start("--profile", "full", *store)
    assert replay(server, "replay_api.py", "api", "--jobs", "8", "--profile", "full", "-k", topic) == cases


def test_what_admission_and_controllers_do_in_a_full_cluster(start: Start, store: list[str]) -> None:
    server = start("--profile", "full", *store)
    assert replay(server, "replay_api.py", "api", "--jobs", "8", "--profile", "full", "-k", "admission/") == 39
