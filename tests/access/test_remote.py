"""The seam over HTTP, against a server that also misbehaves."""

import asyncio
import contextlib
import json
import re

import msgspec
import pytest
from http_server import HttpServer

from seamark import errors
from seamark.access.credentials import Fixed, Identity, bearer
from seamark.access.informer import Informer
from seamark.access.kubeconfig import Connection
from seamark.access.remote import RemoteCluster
from seamark.kinds.resource import ENDPOINT_SLICES, NODES, PODS, SERVICES
from virtual_time import HastyClock


class Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str
    namespace: str = ""
    resource_version: str = ""


class Pod(msgspec.Struct, frozen=True, gc=False):
    metadata: Metadata


class Bare(msgspec.Struct, frozen=True):
    """A projection without a version of its own."""

    status: str = ""


def pod(name, version="1"):
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "default", "resourceVersion": version}}


@contextlib.asynccontextmanager
async def cluster_at(handler, *, credentials=None, **more):
    async with HttpServer(handler) as server:
        connection = Connection(server.url, credentials or Fixed(Identity()))
        async with RemoteCluster(connection, random=lambda: 0.5, **more) as cluster:
            cluster.server = server
            yield cluster


def always(status, body, headers=()):
    async def handler(exchange):
        await exchange.answer(status, body, headers)

    return handler


def in_turn(*steps):
    """A handler that does one thing after another; a step is a coroutine function of the exchange."""
    remaining = list(steps)

    async def handler(exchange):
        await remaining.pop(0)(exchange)

    return handler


async def ok(exchange):
    await exchange.answer(200, pod("a"))


# --- what goes over the wire -----------------------------------------------------------------------------


async def test_get_decodes_into_the_type_asked_for_and_reuses_its_connection():
    async with cluster_at(ok, credentials=Fixed(Identity(bearer("secret")))) as cluster:
        assert await cluster.get(PODS, "a", namespace="default", as_=Pod) == Pod(Metadata("a", "default", "1"))
        assert (await cluster.get(PODS, "a", namespace="default"))["kind"] == "Pod"
        assert cluster.server.connections == 1
        request = cluster.server.requests[0]
        assert request.path == "/api/v1/namespaces/default/pods/a"
        assert request.headers["authorization"] == ["Bearer secret"]
        assert re.fullmatch(r"seamark/\S+ \(\w+/\w+\)", request.headers["user-agent"][0])


async def test_writes():
    async with cluster_at(ok, agent="endpoints") as cluster:
        await cluster.create(PODS, pod("a"), namespace="default")
        await cluster.create(PODS, {"target": 1}, namespace="default", name="a", subresource="binding")
        await cluster.update(PODS, Pod(Metadata("a", "default")), subresource="status")
        await cluster.patch(PODS, "a", {"x": None}, namespace="default")
        await cluster.patch(
            PODS, "a", {"x": 1}, namespace="default", type="apply", field_manager="me", force=True, subresource="status"
        )
        await cluster.delete(PODS, "a", namespace="default")
        await cluster.delete(
            NODES, "n", uid="u", version="7", grace_seconds=0, propagation="Foreground", namespace="ignored"
        )
        await cluster.delete_all(ENDPOINT_SLICES, namespace="default", labels="app=web,x in (y)")
        seen = [(r.method, r.path, r.query, r.headers["content-type"][0], r.json) for r in cluster.server.requests]
    options = {"kind": "DeleteOptions", "apiVersion": "v1"}
    root = "/api/v1/namespaces/default/pods"
    assert seen == [
        ("POST", root, {}, "application/json", pod("a")),
        ("POST", f"{root}/a/binding", {}, "application/json", {"target": 1}),
        (
            "PUT",
            f"{root}/a/status",
            {},
            "application/json",
            {"metadata": {"name": "a", "namespace": "default", "resourceVersion": ""}},
        ),
        ("PATCH", f"{root}/a", {}, "application/merge-patch+json", {"x": None}),
        (
            "PATCH",
            f"{root}/a/status",
            {"fieldManager": "me", "force": "true"},
            "application/apply-patch+yaml",
            {"x": 1},
        ),
        ("DELETE", f"{root}/a", {}, "application/json", options),
        (
            "DELETE",
            "/api/v1/nodes/n",
            {},
            "application/json",
            {
                **options,
                "preconditions": {"uid": "u", "resourceVersion": "7"},
                "gracePeriodSeconds": 0,
                "propagationPolicy": "Foreground",
            },
        ),
        (
            "DELETE",
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            {"labelSelector": "app=web,x in (y)"},
            "application/json",
            options,
        ),
    ]
    assert cluster.server.requests[0].headers["user-agent"][0].startswith("endpoints/")


async def test_an_update_needs_a_name():
    async with cluster_at(ok) as cluster:
        with pytest.raises(errors.BadRequest, match=r"an update of services needs metadata\.name"):
            await cluster.update(SERVICES, {"metadata": {}}, namespace="default")


# --- lists -----------------------------------------------------------------------------------------------


def pages(*names_of_pages, broken_at=None):
    async def handler(exchange):
        query = exchange.request.query
        at = int(query.get("continue", "0"))
        if at == broken_at:
            await exchange.fail(410, "Expired", "The provided continue parameter is too old")
            return
        if "limit" not in query:
            names = [name for page in names_of_pages for name in page]
            await exchange.answer(200, {"metadata": {"resourceVersion": "20"}, "items": [pod(n) for n in names]})
            return
        metadata = {"resourceVersion": "10"}
        if at + 1 < len(names_of_pages):
            metadata["continue"] = str(at + 1)
        await exchange.answer(200, {"metadata": metadata, "items": [pod(name) for name in names_of_pages[at]]})

    return handler


async def test_lists_page_through():
    async with cluster_at(pages("ab", "cd", "e")) as cluster:
        listing = await cluster.list(PODS, namespace="default", labels="app=web", fields="spec.nodeName=n", as_=Pod)
        assert [item.metadata.name for item in listing.items] == list("abcde")
        assert listing.version == "10"
        assert {r.query["labelSelector"] for r in cluster.server.requests} == {"app=web"}
        assert {r.query["fieldSelector"] for r in cluster.server.requests} == {"spec.nodeName=n"}
        assert [r.query["limit"] for r in cluster.server.requests] == ["500"] * 3


async def test_a_list_that_expires_half_way_is_read_again_in_one_piece():
    async with cluster_at(pages("ab", "cd", "e", broken_at=2)) as cluster:
        listing = await cluster.list(PODS, as_=Pod)
        assert [item.metadata.name for item in listing.items] == list("abcde")
        assert listing.version == "20"


async def test_whole_objects_of_a_list_say_what_they_are():
    body = {"metadata": {"resourceVersion": "3"}, "items": [{"metadata": {"name": "a"}}]}
    async with cluster_at(always(200, body)) as cluster:
        listing = await cluster.list(ENDPOINT_SLICES)
        assert listing.items == [
            {"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "metadata": {"name": "a"}}
        ]


async def test_a_list_of_nothing():
    async with cluster_at(always(200, {"metadata": {"resourceVersion": "3"}, "items": None})) as cluster:
        listing = await cluster.list(PODS, as_=Pod)
        assert (list(listing.items), listing.version) == ([], "3")


async def test_a_short_list_that_is_not_empty():
    async with cluster_at(always(200, {"metadata": {}, "items": [{"metadata": {"name": "a"}}]})) as cluster:
        assert [each.metadata.name for each in (await cluster.list(PODS, as_=Pod)).items] == ["a"]


# --- watches ---------------------------------------------------------------------------------------------


async def collect(stream):
    return [change async for change in stream]


async def test_watch_tells_changes_and_bookmarks():
    async def handler(exchange):
        await exchange.begin()
        await exchange.event("ADDED", pod("a", "11"))
        # Two events in one piece, the second of them cut in the middle of a character.
        text = json.dumps({"type": "MODIFIED", "object": pod("ä", "12")}, ensure_ascii=False).encode()
        cut = text.index("ä".encode()) + 1
        await exchange.piece(text + b"\n" + text[:cut])
        await exchange.piece(text[cut:] + b"\n")
        bookmark = {"kind": "Pod", "metadata": {"resourceVersion": "15", "creationTimestamp": None}, "spec": None}
        await exchange.event("BOOKMARK", bookmark)
        await exchange.event("DELETED", pod("a", "16"))
        await exchange.end()

    async with cluster_at(handler) as cluster:
        changes = await collect(cluster.watch(PODS, since="10", namespace="default", labels="app=web", as_=Pod))
        assert [(c.type, c.version, c.object and c.object.metadata.name) for c in changes] == [
            ("BOOKMARK", "10", None),
            ("ADDED", "11", "a"),
            ("MODIFIED", "12", "ä"),
            ("MODIFIED", "12", "ä"),
            ("BOOKMARK", "15", None),
            ("DELETED", "16", "a"),
        ]
        query = cluster.server.requests[0].query
        assert query == {
            "labelSelector": "app=web",
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": "10",
            "timeoutSeconds": "450",
        }


async def test_versions_are_known_whatever_the_projection_leaves_out():
    async def handler(exchange):
        await exchange.begin()
        await exchange.event("ADDED", pod("a", "11"))
        await exchange.end()

    async with cluster_at(handler) as cluster:
        for as_ in (dict, Bare, Pod):
            assert [c.version for c in await collect(cluster.watch(PODS, since="1", as_=as_))] == ["1", "11"]


async def test_an_event_may_be_megabytes_long():
    large = pod("a", "11") | {"data": "x" * 3_000_000}

    async def handler(exchange):
        await exchange.begin()
        await exchange.event("ADDED", large)
        await exchange.end()

    async with cluster_at(handler) as cluster:
        assert (await collect(cluster.watch(PODS, since="1")))[1].object == large


async def test_watch_errors_are_raised():
    async def forgotten(exchange):
        await exchange.begin()
        status = {"kind": "Status", "reason": "Expired", "message": "too old resource version: 1 (20)", "code": 410}
        await exchange.event("ERROR", status)
        await exchange.end()

    async def gone_at_once(exchange):
        await exchange.fail(410, "Expired", "too old")

    async def strange(exchange):
        await exchange.begin()
        await exchange.event("SHRUG", {})
        await exchange.end()

    for handler, error, text in [
        (forgotten, errors.Expired, "too old resource version"),
        (gone_at_once, errors.Expired, "too old"),
        (strange, errors.InternalError, "a watch event of type 'SHRUG'"),
    ]:
        async with cluster_at(handler) as cluster:
            with pytest.raises(error, match=re.escape(text)):
                await collect(cluster.watch(PODS, since="1"))


@pytest.mark.parametrize("half", [b"", b'{"type":"ADDED","obj'])
async def test_a_watch_cut_short_says_so(half):
    async def handler(exchange):
        await exchange.begin()
        await exchange.event("ADDED", pod("a", "11"))
        if half:
            await exchange.piece(half)
            await exchange.end()
        else:
            exchange.drop()

    async with cluster_at(handler) as cluster:
        seen = []

        async def follow():
            async for change in cluster.watch(PODS, since="1", as_=Pod):
                seen.append(change.version)  # noqa: PERF401 - an extend would lose what came before the error

        with pytest.raises(errors.ServiceUnavailable, match="lost the connection"):
            await follow()
        assert seen == ["1", "11"]


async def test_a_watch_left_early_closes_its_connection():
    closed = asyncio.Event()

    async def handler(exchange):
        await exchange.begin()
        try:
            while True:
                await exchange.event("ADDED", pod("a", "11"))
                await asyncio.sleep(0.001)
        finally:
            closed.set()

    async with cluster_at(handler) as cluster:
        stream = cluster.watch(PODS, since="1")
        async for change in stream:
            if change.type == "ADDED":
                break
        await stream.aclose()
        await closed.wait()


# --- failures --------------------------------------------------------------------------------------------


async def test_answers_that_are_not_success_become_errors():
    async def handler(exchange):
        await exchange.fail(
            422,
            "Invalid",
            'Service "a" is invalid',
            kind="Service",
            causes=[{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.ports"}],
        )

    async with cluster_at(handler) as cluster:
        with pytest.raises(errors.Invalid, match='Service "a" is invalid') as caught:
            await cluster.create(SERVICES, {"metadata": {"name": "a"}}, namespace="default")
        assert caught.value.causes == (errors.Cause("FieldValueRequired", "Required value", "spec.ports"),)
        assert caught.value.details == {"kind": "Service"}


@pytest.mark.parametrize(
    ("status", "body", "error", "text"),
    [
        (404, b"404 page not found\n", errors.NotFound, "the server could not find the requested resource"),
        (404, b"nothing here", errors.NotFound, "nothing here"),
        (502, b"<html> Bad\n Gateway</html>", errors.ApiError, "<html> Bad Gateway</html>"),
        (503, b"", errors.ServiceUnavailable, "the server answered 503 without saying why"),
        (301, b"", errors.ApiError, "the server answered 301 without saying why"),
        (403, b'{"kind":"Status","code":403,"message":"no"}', errors.Forbidden, "no"),
    ],
)
async def test_answers_that_are_not_kubernetes(status, body, error, text):
    async with cluster_at(always(status, body)) as cluster:
        with pytest.raises(error) as caught:
            await cluster.get(PODS, "a", namespace="default")
        assert caught.value.message == text
        assert caught.value.code == status


async def test_answers_that_cannot_be_understood():
    async with cluster_at(always(200, b'{"metadata": 7}')) as cluster:
        with pytest.raises(errors.InternalError, match="with what is not Pod: Expected `object`, got `int`"):
            await cluster.get(PODS, "a", namespace="default", as_=Pod)
        with pytest.raises(errors.InternalError, match="with what is not a list of Pod"):
            await cluster.list(PODS, as_=Pod)


async def test_a_server_that_is_not_there():
    async with HttpServer(ok) as server:
        url = server.url
    async with RemoteCluster(Connection(url, Fixed(Identity()))) as cluster:
        with pytest.raises(errors.ServiceUnavailable, match=f"^cannot reach {url}: ") as caught:
            await cluster.get(PODS, "a", namespace="default")
        assert caught.value.__cause__ is not None


async def drop(exchange):
    exchange.drop()


async def test_a_read_whose_answer_is_lost_is_repeated():
    clock = HastyClock()
    async with cluster_at(in_turn(drop, drop, drop, ok), clock=clock) as cluster:
        await cluster.get(PODS, "a", namespace="default")
        assert len(cluster.server.requests) == 4


@pytest.mark.parametrize("verb", ["create", "patch"])
async def test_a_write_whose_answer_is_lost_is_not_repeated(verb):
    async with cluster_at(in_turn(drop, ok)) as cluster:
        if verb == "create":
            request = cluster.create(PODS, pod("a"), namespace="default")
        else:
            request = cluster.patch(PODS, "a", {}, namespace="default")
        with pytest.raises(errors.ServiceUnavailable, match="lost the connection"):
            await request
        assert len(cluster.server.requests) == 1


async def busy(exchange):
    await exchange.fail(429, "TooManyRequests", "slow down", headers=[("Retry-After", "3")])


async def away(exchange):
    await exchange.fail(503, "ServiceUnavailable", "starting", retryAfterSeconds=1000)


async def test_the_server_may_ask_for_patience():
    clock = HastyClock()
    async with cluster_at(in_turn(busy, away, ok), clock=clock) as cluster:
        await cluster.get(PODS, "a", namespace="default")
        assert clock.slept == [3, 30]


async def test_a_write_that_was_refused_for_now_is_sent_again_but_not_one_that_may_have_been_done():
    clock = HastyClock()
    async with cluster_at(in_turn(busy, ok, away), clock=clock) as cluster:
        await cluster.create(PODS, pod("a"), namespace="default")
        assert clock.slept == [3]
        with pytest.raises(errors.ServiceUnavailable, match="starting"):
            await cluster.create(PODS, pod("a"), namespace="default")


async def test_patience_ends():
    clock = HastyClock()
    async with cluster_at(busy, clock=clock) as cluster:
        with pytest.raises(errors.TooManyRequests, match="slow down") as caught:
            await cluster.get(PODS, "a", namespace="default")
        assert caught.value.retry_after == 3
        assert len(cluster.server.requests) == 6


class Renewable:
    """Credentials that can be renewed, and count how often they were."""

    def __init__(self):
        self.token = 1

    async def current(self):
        return Identity(bearer(str(self.token)))

    def refused(self, identity):
        self.token += 1
        return True


async def test_a_refused_identity_is_renewed_once():
    async def second_only(exchange):
        if exchange.request.headers["authorization"] == ["Bearer 2"]:
            await ok(exchange)
        else:
            await exchange.fail(401, "Unauthorized", "Unauthorized")

    renewable = Renewable()
    async with cluster_at(second_only, credentials=renewable) as cluster:
        await cluster.create(PODS, pod("a"), namespace="default")
        assert renewable.token == 2
        renewable.token = 7
        with pytest.raises(errors.Unauthorized):
            await cluster.get(PODS, "a", namespace="default")
        assert renewable.token == 8
    async with cluster_at(second_only) as cluster:
        cluster.connection.credentials._identity = Identity(bearer("3"))
        with pytest.raises(errors.Unauthorized):
            await cluster.get(PODS, "a", namespace="default")
        assert len(cluster.server.requests) == 1


async def test_impersonation_headers_are_sent():
    async with HttpServer(ok) as server:
        headers = (("Impersonate-User", "jane"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"))
        connection = Connection(server.url, Fixed(Identity()), headers=headers)
        async with RemoteCluster(connection) as cluster:
            await cluster.get(PODS, "a", namespace="default")
        assert server.requests[0].headers["impersonate-group"] == ["a", "b"]
        assert server.requests[0].headers["impersonate-user"] == ["jane"]


async def test_an_informer_over_http_survives_a_bad_day():
    """Drops, forgotten versions and refusals on the wire; in the end it holds what the server holds."""
    objects = {}
    log = []
    version = 10
    news = asyncio.Event()
    refuse = 0
    forgotten = 0

    def write(name, obj):
        nonlocal version, news
        version += 1
        if obj is None:
            log.append((version, "DELETED", objects.pop(name)))
        else:
            log.append((version, "ADDED", pod(name, str(version))))
            objects[name] = pod(name, str(version))
        news.set()
        news = asyncio.Event()

    async def handler(exchange):
        nonlocal refuse
        if refuse:
            refuse -= 1
            await exchange.fail(500, "InternalError", "out of order")
        elif "watch" not in exchange.request.query:
            body = {"metadata": {"resourceVersion": str(version)}, "items": list(objects.values())}
            await exchange.answer(200, body)
        else:
            await follow(exchange, int(exchange.request.query["resourceVersion"]))

    async def follow(exchange, at):
        await exchange.begin()
        if at < forgotten:
            await exchange.event("ERROR", {"kind": "Status", "reason": "Expired", "code": 410, "message": "too old"})
            await exchange.end()
            return
        while True:
            wakeup = news
            for number, type_, obj in log:
                if number > at:
                    at = number
                    if obj["metadata"]["name"] == "poison":
                        exchange.drop()
                        return
                    await exchange.event(type_, {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(at)}})
            await wakeup.wait()

    async def settled(informer):
        while informer.last_version != str(version) or not informer.connected:
            await asyncio.sleep(0.001)

    async with cluster_at(handler) as cluster:
        write("a", True)
        informer = Informer(cluster, PODS, as_=Pod, clock=HastyClock())
        task = asyncio.create_task(informer.run())
        await settled(informer)
        write("b", True)
        await settled(informer)
        write("poison", True)
        write("b", None)
        await asyncio.sleep(0.02)
        refuse, forgotten = 2, version
        await settled(informer)
        assert sorted(informer.keys()) == ["default/a", "default/poison"]
        write("c", True)
        await settled(informer)
        assert sorted(informer.keys()) == ["default/a", "default/c", "default/poison"]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
