"""Tokens of ServiceAccounts: which are believed, for how long, and what a forger may try."""

from __future__ import annotations

import base64
import hmac
import json
import uuid
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from served import ADMIN, OTHER, Served, served

from seamark.api.identity.keys import KeyFileError, KeyRing, new_key, public_pem
from seamark.api.settings import TokenSettings
from virtual_time import VirtualClock

AUTHN = "/apis/authentication.k8s.io/v1"
ISSUER = "https://kubernetes.default.svc.cluster.local"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PODS = "/api/v1/namespaces/default/pods"
CREDENTIAL = "authentication.kubernetes.io/credential-id"


async def robot(api: Served, **more: Any) -> Any:
    return await api.post(ACCOUNTS, {"metadata": {"name": "robot"}, **more})


async def token_for(api: Served, **spec: Any) -> str:
    answered = await api.post(f"{ACCOUNTS}/robot/token", {"spec": spec})
    return str(answered["status"]["token"])


async def status_of(api: Served, token: str, **spec: Any) -> Any:
    return (await api.post(f"{AUTHN}/tokenreviews", {"spec": {"token": token, **spec}}))["status"]


async def whoami(api: Served, token: str) -> int:
    return (await api.ask("POST", f"{AUTHN}/selfsubjectreviews", {}, token=token)).status


def pod(name: str, account: str = "robot") -> Any:
    return {
        "metadata": {"name": name},
        "spec": {"serviceAccountName": account, "containers": [{"name": "c", "image": "i"}], "nodeName": "node-a"},
    }


def parts(token: str) -> tuple[Any, Any]:
    head, claims, _ = token.split(".")
    return tuple(json.loads(base64.urlsafe_b64decode(part + "==")) for part in (head, claims))  # type: ignore[return-value]


async def test_a_token_names_its_account(api):
    account = await robot(api)
    token = await token_for(api)
    head, claims = parts(token)
    assert sorted(head) == ["alg", "kid"]
    assert claims["sub"] == "system:serviceaccount:default:robot"
    assert claims["aud"] == [ISSUER]
    assert claims["exp"] - claims["iat"] == 3600
    assert claims["kubernetes.io"] == {
        "namespace": "default",
        "serviceaccount": {"name": "robot", "uid": account["metadata"]["uid"]},
    }
    found = await api.post(f"{AUTHN}/selfsubjectreviews", {}, token=token)
    assert found["status"]["userInfo"] == {
        "username": "system:serviceaccount:default:robot",
        "uid": account["metadata"]["uid"],
        "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
        "extra": {CREDENTIAL: [f"JTI={claims['jti']}"]},
    }


async def test_a_bound_token_ends_with_its_object(api):
    await robot(api)
    await api.post("/api/v1/nodes", {"metadata": {"name": "node-a"}})
    await api.post(PODS, pod("p"))
    await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
    for kind, name, path in (
        ("Pod", "p", f"{PODS}/p?gracePeriodSeconds=0"),
        ("Secret", "s", "/api/v1/namespaces/default/secrets/s"),
        ("Node", "node-a", "/api/v1/nodes/node-a"),
    ):
        token = await token_for(api, boundObjectRef={"apiVersion": "v1", "kind": kind, "name": name})
        assert parts(token)[1]["kubernetes.io"][kind.lower()]["name"] == name
        assert await whoami(api, token) == 201
        await api.delete(path)
        assert await whoami(api, token) == 401
        sentence = "[invalid bearer token, service account token has been invalidated]"
        assert await status_of(api, token) == {"user": {}, "error": sentence}


async def test_an_object_of_the_same_name_is_another_one(api):
    await robot(api)
    await api.post(PODS, pod("p"))
    ref = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    token = await token_for(api, boundObjectRef=ref)
    old = (await api.get(f"{PODS}/p"))["metadata"]["uid"]
    await api.delete(f"{PODS}/p?gracePeriodSeconds=0")
    new = (await api.post(PODS, pod("p")))["metadata"]["uid"]
    assert (await status_of(api, token))["error"] == (
        f"[invalid bearer token, pod UID ({new}) does not match service account pod ref claim ({old})]"
    )


async def test_a_changed_pod_keeps_its_token(api):
    await robot(api)
    await api.post(PODS, pod("p"))
    token = await token_for(api, boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "p"})
    assert await whoami(api, token) == 201
    await api.merge(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}})
    assert await whoami(api, token) == 201


async def test_an_account_made_again_is_another_one(api):
    await robot(api)
    token = await token_for(api)
    assert await whoami(api, token) == 201
    await api.delete(f"{ACCOUNTS}/robot")
    sentence = '[invalid bearer token, serviceaccounts "robot" not found]'
    assert await status_of(api, token) == {"user": {}, "error": sentence}
    await robot(api)
    assert "does not match claim" in (await status_of(api, token))["error"]
    assert await whoami(api, token) == 401


async def test_an_object_that_is_going_keeps_its_token_for_a_minute():
    clock = VirtualClock()
    async with served(clock=clock) as api:
        await robot(api, metadata={"name": "robot", "finalizers": ["example.com/keep"]})
        token = await token_for(api)
        await api.delete(f"{ACCOUNTS}/robot")
        assert await whoami(api, token) == 201
        clock.now += 61
        assert await status_of(api, token) == {
            "user": {},
            "error": "[invalid bearer token, service account has been deleted]",
        }


async def test_times():
    clock = VirtualClock()
    async with served(clock=clock) as api:
        await robot(api)
        token = await token_for(api, expirationSeconds=600)
        assert await whoami(api, token) == 201
        clock.now -= 61
        assert await whoami(api, token) == 401, "a token that was good before it begins"
        clock.now += 61
        assert await whoami(api, token) == 201
        clock.now += 600 + 60
        assert await whoami(api, token) == 201
        clock.now += 1
        assert await whoami(api, token) == 401
        assert (await status_of(api, token))["error"] == "[invalid bearer token, service account token has expired]"
        clock.now -= 800
        assert (await status_of(api, token))[
            "error"
        ] == "[invalid bearer token, service account token is not valid yet]"


async def test_audiences(api):
    await robot(api)
    vault = await token_for(api, audiences=["vault", "db"])
    assert await whoami(api, vault) == 401
    assert (await status_of(api, vault, audiences=["db", "x"]))["audiences"] == ["db"]
    assert (await status_of(api, vault))["error"] == (
        f'[invalid bearer token, token audiences ["vault" "db"] is invalid for the target audiences ["{ISSUER}"]]'
    )


async def test_reviews_of_fixed_tokens(api):
    good = {"authenticated": True, "user": {"username": "other", "groups": ["system:authenticated"]}}
    assert await status_of(api, OTHER) == {**good, "audiences": [ISSUER]}
    assert await status_of(api, OTHER, audiences=["vault"]) == {"user": {}, "error": "invalid bearer token"}


# --- forgeries ---------------------------------------------------------------------------------------------


DEEP = b"[" * 5000 + b"]" * 5000


def encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def forgeries(ring: KeyRing, good: str) -> dict[str, str]:
    """Tokens that someone without our key may make from a good one."""
    key = ring.signing
    head, claims = parts(good)
    other = KeyRing().signing
    pem = key.public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    strong = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    _, payload, signature = good.split(".")
    master = {**claims, "sub": "system:serviceaccount:kube-system:admin"}
    deep, nested = (
        base64.urlsafe_b64encode(json.dumps({**each, "x": 0}).encode().replace(b'"x": 0', b'"x":' + DEEP)).decode()
        for each in (claims, head)
    )

    def made(header: Any, signed: bytes = b"") -> str:
        return f"{encoded(header)}.{payload}.{base64.urlsafe_b64encode(signed).rstrip(b'=').decode()}"

    def hmac_signed(secret: bytes) -> str:
        head = {"alg": "HS256", "kid": key.id}
        return made(head, hmac.digest(secret, f"{encoded(head)}.{payload}".encode(), "sha256"))

    def signed(by: Any, algorithm: str = "ES256", **header: Any) -> str:
        return jwt.PyJWS().encode(json.dumps(claims).encode(), by, algorithm, header)

    return {
        "no signature": f"{encoded(head)}.{payload}.",
        "alg none": made({"alg": "none", "kid": key.id}),
        "alg None": made({"alg": "None", "kid": key.id}),
        "alg nOnE, signed": made({"alg": "nOnE"}, b"x" * 64),
        "the public key as a secret": hmac_signed(pem),
        "the public key as a secret, DER": hmac_signed(
            key.public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        ),
        "an empty secret": hmac_signed(b""),
        "another key, our name": signed(other.private, kid=key.id),
        "another key, its name": signed(other.private, kid=other.id),
        "another key, no name": signed(other.private),
        "another algorithm": signed(strong, "RS256", kid=key.id),
        "its key in the header": signed(other.private, kid=key.id, jwk=other.published),
        "a path as key name": made({"alg": "ES256", "kid": "../../../dev/null"}, b"x" * 64),
        "a number as key name": made({"alg": "ES256", "kid": 7}, b"x" * 64),
        "other claims": f"{encoded(head)}.{encoded(master)}.{signature}",
        "a longer life": f"{encoded(head)}.{encoded({**claims, 'exp': 1 << 40})}.{signature}",
        "zero signature": made(head, b"\0" * 64),
        "a shorter signature": good[:-8],
        "one more letter": f"{good}x",
        "critical header": made({**head, "crit": ["b64"], "b64": False}, b"x" * 64),
        "spaces": f" {good}",
        "two tokens": f"{good}.{good}",
        "claims that are no object": f"{encoded(head)}.{encoded([1])}.{signature}",
        "claims that are nested deep": f"{encoded(head)}.{deep}.{signature}",
        "a header that is nested deep": f"{nested}.{payload}.{signature}",
        "an algorithm that is a list": made({"alg": [], "kid": key.id}),
        "an algorithm that is an object": made({"alg": {}}),
        "not UTF-8": f"{encoded(head)}.{base64.urlsafe_b64encode(bytes([0xFF, 0xFE])).decode()}.{signature}",
    }


NAMES = sorted(forgeries(ring := KeyRing(), f"{encoded({'alg': 'ES256', 'kid': ring.signing.id})}.{encoded({})}.x"))


@pytest.mark.parametrize("name", NAMES)
async def test_forgeries_are_refused(name):
    ring = KeyRing()
    async with served(keys=ring) as api:
        await robot(api)
        good = await token_for(api)
        assert await whoami(api, good) == 201
        forged = forgeries(ring, good)[name]
        # Spaces around a token do not belong to it, so this one is only refused where it is taken literally.
        assert await whoami(api, forged) == (201 if name == "spaces" else 401)
        assert (await status_of(api, forged))["user"] == {}


@pytest.mark.parametrize(
    "change",
    [
        {"iss": "https://elsewhere.example"},
        {"aud": ["elsewhere"]},
        {"aud": "elsewhere"},
        {"exp": 1},
        {"nbf": 1 << 40},
        {"iat": 1 << 40},
        {"kubernetes.io": {}},
        {"kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "robot", "uid": "1"}}},
        {"kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "none", "uid": "1"}}},
        {"kubernetes.io": 7},
        {"exp": "soon"},
        {"iss": "kubernetes/serviceaccount"},
    ],
)
async def test_signed_but_not_good(change):
    """Our key signed it, yet what it claims does not hold."""
    ring = KeyRing()
    async with served(keys=ring) as api:
        await robot(api)
        claims = {**parts(await token_for(api))[1], **change}
        key = ring.signing
        token = jwt.PyJWS().encode(json.dumps(claims).encode(), key.private, key.algorithm, {"kid": key.id})
        assert await whoami(api, token) == 401


async def test_a_token_of_another_server_is_refused(api):
    await robot(api)
    async with served() as other:
        await robot(other)
        token = await token_for(other)
    assert await whoami(api, token) == 401


async def test_an_older_issuer_is_believed(tmp_path: Path):
    ring, url = KeyRing(), f"sqlite://{tmp_path}/store.db"
    older = TokenSettings(issuers=("https://old",), audiences=("https://old",))
    async with served(url=url, keys=ring, token_settings=older) as api:
        account = await robot(api)
        token = await token_for(api)
        assert parts(token)[1]["iss"] == "https://old"
    both = ("https://new", "https://old")
    async with served(url=url, keys=ring, token_settings=TokenSettings(issuers=both, audiences=both)) as api:
        assert (await status_of(api, token))["user"]["uid"] == account["metadata"]["uid"]
        assert parts(await token_for(api))[1]["iss"] == "https://new"


# --- keys --------------------------------------------------------------------------------------------------


async def test_keys_are_replaced_while_the_server_runs(tmp_path: Path):
    clock = VirtualClock()
    signing, verifying = tmp_path / "sa.key", tmp_path / "sa.pub"
    first, second = new_key(), new_key()
    signing.write_bytes(first)
    verifying.write_bytes(public_pem(first))
    async with served(keys=KeyRing([signing, verifying], clock), clock=clock) as api:
        await robot(api)
        old = await token_for(api)
        verifying.write_bytes(public_pem(second) + public_pem(first))
        signing.write_bytes(second)
        new = await token_for(api)
        assert parts(old)[0]["kid"] != parts(new)[0]["kid"]
        assert (await whoami(api, old), await whoami(api, new)) == (201, 201)
        published = (await api.get("/openid/v1/jwks", headers={"accept": "*/*"}))["keys"]
        assert {key["kid"] for key in published} == {parts(old)[0]["kid"], parts(new)[0]["kid"]}
        # Taking the old key away ends its tokens, known ones too, after a few seconds.
        verifying.write_bytes(public_pem(second))
        clock.now += 11
        assert (await whoami(api, old), await whoami(api, new)) == (401, 201)
        # A file that is half written leaves the keys as they were.
        signing.write_bytes(b"-----BEGIN")
        clock.now += 11
        assert await whoami(api, new) == 201


def test_rsa_keys_and_several_in_one_file(tmp_path: Path):
    strong = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    path = tmp_path / "key.pem"
    own = strong.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    path.write_bytes(own + public_pem(new_key()))
    ring = KeyRing([path])
    assert [(key.algorithm, key.private is not None) for key in ring.all] == [("RS256", True), ("ES256", False)]
    assert {key.published["kty"] for key in ring.all} == {"RSA", "EC"}
    assert not {"d", "p", "q"} & set(ring.signing.published)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "there is no RSA or ECDSA key in it"),
        (public_pem(new_key()), "a private key is needed to sign tokens"),
        (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "key.pem: "),
    ],
)
def test_files_without_a_usable_key(tmp_path: Path, text: bytes, sentence: str):
    path = tmp_path / "key.pem"
    path.write_bytes(text)
    with pytest.raises(KeyFileError, match=sentence):
        KeyRing([path]).look()


# --- what others need to verify our tokens -----------------------------------------------------------------


async def test_anyone_can_verify_a_token_by_the_published_keys(api):
    await robot(api)
    token = await token_for(api, audiences=["vault"])
    document = await api.get("/.well-known/openid-configuration")
    assert document["issuer"] == ISSUER
    keys = jwt.PyJWKSet.from_dict(await api.get("/openid/v1/jwks", headers={"accept": "application/jwk-set+json"}))
    key = keys[parts(token)[0]["kid"]]
    claims = jwt.decode(
        token,
        key,
        algorithms=document["id_token_signing_alg_values_supported"],
        audience="vault",
        issuer=document["issuer"],
    )
    assert uuid.UUID(claims["jti"]).version == 4


async def test_the_keys_have_a_type_of_their_own(api):
    answer = await api.ask("GET", "/openid/v1/jwks", headers={"accept": "application/json"})
    assert (answer.status, answer.json["reason"]) == (406, "NotAcceptable")
    assert (await api.ask("GET", "/openid/v1/jwks", headers={"accept": "*/*"})).type == "application/jwk-set+json"
    assert (await api.ask("GET", "/openid/v1/jwks", headers={"accept": "*/*"}, token=OTHER)).status == 403


# --- requests ----------------------------------------------------------------------------------------------


async def test_the_longest_time(api):
    async with served(token_settings=TokenSettings(longest_seconds=7200)) as api:
        await robot(api)
        answer = await api.ask("POST", f"{ACCOUNTS}/robot/token", {"spec": {"expirationSeconds": 9000}})
        assert answer.json["spec"]["expirationSeconds"] == 7200
        assert answer.warnings == ['299 - "requested expiration of 9000 seconds shortened to 7200 seconds"']


async def test_kubelets_tokens_are_extended_only_where_kubernetes_does(api):
    await robot(api)
    await api.post(PODS, pod("p"))
    bound = {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}}

    async def life(**spec: Any) -> int:
        claims = parts(await token_for(api, **spec))[1]
        return int(claims["exp"] - claims["iat"])

    assert await life(expirationSeconds=3607, **bound) == 31536000
    assert await life(expirationSeconds=3607) == 3607
    assert await life(expirationSeconds=3600, **bound) == 3600
    assert await life(expirationSeconds=3607, audiences=["vault"], **bound) == 3607


async def test_a_request_for_another_uid(api):
    account = await robot(api)
    uid = account["metadata"]["uid"]
    answer = await api.ask("POST", f"{ACCOUNTS}/robot/token", {"metadata": {"uid": "1"}, "spec": {}})
    assert (answer.status, answer.json["message"]) == (
        409,
        'Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "robot": the UID in the token request (1) '
        f"does not match the UID of the service account ({uid})",
    )
    assert (await api.ask("POST", f"{ACCOUNTS}/robot/token", {"metadata": {"uid": uid}, "spec": {}})).status == 201


async def test_rights_are_needed(api):
    await robot(api)
    answer = await api.ask("POST", f"{ACCOUNTS}/robot/token", {"spec": {}}, token=OTHER)
    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
    assert await whoami(api, ADMIN) == 201


async def test_the_kept_tokens_are_bounded(api, monkeypatch):
    monkeypatch.setattr("seamark.api.identity.tokens.KEPT", 3)
    await robot(api)
    tokens = [await token_for(api) for _ in range(5)]
    for token in tokens * 2:
        assert await whoami(api, token) == 201


async def test_tokens_are_not_logged(api, caplog):
    caplog.set_level("DEBUG")
    await robot(api)
    token = await token_for(api)
    assert await whoami(api, token) == 201
    assert await whoami(api, f"{token}x") == 401
    assert token[:40] not in caplog.text


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"issuers": ()}, "issuers: one is needed"),
        ({"issuers": ("no url: at all",)}, "not a URL"),
        ({"keys": ("a.pem",)}, "name the signing_key too"),
        ({"longest_seconds": 60}, "at least an hour"),
    ],
)
def test_settings_that_make_no_sense(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        TokenSettings(**settings)
