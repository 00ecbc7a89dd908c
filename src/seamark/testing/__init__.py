"""A private cluster per test.

    def test_my_operator(seamark):
        client = kubernetes.config.new_client_from_config(str(seamark.kubeconfig))
        ...

The ``seamark`` fixture comes with the package: pytest finds it by itself.

- ``cluster``: a cluster in this process, for tests and anything else that wants one for a moment
- ``plugin``: the pytest fixtures
"""

from seamark.testing.cluster import TestCluster

__all__ = ["TestCluster"]
