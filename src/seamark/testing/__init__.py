"""A private cluster per test.

    def test_my_operator(seamark):
        client = kubernetes.config.new_client_from_config(str(seamark.kubeconfig))
        ...

pytest finds the ``seamark`` fixture by itself once the package is installed.

- ``cluster``: a whole cluster in the current process, for tests and scripts
- ``plugin``: the pytest fixtures
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seamark.testing.cluster import TestCluster

__all__ = ["TestCluster"]


def __getattr__(name: str) -> object:
    """Import the cluster on first use, because pytest imports this package in every run, wanted or not."""
    if name != "TestCluster":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from seamark.testing.cluster import TestCluster

    return TestCluster
