"""Key files that ``seamark apiserver`` cannot use are named in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from seamark.api.certificates import Authority
from seamark.api.identity.keys import new_key
from seamark.config import ConfigError, settled
from seamark.daemon.requirements import token_keys


def keys_of(folder: Path, **settings: object) -> object:
    return token_keys(Authority(folder / "pki"), settled({"tokens": settings}).tokens)


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the key file .*none\.pem: No such file"):
        keys_of(tmp_path, signing_key=str(tmp_path / "none.pem"))
    (tmp_path / "text.pem").write_text("hello")
    with pytest.raises(ConfigError, match=r"bad key file .*text\.pem: there is no RSA or ECDSA key"):
        keys_of(tmp_path, signing_key=str(tmp_path / "text.pem"))
    (tmp_path / "good.pem").write_bytes(new_key())
    assert keys_of(tmp_path, signing_key=str(tmp_path / "good.pem"))


def test_the_issuer_follows_the_cluster_domain() -> None:
    tokens = settled({"cluster_domain": "example.org"}).tokens
    assert tokens.issuers == tokens.audiences == ("https://kubernetes.default.svc.example.org",)
    given = settled({"tokens": {"issuers": ["https://a", "https://b"]}}).tokens
    assert given.audiences == given.issuers == ("https://a", "https://b")
