"""CertificateSigningRequests: approved, signed and deleted by the controllers."""

from base64 import b64decode
from datetime import timedelta

import pytest
import pytest_asyncio
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from own_cluster import own_cluster
from signing import pem, signing_request

from seamark.access.informers import Informers
from seamark.api.authorization import Attributes, Decision, GroupAuthorizer, User
from seamark.api.certificates import BACKDATED_IF_ASKED_FOR, Authority
from seamark.controllers.identity.controllers import add_identity
from seamark.controllers.identity.signing_requests import HOUR
from seamark.errors import Forbidden, Invalid
from seamark.kinds.certificates import signers
from seamark.kinds.resource import SIGNING_REQUESTS
from seamark.kinds.values import times
from seamark.runtime.manager import Manager

CLIENT = ("digital signature", "client auth")
SERVER = ("digital signature", "server auth")


@pytest.fixture
def authority(tmp_path):
    authority = Authority(tmp_path)
    authority.prepare(["x"])
    return authority


@pytest_asyncio.fixture
async def own(authority):
    async with own_cluster() as cluster:
        manager = Manager(Informers(cluster.api.cluster("controllers")), clock=cluster.clock)
        add_identity(
            manager, cluster.api.cluster, issue=cluster.api.accounts.issue_legacy, sign=authority.sign, authority="CA"
        )
        async with cluster.managed(manager):
            yield cluster


async def ask(own, request, signer=signers.CLIENT, usages=CLIENT, cluster=None, **more):
    asked = signing_request(request, signer, usages, **more)
    return await (cluster or own.cluster).create(SIGNING_REQUESTS, asked)


async def decide(own, word, name="r"):
    found = await own.cluster.get(SIGNING_REQUESTS, name)
    found["status"]["conditions"] = [{"type": word, "status": "True", "reason": "Test"}]
    return await own.cluster.update(SIGNING_REQUESTS, found, subresource="approval")


async def certificate(own, name="r"):
    found = await own.until(
        lambda: own.find(SIGNING_REQUESTS, name), lambda found: found and found["status"].get("certificate")
    )
    return x509.load_pem_x509_certificate(b64decode(found["status"]["certificate"]))


async def failure(own, name="r"):
    found = await own.until(
        lambda: own.find(SIGNING_REQUESTS, name),
        lambda found: any(each["type"] == "Failed" for each in found["status"].get("conditions") or ()),
    )
    return next(each for each in found["status"]["conditions"] if each["type"] == "Failed")


async def test_an_approved_request_is_signed(own, authority):
    await ask(own, pem("ann", ["readers", "writers"]), expirationSeconds=3600)
    await own.quiet()
    assert not (await own.find(SIGNING_REQUESTS, "r"))["status"]
    await decide(own, "Approved")
    made = await certificate(own)
    subject = made.subject
    assert [each.value for each in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == ["readers", "writers"]
    assert list(made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [
        ExtendedKeyUsageOID.CLIENT_AUTH
    ]
    usage = made.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.digital_signature, usage.key_cert_sign) == (True, False)
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    made.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.ca_pem))
    assert made.not_valid_after_utc - made.not_valid_before_utc == timedelta(hours=1) + BACKDATED_IF_ASKED_FOR


async def test_a_denied_request_and_others_signers_are_left_alone(own):
    await ask(own, pem())
    await decide(own, "Denied")
    await ask(own, pem(), "example.com/signer", name="other")
    await decide(own, "Approved", "other")
    await own.quiet()
    for name in ("r", "other"):
        assert "certificate" not in (await own.find(SIGNING_REQUESTS, name))["status"]


async def test_an_approved_request_that_cannot_be_signed_fails(own):
    await ask(own, pem(), usages=SERVER)
    await decide(own, "Approved")
    found = await failure(own)
    assert (found["reason"], found["message"]) == (
        "SignerValidationFailure",
        "invalid usage for client certificate: server auth",
    )


async def test_serving_certificates_keep_their_names(own):
    await ask(own, pem("system:node:a", ["system:nodes"], dns=["a"], ip=["10.0.0.1"]), signers.KUBELET_SERVING, SERVER)
    await own.quiet()
    assert not (await own.find(SIGNING_REQUESTS, "r"))["status"], "serving certificates are approved by people"
    await decide(own, "Approved")
    names = (await certificate(own)).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a"]


class Kubelets(GroupAuthorizer):
    """Nodes may ask for their own certificate, bootstrappers for any node's."""

    def authorize(self, user, attributes: Attributes) -> Decision:
        allowed = {"system:node:a": "selfnodeclient", "bootstrap": "nodeclient"}.get(user.name)
        if attributes.resource == "certificatesigningrequests" and attributes.subresource:
            return Decision(attributes.subresource == allowed)
        return Decision(True)


@pytest.mark.parametrize(
    ("user", "word"),
    [("system:node:a", "self kubelet client"), ("bootstrap", "kubelet client"), ("system:node:b", None)],
)
async def test_kubelets_are_approved_by_their_rights(authority, user, word):
    async with own_cluster(authorizer=Kubelets()) as own:
        manager = Manager(Informers(own.api.cluster("controllers")), clock=own.clock)
        issue = own.api.accounts.issue_legacy
        add_identity(manager, own.api.cluster, issue=issue, sign=authority.sign, authority="CA")
        async with own.managed(manager):
            asking = own.api.cluster("kubelet", user=User(user, ("system:nodes",)))
            request = pem("system:node:a", ["system:nodes"])
            await ask(own, request, signers.KUBELET_CLIENT, CLIENT, cluster=asking)
            if word is None:
                await own.quiet()
                assert not (await own.find(SIGNING_REQUESTS, "r"))["status"]
                return
            assert await certificate(own)
            (condition,) = (await own.find(SIGNING_REQUESTS, "r"))["status"]["conditions"]
            assert condition["reason"] == "AutoApproved"
            assert condition["message"] == f"Auto approving {word} certificate after SubjectAccessReview."


@pytest.mark.parametrize(("word", "hours"), [(None, 24), ("Denied", 1), ("Approved", 1)])
async def test_requests_are_deleted_after_their_time(own, word, hours):
    await ask(own, pem())
    if word:
        await decide(own, word)
    if word == "Approved":
        await certificate(own)
    await own.quiet()
    await own.clock.advance(hours * HOUR - 5, own.quiet)
    assert await own.find(SIGNING_REQUESTS, "r")
    await own.clock.advance(10, own.quiet)
    assert await own.find(SIGNING_REQUESTS, "r") is None


async def test_an_approved_request_waits_for_its_signer(own):
    await ask(own, pem(), "example.com/signer")
    await decide(own, "Approved")
    await own.clock.advance(48 * HOUR, own.quiet)
    assert await own.find(SIGNING_REQUESTS, "r")


async def test_no_certificate_for_all_rights(own):
    with pytest.raises(Forbidden, match="signer with system:masters group is not allowed"):
        await ask(own, pem("ann", ["system:masters"]))


async def test_decisions_stay(own):
    await ask(own, pem())
    await decide(own, "Approved")
    found = await own.until(lambda: own.find(SIGNING_REQUESTS, "r"), lambda found: found["status"].get("certificate"))
    for status, sentence in (
        ({**found["status"], "conditions": []}, 'updates may not remove a condition of type "Approved"'),
        (
            {**found["status"], "conditions": [{**found["status"]["conditions"][0], "message": "x"}]},
            'updates may not modify a condition of type "Approved"',
        ),
        ({**found["status"], "certificate": "eA=="}, "updates may not modify existing certificate content"),
    ):
        with pytest.raises(Invalid, match=sentence):
            await own.cluster.update(SIGNING_REQUESTS, {**found, "status": status}, subresource="status")
    both = [*found["status"]["conditions"], {"type": "Denied", "status": "True"}]
    with pytest.raises(Invalid, match="at most one of"):
        await own.cluster.update(
            SIGNING_REQUESTS, {**found, "status": {**found["status"], "conditions": both}}, subresource="approval"
        )


async def test_times_of_conditions(own):
    await ask(own, pem(), "example.com/signer")
    first = (await decide(own, "Approved"))["status"]["conditions"][0]
    assert first["lastUpdateTime"] == first["lastTransitionTime"] == times.text(own.clock.time())
    await own.clock.advance(60, own.quiet)
    second = (await decide(own, "Approved"))["status"]["conditions"][0]
    assert second["lastTransitionTime"] == first["lastTransitionTime"]
    assert second["lastUpdateTime"] == times.text(own.clock.time())
