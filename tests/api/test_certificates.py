"""The server's own authority: made once, renewed in time, private."""

import json
import ssl
import stat

import pytest
from cryptography import x509

from seamark.api.certificates import DAY, SERVER_DAYS, Authority
from virtual_time import VirtualClock


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def authority(tmp_path, clock):
    made = Authority(tmp_path / "pki", clock)
    made.prepare(["localhost", "127.0.0.1"])
    return made


def served_names(authority):
    certificate = x509.load_pem_x509_certificate(authority.server_path.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in names}


def test_everything_is_private(authority):
    directory = authority.ca_path.parent
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
    names = "ca.crt ca.key server.crt server.key admin.token issued.json sa.key sa.pub"
    assert found == dict.fromkeys(names.split(), 0o600)


def test_what_is_good_is_kept(authority, clock):
    before = {path: path.read_bytes() for path in authority.ca_path.parent.iterdir()}
    clock.now += (SERVER_DAYS - 31) * DAY
    authority.prepare(["127.0.0.1"])
    assert {path: path.read_bytes() for path in authority.ca_path.parent.iterdir()} == before


def test_what_is_old_is_renewed_by_the_same_authority(authority, clock):
    ca, token, old = authority.ca_pem, authority.admin_token, authority.server_path.read_bytes()
    clock.now += (SERVER_DAYS - 29) * DAY
    authority.prepare(["127.0.0.1"])
    assert authority.server_path.read_bytes() != old
    assert (authority.ca_pem, authority.admin_token) == (ca, token)
    new = x509.load_pem_x509_certificate(authority.server_path.read_bytes())
    new.verify_directly_issued_by(x509.load_pem_x509_certificate(ca))
    assert new.not_valid_after_utc.timestamp() == pytest.approx(clock.now + SERVER_DAYS * DAY, abs=1)
    assert new.not_valid_before_utc.timestamp() < clock.now


def test_a_clock_that_is_set_back_by_hours_finds_everything_valid(authority, clock):
    made = (authority.ca_pem, authority.server_path.read_bytes(), authority.admin_certificate()[0])
    clock.now -= 14 * 3600
    authority.prepare(["localhost"])
    assert (authority.ca_pem, authority.server_path.read_bytes(), authority.admin_certificate()[0]) == made
    for certificate in map(x509.load_pem_x509_certificate, made):
        assert certificate.not_valid_before_utc.timestamp() < clock.now


def test_what_a_clock_that_was_ahead_has_made_is_renewed(authority, clock):
    clock.now += 400 * DAY
    authority.prepare(["localhost"])
    clock.now -= 400 * DAY
    authority.prepare(["localhost"])
    certificate = x509.load_pem_x509_certificate(authority.server_path.read_bytes())
    assert certificate.not_valid_before_utc.timestamp() < clock.now < certificate.not_valid_after_utc.timestamp()
    kept = authority.server_path.read_bytes()
    authority.prepare(["localhost"])
    assert authority.server_path.read_bytes() == kept


def test_a_clock_far_ahead_keeps_nothing_from_starting(authority, clock):
    clock.now += 11 * 365 * DAY
    authority.prepare(["localhost"])
    authority.tls()
    assert served_names(authority) == {"localhost"}


def test_a_new_name_needs_a_new_certificate(authority):
    assert served_names(authority) == {"localhost", "127.0.0.1"}
    authority.prepare(["localhost", "10.0.0.7", "fd00::1", "api.example"])
    assert served_names(authority) == {"localhost", "10.0.0.7", "fd00::1", "api.example"}


@pytest.mark.parametrize("name", ["server.crt", "server.key", "issued.json"])
def test_what_is_missing_is_made_again(authority, name):
    ca = authority.ca_pem
    (authority.ca_path.parent / name).unlink()
    authority.prepare(["localhost"])
    assert (authority.ca_path.parent / name).exists()
    authority.tls()
    assert authority.ca_pem == ca


def test_an_unreadable_note_is_written_anew(authority):
    note = authority.ca_path.parent / "issued.json"
    note.write_bytes(b"{")
    authority.prepare(["localhost"])
    assert json.loads(note.read_bytes())["names"] == ["localhost"]
    assert served_names(authority) == {"localhost"}


def test_a_new_authority_signs_everything_anew(authority):
    old = authority.ca_pem
    (authority.ca_path.parent / "ca.key").unlink()
    authority.prepare(["localhost", "127.0.0.1"])
    assert authority.ca_pem != old
    server = x509.load_pem_x509_certificate(authority.server_path.read_bytes())
    server.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.ca_pem))


def test_clients_name_their_user_and_groups(authority):
    pem, key = authority.client("ann", ["system:masters", "readers"])
    subject = x509.load_pem_x509_certificate(pem).subject.rfc4514_string()
    assert "CN=ann" in subject
    assert "O=system:masters" in subject
    assert "O=readers" in subject
    assert b"PRIVATE KEY" in key


def admin_subject(authority):
    return x509.load_pem_x509_certificate(authority.admin_certificate()[0]).subject.rfc4514_string()


def test_the_admin_has_a_certificate_that_is_kept_and_ends_with_its_authority(authority, clock):
    made = authority.admin_certificate()
    assert "CN=kubernetes-admin" in admin_subject(authority)
    assert "O=system:masters" in admin_subject(authority)
    assert b"PRIVATE KEY" in made[1]
    certificate, ca = map(x509.load_pem_x509_certificate, (made[0], authority.ca_pem))
    certificate.verify_directly_issued_by(ca)
    # A client that shows an expired certificate is cut off in TLS, even if its token is good.
    assert certificate.not_valid_after_utc == ca.not_valid_after_utc
    assert stat.S_IMODE(authority.admin_certificate_path.stat().st_mode) == 0o600
    clock.now += SERVER_DAYS * DAY
    authority.prepare(["localhost"])
    assert authority.admin_certificate() == made


def test_the_admin_gets_another_certificate_from_another_authority(authority):
    made = authority.admin_certificate()
    authority.new_ca()
    again = authority.admin_certificate()
    assert again != made
    x509.load_pem_x509_certificate(again[0]).verify_directly_issued_by(x509.load_pem_x509_certificate(authority.ca_pem))
    authority.drop_earlier_cas()
    assert authority.admin_certificate() == again, "clients that have it already go on"


@pytest.mark.parametrize("damage", [lambda text: b"", lambda text: text[:200], lambda text: b"x" + text])
def test_a_damaged_certificate_of_the_admin_is_made_again(authority, damage):
    made = authority.admin_certificate()
    path = authority.admin_certificate_path
    path.write_bytes(damage(path.read_bytes()))
    again = authority.admin_certificate()
    assert again != made
    assert "CN=kubernetes-admin" in admin_subject(authority)


def test_a_new_token_of_the_admin_ends_the_certificate(authority):
    made = authority.admin_certificate()
    authority.new_admin_token()
    assert not authority.admin_certificate_path.exists()
    assert authority.admin_certificate() != made


def test_the_context_takes_what_was_made(authority):
    context = authority.tls()
    assert context.verify_mode == ssl.CERT_OPTIONAL
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
