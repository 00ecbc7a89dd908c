"""The seam's contract, against the real API server: in process and over HTTPS, a cluster is the same to its caller."""

import asyncio
import contextlib
import random

import msgspec
import pytest

from free_ports import free_port
from seamark import errors
from seamark.access import kubeconfig, remote
from seamark.access.events import EventRecorder, reference
from seamark.access.informer import Informer
from seamark.access.leader import LeaderElection
from seamark.access.remote import RemoteCluster
from seamark.api.authorization import User
from seamark.config import settled
from seamark.daemon import Daemon
from seamark.kinds.resource import CONFIGMAPS, DEPLOYMENTS, EVENTS, LEASES, NAMESPACES, SERVICES, Resource
from turns import until
from virtual_time import HastyClock

ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)


class Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    resource_version: str = ""


class Named(msgspec.Struct, frozen=True, gc=False):
    metadata: Metadata
    data: dict[str, str] = {}


@pytest.fixture
async def daemon(tmp_path):
    config = settled({"data_dir": str(tmp_path), "profile": "plain", "api": {"port": 0}})
    async with Daemon(config, ["controllers"]).running() as daemon:
        yield daemon


@pytest.fixture(params=["in process", "over HTTPS"])
async def cluster(request, daemon):
    if request.param == "in process":
        yield daemon.api.cluster("test")
    else:
        async with RemoteCluster(kubeconfig.load(daemon.kubeconfig_path, environ={})) as cluster:
            yield cluster


@pytest.fixture
async def over_https(daemon):
    async with RemoteCluster(kubeconfig.load(daemon.kubeconfig_path, environ={})) as cluster:
        yield cluster


def config_map(name, labels=None, **data):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels or {}},
        "data": data,
    }


@contextlib.asynccontextmanager
async def following(informer):
    task = asyncio.create_task(informer.run())
    try:
        await informer.synced.wait()
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_life_of_an_object(cluster):
    made = await cluster.create(CONFIGMAPS, config_map("a", x="1"), namespace="default")
    assert (made["kind"], made["apiVersion"], made["data"]) == ("ConfigMap", "v1", {"x": "1"})
    assert await cluster.get(CONFIGMAPS, "a", namespace="default") == made
    typed = await cluster.get(CONFIGMAPS, "a", namespace="default", as_=Named)
    assert (typed.metadata.uid, typed.data) == (made["metadata"]["uid"], {"x": "1"})

    changed = await cluster.update(CONFIGMAPS, {**made, "data": {"x": "2"}}, namespace="default")
    assert changed["data"] == {"x": "2"}
    with pytest.raises(errors.Conflict, match="the object has been modified"):
        await cluster.update(CONFIGMAPS, {**made, "data": {"x": "3"}}, namespace="default")
    with pytest.raises(errors.AlreadyExists):
        await cluster.create(CONFIGMAPS, config_map("a"), namespace="default")

    patched = await cluster.patch(CONFIGMAPS, "a", {"data": {"x": None, "y": "4"}}, namespace="default")
    assert patched["data"] == {"y": "4"}
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"z": "5"}}
    patched = await cluster.patch(
        CONFIGMAPS, "a", applied, namespace="default", type="apply", field_manager="tests", force=True
    )
    assert patched["data"] == {"y": "4", "z": "5"}
    patched = await cluster.patch(
        CONFIGMAPS, "a", [{"op": "remove", "path": "/data/y"}], namespace="default", type="json"
    )
    assert patched["data"] == {"z": "5"}

    with pytest.raises(errors.Conflict):
        await cluster.delete(CONFIGMAPS, "a", namespace="default", uid="another")
    await cluster.delete(CONFIGMAPS, "a", namespace="default", uid=made["metadata"]["uid"])
    with pytest.raises(errors.NotFound, match='configmaps "a" not found'):
        await cluster.get(CONFIGMAPS, "a", namespace="default")


async def test_mistakes_are_explained_alike(cluster):
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{"port": 0}]}}
    with pytest.raises(errors.Invalid) as caught:
        await cluster.create(SERVICES, service, namespace="default")
    assert caught.value.message.startswith('Service "a" is invalid: ')
    assert {cause.field for cause in caught.value.causes} == {"spec.ports[0].port", "spec.ports[0].targetPort"}
    assert caught.value.details == {"name": "a", "kind": "Service"}
    with pytest.raises(errors.BadRequest, match="unable to parse requirement"):
        await cluster.list(CONFIGMAPS, labels="a b")


async def test_an_owner_named_twice_is_kept_once(cluster):
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": "default"}
    owner["uid"] = (await cluster.get(NAMESPACES, "default"))["metadata"]["uid"]
    twice = {"ownerReferences": [owner, owner]}
    made = await cluster.create(CONFIGMAPS, {"metadata": {"name": "a", **twice}}, namespace="default")
    assert made["metadata"]["ownerReferences"] == [owner]
    put = await cluster.update(
        CONFIGMAPS, {"metadata": {"name": "a", **twice}, "data": {"x": "1"}}, namespace="default"
    )
    assert put["metadata"]["ownerReferences"] == [owner]
    patched = await cluster.patch(CONFIGMAPS, "a", {"metadata": twice, "data": {"x": "2"}}, namespace="default")
    assert patched["metadata"]["ownerReferences"] == [owner]


async def test_an_apply_to_an_object_that_is_gone_creates_no_other(cluster):
    meta = {"name": "gone", "uid": "11111111-2222-4333-8444-555555555555"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    with pytest.raises(errors.Conflict, match="uid mismatch: the provided object specified uid 1111") as caught:
        await cluster.patch(CONFIGMAPS, "gone", config, namespace="default", type="apply", field_manager="tests")
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    with pytest.raises(errors.NotFound):
        await cluster.get(CONFIGMAPS, "gone", namespace="default")


@pytest.mark.parametrize(
    ("type", "patch"),
    [
        ("merge", {"metadata": {"name": "b"}}),
        ("strategic", {"metadata": {"name": "b"}}),
        ("json", [{"op": "replace", "path": "/metadata/name", "value": "b"}]),
    ],
)
async def test_a_patch_renames_nothing(cluster, type, patch):
    await cluster.create(CONFIGMAPS, config_map("a"), namespace="default")
    with pytest.raises(errors.BadRequest) as caught:
        await cluster.patch(CONFIGMAPS, "a", patch, namespace="default", type=type)
    assert caught.value.message == "the name of the object (b) does not match the name on the URL (a)"


async def test_rights_are_those_of_the_user(daemon):
    """Nobody but system:masters may do much yet; who may not is told the same over both."""
    user = User("robot", ("system:authenticated",))
    local = daemon.api.cluster("robot", user=user)
    connection = kubeconfig.load(daemon.kubeconfig_path, environ={})
    robot = msgspec.structs.replace(connection, headers=(("Impersonate-User", user.name),))
    refused = []
    async with RemoteCluster(robot) as remote:
        for cluster in (local, remote):
            for call in (
                cluster.get(CONFIGMAPS, "a", namespace="default"),
                cluster.list(NAMESPACES),
                cluster.create(CONFIGMAPS, config_map("b"), namespace="default"),
                cluster.patch(DEPLOYMENTS, "d", {}, namespace="default", subresource="scale"),
                cluster.delete_all(CONFIGMAPS, namespace="default"),
                anext(cluster.watch(CONFIGMAPS, since="1")),
            ):
                with pytest.raises(errors.Forbidden) as caught:
                    await call
                refused.append((caught.value.message, caught.value.details))
            asked = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
            answer = await cluster.create(ACCESS_REVIEWS, asked)
            assert answer["status"] == {"allowed": False}
    assert refused[:6] == refused[6:]
    assert refused[3][0] == (
        'deployments.apps "d" is forbidden: User "robot" cannot patch resource "deployments/scale" in API group "apps" '
        'in the namespace "default"'
    )


async def test_lists(cluster, monkeypatch):
    monkeypatch.setattr(remote, "PAGE", 7)
    for number in range(20):
        labels = {"app": "web" if number % 2 else "db"}
        await cluster.create(CONFIGMAPS, config_map(f"n{number:02}", labels), namespace="default")
    names = [f"n{number:02}" for number in range(20)]
    listing = await cluster.list(CONFIGMAPS, namespace="default", as_=Named)
    assert [item.metadata.name for item in listing.items] == names
    some = await cluster.list(CONFIGMAPS, labels="app=web", fields="metadata.name!=n01")
    assert [item["metadata"]["name"] for item in some.items] == names[3::2]
    assert {(item["kind"], item["apiVersion"]) for item in some.items} == {("ConfigMap", "v1")}
    assert int(listing.version) >= int(listing.items[-1].metadata.resource_version)

    await cluster.delete_all(CONFIGMAPS, namespace="default", labels="app=db")
    left = await cluster.list(CONFIGMAPS, namespace="default", as_=Named)
    assert [item.metadata.name for item in left.items] == names[1::2]


async def test_watches(cluster):
    listing = await cluster.list(CONFIGMAPS, namespace="default")
    first = await cluster.create(CONFIGMAPS, config_map("a", {"app": "web"}), namespace="default")
    await cluster.create(CONFIGMAPS, config_map("b", {"app": "db"}), namespace="default")
    await cluster.patch(CONFIGMAPS, "a", {"metadata": {"labels": {"app": "db"}}}, namespace="default")
    await cluster.patch(CONFIGMAPS, "b", {"metadata": {"labels": {"app": "web"}}}, namespace="default")
    await cluster.delete(CONFIGMAPS, "b", namespace="default")
    seen = []
    stream = cluster.watch(CONFIGMAPS, since=listing.version, namespace="default", labels="app=web", as_=Named)
    async for change in stream:
        if change.type != "BOOKMARK":
            seen.append((change.type, change.object.metadata.name))
        if len(seen) == 4:
            break
    await stream.aclose()
    # One that leaves the selection is gone to those who watch it, one that enters it is new.
    assert seen == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "b"), ("DELETED", "b")]
    resumed = cluster.watch(CONFIGMAPS, since=first["metadata"]["resourceVersion"], namespace="default", as_=Named)
    async for change in resumed:
        if change.type != "BOOKMARK":
            assert (change.type, change.object.metadata.name) == ("ADDED", "b")
            break
    await resumed.aclose()


async def test_versions_that_are_forgotten(cluster):
    with pytest.raises(errors.Expired, match="too old resource version"):
        async for _ in cluster.watch(CONFIGMAPS, since="1"):
            pass


async def test_an_informer_holds_what_the_server_holds(cluster):
    chance = random.Random(3)
    informer = Informer(cluster, CONFIGMAPS, as_=Named, namespace="default")
    by_app = informer.index("app", lambda named: [named.metadata.labels.get("app", "")])
    told = {}

    def tell(key, old, new):
        assert told.get((new or old).metadata.name) == old
        told[(new or old).metadata.name] = new

    informer.on_change(tell)
    async with following(informer):
        for number in range(120):
            name = f"n{chance.randrange(12)}"
            if chance.random() < 0.3:
                with contextlib.suppress(errors.NotFound):
                    await cluster.delete(CONFIGMAPS, name, namespace="default")
                continue
            labels = {"app": chance.choice(["web", "db"])}
            try:
                await cluster.create(CONFIGMAPS, config_map(name, labels, n=str(number)), namespace="default")
            except errors.AlreadyExists:
                patch = {"metadata": {"labels": labels}, "data": {"n": str(number)}}
                await cluster.patch(CONFIGMAPS, name, patch, namespace="default")
        last = await cluster.create(CONFIGMAPS, config_map("last"), namespace="default")
        await until(lambda: informer.last_version == last["metadata"]["resourceVersion"])
        listing = await cluster.list(CONFIGMAPS, namespace="default", as_=Named)
        expected = {item.metadata.name: item for item in listing.items}
        assert {named.metadata.name: named for named in informer.objects()} == expected
        assert {name: named for name, named in told.items() if named is not None} == expected
        assert {named.metadata.name for named in by_app.objects("web")} == {
            name for name, named in expected.items() if named.metadata.labels.get("app") == "web"
        }


async def test_an_informer_outlives_its_server(tmp_path):
    """The server goes away and comes back on the same port, with changes the informer could not see."""
    config = settled({"data_dir": str(tmp_path), "profile": "plain", "api": {"port": free_port()}})
    async with Daemon(config, ["controllers"]).running() as daemon:
        cluster = RemoteCluster(kubeconfig.load(daemon.kubeconfig_path, environ={}))
        await cluster.create(CONFIGMAPS, config_map("stays"), namespace="default")
        await cluster.create(CONFIGMAPS, config_map("goes"), namespace="default")
        informer = Informer(cluster, CONFIGMAPS, as_=Named, namespace="default", clock=HastyClock())
        task = asyncio.create_task(informer.run())
        await informer.synced.wait()
    await until(lambda: informer.lag > 0)
    assert not informer.connected
    assert sorted(informer.keys()) == ["default/goes", "default/stays"]
    async with Daemon(config, ["controllers"]).running() as daemon:
        await daemon.api.cluster("test").delete(CONFIGMAPS, "goes", namespace="default")
        await until(lambda: informer.connected and informer.keys() == ["default/stays"])
        assert informer.lag == 0
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await cluster.close()


async def test_a_wrong_token_is_told_so(daemon):
    config = kubeconfig.read(daemon.kubeconfig_path, required=True)
    for user in config.users.values():
        user.token = "wrong"
    connection = kubeconfig.connect(config, source="test", environ={})
    async with RemoteCluster(connection) as cluster:
        with pytest.raises(errors.Unauthorized, match=r"does not accept the token .* may have expired"):
            await cluster.list(NAMESPACES)


async def test_leader_election(cluster):
    elections = [LeaderElection(cluster, namespace="default", name="work", identity=name) for name in "ab"]
    leading = asyncio.Event()

    async def work():
        leading.set()
        await asyncio.Event().wait()

    first = asyncio.create_task(elections[0].run(work))
    await leading.wait()
    second = asyncio.create_task(elections[1].run(work))
    await until(lambda: elections[1].leader == "a")
    lease = await cluster.get(LEASES, "work", namespace="default")
    assert lease["spec"]["holderIdentity"] == "a"
    for task in (first, second):
        task.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    lease = await cluster.get(LEASES, "work", namespace="default")
    assert lease["spec"]["holderIdentity"] == ""


async def test_events(cluster):
    made = await cluster.create(CONFIGMAPS, config_map("a"), namespace="default")
    recorder = EventRecorder(cluster, component="tests")
    for _ in range(3):
        recorder.record(reference(made), "Warning", reason="Odd", message="this is odd")
    await recorder.written()
    events = await cluster.list(EVENTS, namespace="default", fields="involvedObject.name=a,reason=Odd")
    assert [(event["count"], event["message"], event["type"]) for event in events.items] == [
        (3, "this is odd", "Warning")
    ]
    assert events.items[0]["involvedObject"]["uid"] == made["metadata"]["uid"]
