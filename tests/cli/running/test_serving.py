"""What ``up`` and ``apiserver`` say before they serve."""

import pytest

from seamark.api.settings import ApiSettings
from seamark.cli.running.serving import exposed
from seamark.config import Config


@pytest.mark.parametrize(
    ("api", "dns", "told"),
    [
        ("127.0.0.1", "127.0.0.1", []),
        ("localhost", "::1", []),
        ("127.1.2.3", "0.0.0.0", ["DNS"]),
        ("0.0.0.0", "127.0.0.1", ["the API server"]),
        ("::", "::", ["the API server", "DNS"]),
        ("node-a.example", "192.0.2.7", ["the API server", "DNS"]),
    ],
)
def test_a_part_that_other_machines_can_reach_is_named(api: str, dns: str, told: list[str]) -> None:
    config = Config(api=ApiSettings(host=api), dns_host=dns)
    assert [sentence.partition(" listens on ")[0] for sentence in exposed(config, ["dns"])] == told
    assert [sentence for sentence in exposed(config, []) if "DNS" in sentence] == []
