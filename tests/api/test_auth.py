"""Who asks, whom they ask to be, and what they may."""

import pytest
from served import ADMIN, OTHER, TOKENS

from seamark.api.auth import ANONYMOUS, AUTHENTICATED, Authenticator, acting_as, may, read_token_file
from seamark.api.certificates import Authority
from seamark.api.context import User
from seamark.api.http.protocol import Request
from seamark.errors import BadRequest, Forbidden, Unauthorized

MASTER = User("root", ("system:masters", AUTHENTICATED))
KNOWN = User("ann", (AUTHENTICATED,))


def request(certificate=None, **headers):
    return Request(
        "GET", "/", "", {name.replace("_", "-"): value for name, value in headers.items()}, b"", certificate=certificate
    )


@pytest.fixture
def authenticator():
    return Authenticator(TOKENS)


@pytest.mark.parametrize("header", [f"Bearer {ADMIN}", f"bearer  {ADMIN} ", f"BEARER {ADMIN}"])
def test_a_token_says_who(authenticator, header):
    assert authenticator.user(request(authorization=header)).name == "admin"


@pytest.mark.parametrize("header", ["Bearer nobody", f"Bearer {ADMIN}x", "Bearer \xff", "Bearer " + "x" * 10_000])
def test_a_token_that_is_none_is_refused(authenticator, header):
    with pytest.raises(Unauthorized):
        authenticator.user(request(authorization=header))


@pytest.mark.parametrize("header", ["", "Basic eDp5", "Bearer", "Bearer ", f"Token {ADMIN}"])
def test_anything_else_is_nobody(authenticator, header):
    assert authenticator.user(request(authorization=header)) is ANONYMOUS


def test_a_certificate_says_who(authenticator, tmp_path):
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    authority = Authority(tmp_path)
    authority.prepare(["x"])
    pem, _ = authority.client("ann", ["readers", "writers"])
    der = x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)
    assert authenticator.user(request(der)) == User("ann", ("readers", "writers", AUTHENTICATED))
    # A token is asked first.
    assert authenticator.user(request(der, authorization=f"Bearer {OTHER}")).name == "other"


def test_token_files(tmp_path):
    path = tmp_path / "tokens.csv"
    path.write_text('# a comment\n\nt1,ann,u1,"readers, writers"\nt2,bob,u2\n')
    assert read_token_file(path) == {
        "t1": User("ann", ("readers", "writers", AUTHENTICATED), "u1"),
        "t2": User("bob", (AUTHENTICATED,), "u2"),
    }
    path.write_text("t1,ann\n")
    with pytest.raises(ValueError, match=r"tokens\.csv:1: .* found 2 column"):
        read_token_file(path)


@pytest.mark.parametrize(
    ("user", "verb", "where", "allowed"),
    [
        (MASTER, "delete", {"resource": "nodes"}, True),
        (MASTER, "post", {"path": "/anything"}, True),
        (KNOWN, "get", {"resource": "pods"}, False),
        (KNOWN, "create", {"resource": "selfsubjectaccessreviews"}, True),
        (KNOWN, "create", {"resource": "tokenreviews"}, False),
        (KNOWN, "get", {"path": "/api"}, True),
        (KNOWN, "get", {"path": "/openapi/v3/api/v1"}, True),
        (KNOWN, "get", {"path": "/metrics"}, False),
        (ANONYMOUS, "get", {"path": "/readyz/store"}, True),
        (ANONYMOUS, "get", {"path": "/readyzness"}, False),
        (ANONYMOUS, "post", {"path": "/version"}, False),
        (ANONYMOUS, "get", {"path": "/api"}, False),
        (ANONYMOUS, "create", {"resource": "selfsubjectreviews"}, False),
    ],
)
def test_rights(user, verb, where, allowed):
    assert may(user, verb, **where) is allowed


def test_being_somebody_else():
    asked = {"impersonate-user": "bob", "impersonate-group": "readers, writers", "impersonate-uid": "u"}
    assert acting_as(MASTER, asked) == User("bob", ("readers", "writers", AUTHENTICATED), "u")
    assert acting_as(MASTER, {"impersonate-user": ANONYMOUS.name}).groups == ANONYMOUS.groups
    account = acting_as(MASTER, {"impersonate-user": "system:serviceaccount:ns:robot"})
    assert account.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", AUTHENTICATED)
    with pytest.raises(Forbidden, match="cannot impersonate"):
        acting_as(KNOWN, asked)
    with pytest.raises(BadRequest):
        acting_as(MASTER, {"impersonate-group": "readers"})


async def test_rights_are_those_of_whom_one_acts_as(api):
    answer = await api.ask("GET", "/api/v1/pods", headers={"impersonate-user": "bob"})
    assert (answer.status, 'User "bob" cannot list' in answer.json["message"]) == (403, True)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    review = await api.post(path, body, headers={"impersonate-user": "bob", "impersonate-group": "g"})
    assert review["status"]["userInfo"] == {"username": "bob", "groups": ["g", AUTHENTICATED]}


async def test_a_403_names_the_verb(api):
    for method, path, verb in (
        ("GET", "/api/v1/pods", "list"),
        ("GET", "/api/v1/pods?watch=1", "watch"),
        ("GET", "/api/v1/namespaces/x/pods/p", "get"),
        ("DELETE", "/api/v1/namespaces/x/pods", "deletecollection"),
        ("PATCH", "/api/v1/namespaces/x/pods/p/status", "patch"),
    ):
        answer = await api.ask(method, path, token=OTHER)
        assert (answer.status, f'User "other" cannot {verb} resource' in answer.json["message"]) == (403, True)
