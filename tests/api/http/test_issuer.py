"""Where others find the keys that verify our tokens."""

import pytest

from seamark.api.http.issuer import keys_beside


@pytest.mark.parametrize(
    ("host", "keys"),
    [
        ("kubernetes.default.svc.cluster.local", "https://kubernetes.default.svc.cluster.local/openid/v1/jwks"),
        ("[::1]:6443", "https://[::1]:6443/openid/v1/jwks"),
        ("", "https://127.0.0.1:6443/openid/v1/jwks"),
    ],
)
def test_the_keys_are_where_the_client_found_us(host, keys):
    assert keys_beside("https://127.0.0.1:6443", host) == keys
