"""Where kinds are in the API."""

from __future__ import annotations

import pytest

from seamark.kinds.resource import CONFIGMAPS, Resource

ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (CONFIGMAPS.path(namespace="shop", name="web.1"), "/api/v1/namespaces/shop/configmaps/web.1"),
        (
            CONFIGMAPS.path(namespace="a/secrets/b?", name="../x"),
            "/api/v1/namespaces/a%2Fsecrets%2Fb%3F/configmaps/..%2Fx",
        ),
        (CONFIGMAPS.path(namespace="a b", name="é\r\n"), "/api/v1/namespaces/a%20b/configmaps/%C3%A9%0D%0A"),
        (ROLES.path(name="system:node"), "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"),
    ],
)
def test_a_name_is_one_part_of_a_path(path: str, expected: str) -> None:
    assert path == expected
