"""A private cluster per test.

    def test_my_operator(seamark):
        client = kubernetes.config.new_client_from_config(str(seamark.kubeconfig))
        ...

pytest finds the ``seamark`` fixture by itself once the package is installed.

- ``cluster``: a whole cluster in the current process, for tests and scripts
- ``plugin``: the pytest fixtures
"""

from seamark.testing.cluster import TestCluster

__all__ = ["TestCluster"]
