"""Every namespace has its ServiceAccount and the CA's certificate, for as long as it is to stay."""

import asyncio

from seamark.controllers.housekeeping.namespace_contents import (
    DEFAULT_ACCOUNT,
    DESCRIPTION,
    Held,
    right,
    root_certificate,
)
from seamark.kinds.resource import CONFIGMAPS, NAMESPACES, SERVICE_ACCOUNTS
from seamark.rules.objects.metadata import Metadata

NAME = "kube-root-ca.crt"


def held(data, *, described=True, binary=None):
    annotations = {DESCRIPTION: "anything"} if described else {}
    return Held(Metadata(NAME, annotations=annotations), data, binary or {})


def test_what_is_right():
    given = root_certificate("pem")
    assert right(held({"ca.crt": "pem"}), given)
    assert not right(held({"ca.crt": "old"}), given)
    assert not right(held({"ca.crt": "pem", "more": "x"}), given)
    assert not right(held({"ca.crt": "pem"}, binary={"x": "AA=="}), given)
    assert not right(held({"ca.crt": "pem"}, described=False), given)
    assert right(Held(Metadata("default")), DEFAULT_ACCOUNT)


async def test_namespaces_have_them_from_the_beginning_and_get_them_when_they_are_made(own):
    async with own.controlled():
        await own.cluster.create(NAMESPACES, {"metadata": {"name": "new"}})
        for namespace in ("default", "kube-system", "new"):
            await own.until(lambda ns=namespace: own.find(SERVICE_ACCOUNTS, "default", ns))
            found = await own.until(lambda ns=namespace: own.find(CONFIGMAPS, NAME, ns))
            assert found["data"] == {"ca.crt": "the CA"}
            assert "verify the kube-apiserver" in found["metadata"]["annotations"][DESCRIPTION]


async def test_what_is_deleted_comes_back(own):
    async with own.controlled():
        for resource, name in ((SERVICE_ACCOUNTS, "default"), (CONFIGMAPS, NAME)):
            first = await own.until(lambda r=resource, n=name: own.find(r, n, "default"))
            await own.cluster.delete(resource, name, namespace="default")
            uid = first["metadata"]["uid"]
            await own.until(
                lambda r=resource, n=name: own.find(r, n, "default"),
                lambda found, before=uid: found is not None and found["metadata"]["uid"] != before,
            )


async def test_an_edited_certificate_is_put_right_and_the_rest_of_it_stays(own):
    async with own.controlled():
        found = await own.until(lambda: own.find(CONFIGMAPS, NAME, "default"))
        edit = {"metadata": {"labels": {"mine": "yes"}, "annotations": None}, "data": {"ca.crt": "bad", "more": "x"}}
        await own.cluster.patch(CONFIGMAPS, NAME, {**edit, "binaryData": {"b": "AA=="}}, namespace="default")
        mended = await own.until(
            lambda: own.find(CONFIGMAPS, NAME, "default"), lambda found: found["data"] == {"ca.crt": "the CA"}
        )
        assert mended["metadata"]["uid"] == found["metadata"]["uid"]
        assert mended["metadata"]["labels"] == {"mine": "yes"}
        assert mended["metadata"]["annotations"] == found["metadata"]["annotations"]
        assert "binaryData" not in mended


async def test_other_config_maps_and_accounts_are_left_alone(own):
    async with own.controlled():
        await own.cluster.create(CONFIGMAPS, {"metadata": {"name": "mine"}, "data": {"a": "b"}}, namespace="default")
        await own.cluster.create(SERVICE_ACCOUNTS, {"metadata": {"name": "mine"}}, namespace="default")
        await own.cluster.delete(SERVICE_ACCOUNTS, "mine", namespace="default")
        await own.quiet()
        assert (await own.find(CONFIGMAPS, "mine", "default"))["data"] == {"a": "b"}
        assert await own.find(SERVICE_ACCOUNTS, "mine", "default") is None


async def test_a_namespace_on_its_way_out_gets_nothing_and_goes(own):
    async with own.controlled(ending=True):
        await own.cluster.create(NAMESPACES, {"metadata": {"name": "old"}})
        await own.until(lambda: own.find(SERVICE_ACCOUNTS, "default", "old"))
        held_up = {"metadata": {"name": "held", "finalizers": ["example.com/wait"]}}
        await own.cluster.create(CONFIGMAPS, held_up, namespace="old")
        await own.cluster.delete(NAMESPACES, "old")
        await own.until(lambda: own.find(SERVICE_ACCOUNTS, "default", "old"), lambda found: found is None)
        await own.until(lambda: own.find(CONFIGMAPS, NAME, "old"), lambda found: found is None)
        await own.quiet()
        assert await own.find(SERVICE_ACCOUNTS, "default", "old") is None
        await own.cluster.patch(CONFIGMAPS, "held", {"metadata": {"finalizers": None}}, namespace="old")
        await own.until(lambda: own.find(NAMESPACES, "old"), lambda found: found is None)


async def test_a_second_life_writes_nothing(own):
    async with own.controlled():
        await own.until(lambda: own.find(CONFIGMAPS, NAME, "kube-node-lease"))
        await own.quiet()
    revision = own.api.cache.revision
    async with own.controlled():
        await own.quiet()
    assert own.api.cache.revision == revision


async def test_without_a_ca_there_is_no_certificate_to_give(own):
    async with own.controlled(authority=""):
        await own.until(lambda: own.find(SERVICE_ACCOUNTS, "default", "default"))
        await asyncio.sleep(0)
        await own.quiet()
        assert await own.find(CONFIGMAPS, NAME, "default") is None


async def test_it_can_be_left_to_others(own):
    async with own.controlled(namespace_contents=False):
        await own.quiet()
        assert await own.find(SERVICE_ACCOUNTS, "default", "default") is None
