"""Who may approve and sign: the rights on a signer, and who a request says it is from."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from served import ADMIN, OTHER, Served, served
from signing import certificate, pem, signing_request

from seamark.api.authorization import Attributes, Decision, GroupAuthorizer, User

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SIGNER = "example.com/signer"
APPROVED = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "x"}]}}


class Signers(GroupAuthorizer):
    """Everyone may do everything but approve and sign; ``other`` has the rights given here."""

    def __init__(self) -> None:
        self.rights: set[tuple[str, str]] = set()

    def trusts(self, user: User) -> bool:
        return False

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        if attributes.resource != "signers" or user.name == "admin":
            return Decision(True)
        assert (attributes.group, attributes.namespace) == ("certificates.k8s.io", "")
        return Decision((attributes.verb, attributes.name) in self.rights)


RIGHTS = Signers()


@pytest_asyncio.fixture
async def signing() -> AsyncIterator[Served]:
    RIGHTS.rights.clear()
    async with served(authorizer=RIGHTS) as server:
        await server.post(PATH, signing_request(pem(), SIGNER, ["client auth"]))
        yield server


async def test_who_asks_is_written_in(signing):
    lies = {"username": "root", "groups": ["system:masters"], "uid": "0", "extra": {"a": ["b"]}}
    made = await signing.post(PATH, signing_request(pem(), SIGNER, ["any"], name="s", **lies), token=OTHER)
    assert made["spec"]["username"] == "other"
    assert made["spec"]["groups"] == ["system:authenticated"]
    assert not {"uid", "extra"} & set(made["spec"])
    # An update cannot change it, nor the status.
    changed = await signing.merge(
        f"{PATH}/s", {"spec": {"username": "root"}, **APPROVED, "metadata": {"labels": {"a": "b"}}}
    )
    assert (changed["spec"], changed["status"]) == (made["spec"], {})
    assert changed["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize(
    "rights", [set(), {("approve", "example.org/*")}, {("sign", SIGNER)}, {("approve", "other.com/x")}]
)
async def test_approval_needs_the_right_to_approve(signing, rights):
    RIGHTS.rights |= rights
    answer = await signing.ask(
        "PATCH", f"{PATH}/r/approval", APPROVED, type="application/merge-patch+json", token=OTHER
    )
    sentence = f'user not permitted to approve requests with signerName "{SIGNER}"'
    assert (answer.status, answer.json["message"]) == (
        403,
        f'certificatesigningrequests.certificates.k8s.io "r" is forbidden: {sentence}',
    )


@pytest.mark.parametrize("name", [SIGNER, "example.com/*"])
async def test_the_right_may_be_for_all_signers_of_a_domain(signing, name):
    RIGHTS.rights.add(("approve", name))
    changed = await signing.merge(f"{PATH}/r/approval", APPROVED, token=OTHER)
    assert changed["status"]["conditions"][0]["type"] == "Approved"


async def test_signing_needs_the_right_to_sign(signing, tmp_path):
    failed = {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}
    answer = await signing.ask("PATCH", f"{PATH}/r/status", failed, type="application/merge-patch+json", token=OTHER)
    assert f'user not permitted to sign requests with signerName "{SIGNER}"' in answer.json["message"]
    # Labels are no signature.
    labels = {"metadata": {"labels": {"a": "b"}}}
    assert (await signing.merge(f"{PATH}/r/status", labels, token=OTHER))["metadata"]["labels"] == {"a": "b"}
    RIGHTS.rights.add(("sign", SIGNER))
    assert (await signing.merge(f"{PATH}/r/status", failed, token=OTHER))["status"]["conditions"]
    assert (await signing.get(f"{PATH}/r", token=ADMIN))["status"]["conditions"]


async def test_what_may_not_be_set_through_the_other_path(signing):
    answer = await signing.ask("PATCH", f"{PATH}/r/status", APPROVED, type="application/merge-patch+json")
    assert 'updates may not add a condition of type "Approved"' in answer.json["message"]
    changed = await signing.merge(f"{PATH}/r/approval", {"status": {"certificate": "eA=="}})
    assert "certificate" not in changed["status"]
    answer = await signing.ask(
        "PATCH", f"{PATH}/r/status", {"status": {"certificate": "eA=="}}, type="application/merge-patch+json"
    )
    assert "must contain at least one CERTIFICATE PEM block" in answer.json["message"]


async def test_a_trust_bundle_of_a_signer_needs_the_right_to_attest(signing):
    bundles = "/apis/certificates.k8s.io/v1/clustertrustbundles"
    spec = {"signerName": SIGNER, "trustBundle": certificate()}
    body = {"metadata": {"name": "example.com:signer:b"}, "spec": spec}
    refused = await signing.ask("POST", bundles, body, token=OTHER)
    assert refused.status == 403
    assert refused.json["message"].endswith(f'user not permitted to attest for signerName "{SIGNER}"')
    RIGHTS.rights.add(("attest", "example.com/*"))
    assert (await signing.ask("POST", bundles, body, token=OTHER)).status == 201
    RIGHTS.rights.clear()
    labels = {"metadata": {"labels": {"a": "b"}}}
    kept = {"type": "application/merge-patch+json", "token": OTHER}
    assert (await signing.ask("PATCH", f"{bundles}/example.com:signer:b", labels, **kept)).status == 200
    own = {"metadata": {"name": "own"}, "spec": {"trustBundle": certificate()}}
    assert (await signing.ask("POST", bundles, own, token=OTHER)).status == 201


async def test_certificates_of_pods_need_the_right_to_sign(signing):
    path = "/apis/certificates.k8s.io/v1/namespaces/default/podcertificaterequests"
    named = {f"{part}{of}": "x" for part in ("pod", "serviceAccount", "node") for of in ("Name", "UID")}
    spec = {"signerName": SIGNER, "maxExpirationSeconds": 3600, **named}
    await signing.post(path, {"metadata": {"name": "r"}, "spec": spec})
    issued = {"status": {"certificateChain": "chain"}}
    merge = "application/merge-patch+json"
    answer = await signing.ask("PATCH", f"{path}/r/status", issued, type=merge, token=OTHER)
    said = f'User "other" is not permitted to "sign" for signer "{SIGNER}"'
    (cause,) = answer.json["details"]["causes"]
    assert (answer.status, cause["field"], cause["message"]) == (422, "spec.signerName", f"Forbidden: {said}")
    RIGHTS.rights.add(("sign", SIGNER))
    changed = await signing.merge(f"{path}/r/status", issued, token=OTHER)
    assert changed["status"] == issued["status"]
