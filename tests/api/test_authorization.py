"""Authentication and authorization."""

import ssl
from hashlib import sha256

import pytest
from served import ADMIN, OTHER, TOKENS, served

from seamark.api.authentication import Authenticator, FixedTokens, KeptCertificate, read_token_file
from seamark.api.authorization import ANONYMOUS, AUTHENTICATED, Attributes, Decision, GroupAuthorizer, User
from seamark.api.certificates import Authority
from seamark.api.identity.keys import KeyRing
from seamark.api.identity.tokens import ServiceAccountTokens
from seamark.api.settings import DEFAULT_TOKENS
from seamark.api.state.cache import Cache
from seamark.clock import SYSTEM_CLOCK
from seamark.errors import Forbidden, Unauthorized
from seamark.kinds.resource import DEPLOYMENTS, PODS
from seamark.kinds.table import KINDS
from seamark.store.opening import open_store
from virtual_time import VirtualClock

MASTER = User("root", ("system:masters", AUTHENTICATED))
KNOWN = User("ann", (AUTHENTICATED,))
GROUPS = GroupAuthorizer()


@pytest.fixture
def authenticator():
    cache = Cache(open_store("memory:"), KINDS)
    return Authenticator(
        FixedTokens(lambda: TOKENS), ServiceAccountTokens(cache, KeyRing(), DEFAULT_TOKENS, SYSTEM_CLOCK)
    )


@pytest.mark.parametrize("header", [f"Bearer {ADMIN}", f"bearer  {ADMIN} ", f"BEARER {ADMIN}"])
def test_a_token_says_who(authenticator, header):
    assert authenticator.user({"authorization": header}, None).name == "admin"


@pytest.mark.parametrize("header", ["Bearer nobody", f"Bearer {ADMIN}x", "Bearer \xff", "Bearer " + "x" * 10_000])
def test_a_token_that_is_none_is_refused(authenticator, header):
    with pytest.raises(Unauthorized):
        authenticator.user({"authorization": header}, None)


@pytest.mark.parametrize("header", ["", "Basic eDp5", "Bearer", "Bearer ", f"Token {ADMIN}"])
def test_anything_else_is_nobody(authenticator, header):
    assert authenticator.user({"authorization": header}, None) is ANONYMOUS


def test_a_certificate_says_who(authenticator, authority):
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    pem, _ = authority.client("ann", ["readers", "writers"])
    der = x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)
    credential = ("authentication.kubernetes.io/credential-id", (f"X509SHA256={sha256(der).hexdigest()}",))
    assert authenticator.user({}, der) == User("ann", ("readers", "writers", AUTHENTICATED), extra=(credential,))
    # A token is asked first.
    assert authenticator.user({"authorization": f"Bearer {OTHER}"}, der).name == "other"


def test_the_admins_certificate_is_good_as_long_as_its_file_holds_it(tmp_path):
    clock, authority = VirtualClock(), Authority(tmp_path)
    authority.prepare(["x"])
    cache = Cache(open_store("memory:"), KINDS)
    known = Authenticator(
        FixedTokens(lambda: TOKENS),
        ServiceAccountTokens(cache, KeyRing(), DEFAULT_TOKENS, clock),
        KeptCertificate(authority.admin_certificate_path, clock),
    )

    def admin():
        return ssl.PEM_cert_to_DER_cert(authority.admin_certificate()[0].decode())

    first = admin()
    assert known.user({}, first).name == "kubernetes-admin"
    assert "system:masters" in known.user({}, first).groups
    authority.new_admin_token()
    second = admin()
    assert known.user({}, second).name == "kubernetes-admin", "a new one is good at once"
    with pytest.raises(Unauthorized):
        known.user({}, first)
    authority.new_admin_token()  # and there is none now
    assert known.user({}, second).name == "kubernetes-admin"
    clock.now += 11
    with pytest.raises(Unauthorized):
        known.user({}, second)
    assert known.user({"authorization": f"Bearer {OTHER}"}, second).name == "other", "a token is asked first"


def test_a_server_that_keeps_no_certificate_knows_no_admins(authenticator, authority):
    with pytest.raises(Unauthorized):
        authenticator.user({}, ssl.PEM_cert_to_DER_cert(authority.admin_certificate()[0].decode()))


def test_tokens_in_files_are_replaced_while_the_server_runs(tmp_path):
    clock, path = VirtualClock(), tmp_path / "tokens.csv"
    path.write_text("t1,ann,u1\n")
    cache = Cache(open_store("memory:"), KINDS)
    fixed = FixedTokens(lambda: read_token_file(path), [path], clock)
    known = Authenticator(fixed, ServiceAccountTokens(cache, KeyRing(), DEFAULT_TOKENS, clock))
    assert known.user_of_token("t1").name == "ann"
    path.write_text("t22,bob,u2\n")
    assert known.user_of_token("t22").name == "bob", "a new token is good at once"
    assert known.user_of_token("t1") is None
    path.write_text("t333,cyd,u3\n")
    clock.now += 11
    assert known.user_of_token("t22") is None
    # A file that is gone or half written leaves the tokens as they were.
    path.write_text("t4\n")
    clock.now += 11
    assert known.user_of_token("t333").name == "cyd"
    path.unlink()
    clock.now += 11
    assert known.user_of_token("t333").name == "cyd"


def test_tokens_are_kept_and_found_by_their_digests_only():
    """A look-up compares digests: a guess that begins like a token is no nearer to it than any other."""
    asked = []

    class Kept(dict):
        def get(self, key, default=None):
            asked.append(key)
            return super().get(key, default)

    fixed = FixedTokens(lambda: {"secret-token": User("ann")})
    fixed._users = Kept(fixed._users)
    digests = [sha256(guess.encode()).digest() for guess in ("secret-token", "secret-tokex", "x")]
    assert [fixed.user(digest) is not None for digest in digests] == [True, False, False]
    assert asked == digests
    assert list(fixed._users) == digests[:1]


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
    assert GROUPS.authorize(user, Attributes(verb, **where)).allowed is allowed


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


class Recorder:
    """Allows reads by those who say please; remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def trusts(self, user):
        return "system:masters" in user.groups

    def authorize(self, user, attributes):
        self.asked.append((user.name, attributes))
        return Decision(
            attributes.verb in ("get", "list", "watch"), "say please" if attributes.verb == "create" else ""
        )

    def rules(self, user, namespace):
        return {"resourceRules": [], "nonResourceRules": [], "incomplete": namespace == "secret"}


async def test_everything_asks_the_authorizer_that_the_server_was_given():
    authorizer = Recorder()
    async with served(authorizer=authorizer) as api:
        cluster = api.api.cluster("robot", user=KNOWN)
        path = "/api/v1/namespaces/default/pods/p/status"
        answer = await api.ask("PATCH", path, {}, token=OTHER, type="application/merge-patch+json")
        assert answer.status == 403
        with pytest.raises(Forbidden, match='User "ann" cannot patch resource "pods/status"'):
            await cluster.patch(PODS, "p", {}, namespace="default", subresource="status")
        asked = Attributes("patch", "", "v1", "pods", "status", "default", "p")
        assert authorizer.asked == [("other", asked), ("ann", asked)]

        assert (await cluster.list(DEPLOYMENTS)).items == []
        assert authorizer.asked[-1] == ("ann", Attributes("list", "apps", "v1", "deployments"))
        with pytest.raises(Forbidden, match=r'in the namespace "default": say please$'):
            await cluster.create(PODS, {}, namespace="default")

        review = {"spec": {"user": "eve", "resourceAttributes": {"verb": "create", "resource": "pods", "name": "p"}}}
        answer = await api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        assert answer["status"] == {"allowed": False, "reason": "say please"}
        assert authorizer.asked[-1] == ("eve", Attributes("create", resource="pods", name="p"))
        rules = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
        assert (await api.post(rules, {"spec": {"namespace": "secret"}}))["status"]["incomplete"]
        assert (await api.ask("GET", "/metrics", token=OTHER)).status == 200
        assert authorizer.asked[-1] == ("other", Attributes("get", path="/metrics"))


def test_a_user_as_userinfo():
    extra = (("example.com/key", ("a", "b")),)
    ann = User("ann", ("readers",), "u1", extra)
    assert ann.info == {
        "username": "ann",
        "uid": "u1",
        "groups": ["readers"],
        "extra": {"example.com/key": ["a", "b"]},
    }
    assert User("bob").info == {"username": "bob"}
    assert hash(ann) == hash(User("ann", ("readers",), "u1", extra))
