"""``seamark rotate``: a new key for tokens, with the earlier ones or without; a new token; a new authority."""

from __future__ import annotations

import base64
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from seamark.api import certificates
from seamark.api.certificates import Authority, single
from seamark.api.identity.keys import KeyRing
from seamark.cli import main
from seamark.daemon.kubeconfig import kubeconfig
from seamark.private_files import UNFINISHED, write_private


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority(tmp_path / "pki")
    made.prepare(["localhost"])
    return made


def ring(authority: Authority) -> KeyRing:
    return KeyRing([authority.signing_key_path, authority.verifying_keys_path])


def rotate(tmp_path: Path, *more: str) -> int:
    return main(["rotate", "signing-key", "--data-dir", str(tmp_path), *more])


def test_earlier_keys_stay_known(authority: Authority, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = [ring(authority).signing.id]
    for _ in range(2):
        assert rotate(tmp_path) == 0
        now = ring(authority)
        ids.insert(0, now.signing.id)
        assert [key.id for key in now.all] == ids
    assert len(set(ids)) == 3
    assert "a new key signs from now on" in capsys.readouterr().out
    for path in (authority.signing_key_path, authority.verifying_keys_path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"PRIVATE" not in authority.verifying_keys_path.read_bytes()


def test_revoking_forgets_them(authority: Authority, tmp_path: Path) -> None:
    before = ring(authority).signing.id
    assert rotate(tmp_path, "--revoke") == 0
    (left,) = ring(authority).all
    assert left.id != before


def test_a_directory_without_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rotate(tmp_path) == 1
    assert "there is no" in capsys.readouterr().err


def test_the_admins_token(authority: Authority, tmp_path: Path) -> None:
    old, written = authority.admin_token, tmp_path / "kubeconfig"
    written.write_text(f"token: {old}\n")
    assert main(["rotate", "admin-token", "--data-dir", str(tmp_path)]) == 0
    assert authority.admin_token != old
    assert written.read_text() == f"token: {authority.admin_token}\n"
    for path in (written, authority.admin_token_path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_admins_certificate_is_replaced_with_the_token(authority: Authority, tmp_path: Path) -> None:
    path, old = tmp_path / "kubeconfig", authority.admin_certificate()

    def user() -> dict[str, str]:
        return yaml.safe_load(path.read_text())["users"][0]["user"]

    path.write_text(kubeconfig(server="https://x", ca=authority.ca_pem, token=authority.admin_token, certificate=old))
    before = user()
    assert main(["rotate", "admin-token", "--data-dir", str(tmp_path)]) == 0
    new = authority.admin_certificate()
    assert [base64.b64decode(user()[f"client-{name}-data"]) for name in ("certificate", "key")] == [*new]
    assert user()["token"] == authority.admin_token
    assert all(user()[key] != value for key, value in before.items())
    assert authority.ca_pem in base64.b64decode(
        yaml.safe_load(path.read_text())["clusters"][0]["cluster"]["certificate-authority-data"]
    )


def test_a_new_authority_joins_the_earlier_until_that_is_dropped(authority: Authority, tmp_path: Path) -> None:
    old, served = authority.ca_pem, authority.server_path.read_bytes()

    def ca(*more: str) -> None:
        assert main(["rotate", "ca", "--data-dir", str(tmp_path), *more]) == 0
        assert stat.S_IMODE(authority.ca_path.stat().st_mode) == 0o600

    ca()
    new, *earlier = single(authority.ca_pem)
    assert earlier == [old]
    assert new != old
    assert authority.server_path.read_bytes() == served, "clients that know only the earlier authority go on"
    ca("--drop-old")
    assert authority.ca_pem == new
    leaf = x509.load_pem_x509_certificate(authority.server_path.read_bytes())
    leaf.verify_directly_issued_by(x509.load_pem_x509_certificate(new))
    ca("--drop-old")
    assert authority.ca_pem == new


def test_a_rotation_that_was_cut_off_loses_nothing(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    old = authority.ca_pem

    def full(path: Path, data: bytes) -> None:
        if path.name == "ca.key":
            raise OSError(28, "No space left on device")
        write_private(path, data)

    monkeypatch.setattr(certificates, "write_private", full)
    with pytest.raises(OSError, match="No space"):
        authority.new_ca()
    monkeypatch.undo()
    certificate = x509.load_pem_x509_certificate(authority.client("ann")[0])
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(old))  # the key of before signs
    authority.drop_earlier_cas()
    assert authority.ca_pem == old, "an authority without its key is of no use"


class KilledError(BaseException):
    """Ends the work at one moment, as the end of its process would: nothing after it happens."""


def kill_before(monkeypatch: pytest.MonkeyPatch, number: int) -> list[str]:
    """Let the writing of files end before the file of that number; returns the names of those that were written."""
    written: list[str] = []

    def write(path: Path, data: bytes) -> None:
        if len(written) == number:
            raise KilledError
        write_private(path, data)
        written.append(path.name)

    monkeypatch.setattr(certificates, "write_private", write)
    return written


def earlier_cas_are_dropped(authority: Authority) -> None:
    authority.new_ca()
    authority.drop_earlier_cas()


def another_name_is_served(authority: Authority) -> None:
    authority.renew(["localhost", "example.org"])


def all_tokens_are_revoked(authority: Authority) -> None:
    authority.new_signing_key(revoke=True)


def the_lost_authority_is_replaced(authority: Authority) -> None:
    authority.ca_path.unlink()
    authority.prepare(["localhost"])


def everything_is_made(authority: Authority) -> None:
    for path in authority.ca_path.parent.iterdir():
        path.unlink()
    authority.prepare(["localhost"])


@pytest.mark.parametrize(
    "work",
    [
        earlier_cas_are_dropped,
        another_name_is_served,
        all_tokens_are_revoked,
        the_lost_authority_is_replaced,
        everything_is_made,
        Authority.new_admin_token,
    ],
)
def test_wherever_the_process_is_killed_the_next_start_serves(
    work: Callable[[Authority], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = 0
    while True:
        authority = Authority(tmp_path / str(moments))
        authority.prepare(["localhost"])
        written = kill_before(monkeypatch, moments)
        try:
            work(authority)
            break
        except KilledError:
            moments += 1
        finally:
            monkeypatch.undo()
        authority.prepare(["localhost"])
        authority.tls()  # raises if a certificate and a key do not belong together
        trusted = [x509.load_pem_x509_certificate(each) for each in single(authority.ca_pem)]
        for leaf in (authority.server_path.read_bytes(), authority.admin_certificate()[0]):
            issued = x509.load_pem_x509_certificate(leaf)
            key = issued.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
            assert key in [x509.SubjectKeyIdentifier.from_public_key(each.public_key()).digest for each in trusted]
        keys = ring(authority)
        assert keys.verifying(keys.signing.id)
        assert authority.admin_token
    assert moments == len(written) > 0


def test_the_next_start_removes_what_a_killed_rotation_left(authority: Authority) -> None:
    left = authority.ca_path.parent / f".server.key{UNFINISHED}abcdefgh"
    left.touch()
    authority.prepare(["localhost"])
    assert not left.exists()


def test_old_authorities_are_dropped_without_a_note_of_what_was_issued(authority: Authority) -> None:
    authority.new_ca()
    (authority.ca_path.parent / "issued.json").write_text("{")
    assert authority.drop_earlier_cas() == 1
    authority.renew(["localhost"])
    issued = x509.load_pem_x509_certificate(authority.server_path.read_bytes())
    issued.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.ca_pem))


@pytest.mark.parametrize("words", [("ca", "--revoke"), ("admin-token", "--drop-old")])
def test_options_of_another_credential(words: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["rotate", *words, "--data-dir", str(tmp_path)])
