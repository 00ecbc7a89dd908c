"""Where `seamark shell --in` goes in a Pod of several containers."""

from __future__ import annotations

import pytest

from seamark.cli.reaching.shell import main_container

ANNOTATION = "kubectl.kubernetes.io/default-container"


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ({}, "web"),
        ({"annotations": {ANNOTATION: "logs"}}, "logs"),
        ({"annotations": {ANNOTATION: "gone"}}, "web"),
    ],
)
def test_the_container_that_kubectl_would_take(metadata: dict[str, object], found: str) -> None:
    assert main_container({"metadata": metadata, "spec": {"containers": [{"name": "web"}, {"name": "logs"}]}}) == found
