"""Secrets with tokens: filled, kept complete, and gone with their ServiceAccount."""

from base64 import b64decode, b64encode

import pytest_asyncio
from own_cluster import own_cluster

from seamark.access.informers import Informers
from seamark.controllers.identity.token_secrets import ACCOUNT, ACCOUNT_UID, TYPE, TokenSecrets
from seamark.kinds.core.review import TokenReviewKind
from seamark.kinds.resource import SECRETS, SERVICE_ACCOUNTS
from seamark.runtime.manager import Manager


@pytest_asyncio.fixture
async def own():
    async with own_cluster() as cluster:
        manager = Manager(Informers(cluster.api.cluster("controllers")), clock=cluster.clock)
        issue = cluster.api.accounts.issue_legacy
        manager.add(TokenSecrets(manager, cluster.api.cluster("tokens-controller"), issue=issue, authority="the CA"))
        async with cluster.managed(manager):
            yield cluster


async def account(own, name="robot", **more):
    return await own.cluster.create(SERVICE_ACCOUNTS, {"metadata": {"name": name}, **more}, namespace="default")


async def secret(own, name="s", of="robot", **more):
    made = {"metadata": {"name": name, "annotations": {ACCOUNT: of, **more.pop("annotations", {})}}, "type": TYPE}
    return await own.cluster.create(SECRETS, {**made, **more}, namespace="default")


async def filled(own, name="s"):
    return await own.until(
        lambda: own.find(SECRETS, name, "default"), lambda found: found and (found.get("data") or {}).get("token")
    )


async def gone(own, name="s"):
    await own.until(lambda: own.find(SECRETS, name, "default"), lambda found: found is None)


async def user_of(own, found):
    review = {"spec": {"token": b64decode(found["data"]["token"]).decode()}}
    return (await own.cluster.create(TokenReviewKind.resource, review))["status"]


async def test_a_secret_is_filled_and_its_token_is_good(own):
    made = await account(own)
    await secret(own)
    found = await filled(own)
    assert found["metadata"]["annotations"] == {ACCOUNT: "robot", ACCOUNT_UID: made["metadata"]["uid"]}
    assert b64decode(found["data"]["ca.crt"]) == b"the CA"
    assert b64decode(found["data"]["namespace"]) == b"default"
    status = await user_of(own, found)
    assert status["user"] == {
        "username": "system:serviceaccount:default:robot",
        "uid": made["metadata"]["uid"],
        "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
    }
    # Nothing is listed in the ServiceAccount.
    assert "secrets" not in await own.find(SERVICE_ACCOUNTS, "robot", "default")


async def test_a_token_that_was_marked_invalid_is_refused_until_the_mark_is_gone(own):
    await account(own)
    await secret(own)
    found = await filled(own)
    assert (await user_of(own, found))["authenticated"]
    mark = "kubernetes.io/legacy-token-invalid-since"
    marked = {"metadata": {"labels": {mark: "2030-01-01"}}}
    await own.cluster.patch(SECRETS, "s", marked, namespace="default")
    assert (await user_of(own, found))["error"] == (
        "[invalid bearer token, the token in secret default/s for service account default/robot has been marked "
        "invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the "
        f"'{mark}' label from the secret to temporarily allow use of this token]"
    )
    await own.cluster.patch(SECRETS, "s", {"metadata": {"labels": {mark: None}}}, namespace="default")
    assert (await user_of(own, found))["authenticated"]


async def test_what_is_taken_out_comes_back_and_the_old_token_ends(own):
    await account(own)
    await secret(own)
    first = await filled(own)
    # Another token would be the same word for word, because it names the same things, but for its signature.
    emptied = {**first, "data": {}}
    await own.cluster.update(SECRETS, emptied, namespace="default")
    second = await filled(own)
    assert second["data"].keys() == first["data"].keys()
    assert (await user_of(own, second))["authenticated"]
    assert (await user_of(own, first))["error"] == "[invalid bearer token, token does not match server's copy]"


async def test_a_wrong_certificate_is_put_right(own):
    await account(own)
    await secret(own)
    found = await filled(own)
    wrong = {**found, "data": {**found["data"], "ca.crt": b64encode(b"x").decode()}}
    await own.cluster.update(SECRETS, wrong, namespace="default")
    await own.until(
        lambda: own.find(SECRETS, "s", "default"), lambda now: b64decode(now["data"]["ca.crt"]) == b"the CA"
    )


async def test_a_secret_without_its_account_is_deleted(own):
    await secret(own, of="none")
    await gone(own)
    made = await account(own)
    await secret(own, annotations={ACCOUNT_UID: "another"})
    await gone(own)
    await secret(own, annotations={ACCOUNT_UID: made["metadata"]["uid"]})
    assert await filled(own)


async def test_a_secret_goes_with_its_account(own):
    await account(own)
    await secret(own)
    found = await filled(own)
    await own.cluster.delete(SERVICE_ACCOUNTS, "robot", namespace="default")
    await gone(own)
    assert "authenticated" not in await user_of(own, found)


async def test_a_deleted_secret_is_taken_off_its_accounts_list(own):
    await account(own, secrets=[{"name": "s"}, {"name": "t"}])
    await secret(own)
    await filled(own)
    await own.cluster.delete(SECRETS, "s", namespace="default")
    await own.until(
        lambda: own.find(SERVICE_ACCOUNTS, "robot", "default"), lambda now: now.get("secrets") == [{"name": "t"}]
    )
    await secret(own, "t")
    await filled(own, "t")
    await own.cluster.delete(SECRETS, "t", namespace="default")
    await own.until(lambda: own.find(SERVICE_ACCOUNTS, "robot", "default"), lambda now: "secrets" not in now)


async def test_other_secrets_are_left_alone(own):
    await own.cluster.create(
        SECRETS, {"metadata": {"name": "o", "annotations": {ACCOUNT: "none"}}}, namespace="default"
    )
    await secret(own, of="none")
    await gone(own)
    assert await own.find(SECRETS, "o", "default")
