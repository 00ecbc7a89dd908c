"""A private cluster per test; docs/testing.md has recipes.

    def test_my_operator(seamark):
        client = kubernetes.config.new_client_from_config(str(seamark.kubeconfig))
        ...

pytest finds the ``seamark`` fixture by itself once the package is installed; other programs write
``with seamark.testing.Cluster() as cluster:``.

- ``plugin``: the pytest fixtures, the marker and the option
- ``cluster``: a whole cluster in the current process, for tests and scripts
- ``thread``: the event loop that all clusters of a process live in
- ``logins``: users and ServiceAccounts with limited rights, each with a kubeconfig
- ``telling``: what is wrong in a cluster, for the message of a test that waited in vain
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seamark.testing.cluster import Cluster, NotYet
    from seamark.testing.cluster import Cluster as TestCluster
    from seamark.testing.logins import Login

__all__ = ["Cluster", "Login", "NotYet", "TestCluster"]


def __getattr__(name: str) -> object:
    """Import the cluster on first use, because pytest imports this package in every run, wanted or not."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from seamark.testing import cluster, logins

    return {"Login": logins.Login, "NotYet": cluster.NotYet}.get(name, cluster.Cluster)
