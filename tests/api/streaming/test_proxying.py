"""Requests that Pods and the endpoints of Services answer."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from fake_pods import FakePods, listening, pod, put

from seamark import errors
from seamark.api.streaming import proxying
from seamark.api.streaming.proxying import Endpoint, Links

BASE = "/api/v1/namespaces/default"
PAGE = '<a href="/rewriteme">test</a><img src=\'/i.png?x=1\'><a href="relative"><a href="http://other/x"> a < b'


async def told(request):
    """Says what it was asked."""
    return web.json_response(
        {
            "method": request.method,
            "path": request.raw_path,
            "body": (await request.read()).decode(),
            "headers": dict(request.headers),
        },
        headers={"X-Own": "yes"},
        status=418 if request.path == "/teapot" else 200,
    )


async def page(request):
    response = web.StreamResponse(headers={"Content-Type": "text/html; charset=utf-8"})
    await response.prepare(request)
    half = len(PAGE) // 2 + 3
    for part in (PAGE[:half], PAGE[half:]):
        await response.write(part.encode())
    return response


async def elsewhere(request):
    raise web.HTTPFound("/other/?q=1")


async def talking(request):
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        await socket.send_str(message.data.upper())
    return socket


async def large(request):
    return web.Response(body=b"x" * 2_000_000)


@pytest.fixture
async def pods(api):
    """A Pod with a port, and behind it a real server."""
    application = web.Application()
    application.router.add_get("/page", page)
    application.router.add_get("/moved", elsewhere)
    application.router.add_get("/talk", talking)
    application.router.add_get("/large", large)
    application.router.add_route("*", "/{rest:.*}", told)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    api.api.connecting.pods = made = FakePods()
    made.server = site._server.sockets[0].getsockname()
    named = pod("web", "main")
    named["spec"]["containers"][0]["ports"] = [{"name": "http", "containerPort": 8080, "protocol": "TCP"}]
    await put(api, named)
    yield made
    await runner.cleanup()


async def service(api, name="svc", **endpoint):
    ports = [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "https", "port": 443, "targetPort": 8443}]
    await api.post(f"{BASE}/services", {"metadata": {"name": name}, "spec": {"ports": ports}})
    slice = {
        "metadata": {"name": f"{name}-1", "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080}, {"name": "https", "port": 8443}],
        "endpoints": [
            {"addresses": ["10.244.0.6"], "conditions": {"ready": False}},
            {"addresses": ["10.244.0.5"], **endpoint},
        ],
    }
    await api.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_every_method_reaches_the_pod(api, pods, method):
    async with listening(api) as client:
        body = b"hello" if method in ("POST", "PUT", "PATCH") else None
        async with client.request(method, f"{BASE}/pods/web/proxy/some/p%20ath?x=1&y", data=body) as answer:
            said = await answer.json()
            assert (answer.status, answer.headers["X-Own"]) == (200, "yes")
    assert (said["method"], said["path"], said["body"]) == (method, "/some/p%20ath?x=1&y", (body or b"").decode())
    assert "Authorization" not in said["headers"]
    assert said["headers"]["X-Forwarded-Uri"] == f"{BASE}/pods/web/proxy/some/p%20ath"
    assert pods.asked == [("10.244.0.5", 8080, False)]


async def test_only_the_head(api, pods):
    async with listening(api) as client, client.head(f"{BASE}/pods/web/proxy/") as answer:
        assert (answer.status, answer.headers["X-Own"], await answer.read()) == (200, "yes", b"")


async def test_the_status_of_the_pod(api, pods):
    async with listening(api) as client, client.get(f"{BASE}/pods/web:9090/proxy/teapot") as answer:
        assert answer.status == 418
    assert pods.asked == [("10.244.0.5", 9090, False)]


async def test_a_large_answer(api, pods):
    async with listening(api) as client, client.get(f"{BASE}/pods/web:http/proxy/large") as answer:
        assert await answer.read() == b"x" * 2_000_000


async def test_links_lead_back_through_the_proxy(api, pods):
    proxy = f"{BASE}/pods/http:web:80/proxy"
    async with listening(api) as client:
        async with client.get(f"{proxy}/page") as answer:
            assert await answer.text() == PAGE.replace('"/re', f'"{proxy}/re').replace("'/i", f"'{proxy}/i")
        async with client.get(f"{proxy}/moved", allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (302, f"{proxy}/other/?q=1")
        async with client.get(f"{proxy}?a=b", allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (301, f"{proxy}/?a=b")


async def test_websockets_pass(api, pods):
    async with listening(api) as client, client.ws_connect(f"{BASE}/pods/web/proxy/talk") as socket:
        await socket.send_str("hello")
        assert await socket.receive_str() == "HELLO"


async def test_a_service(api, pods):
    await service(api, targetRef={"kind": "Pod", "name": "web"})
    async with listening(api) as client:
        for name in ("svc:http", "svc:80", "https:svc:443"):
            async with client.get(f"{BASE}/services/{name}/proxy/") as answer:
                assert answer.status == 200
        for name, words in (
            ("svc", 'no endpoints available for service "svc"'),
            ("svc:81", 'no service port 81 found for service "svc"'),
        ):
            async with client.get(f"{BASE}/services/{name}/proxy/") as answer:
                assert (answer.status, (await answer.json())["message"]) == (503, words)
        async with client.get(f"{BASE}/services/none/proxy/") as answer:
            assert (answer.status, (await answer.json())["message"]) == (404, 'services "none" not found')
        async with client.get(f"{BASE}/services/ftp:svc:1/proxy/") as answer:
            assert (answer.status, (await answer.json())["message"]) == (400, 'invalid service request "ftp:svc:1"')
    assert pods.asked == [("10.244.0.5", 8080, False), ("10.244.0.5", 8080, False), ("10.244.0.5", 8443, True)]


async def test_an_endpoint_that_is_no_pod_is_reached_from_this_machine(api, pods):
    host, port = pods.server
    pods.server = None
    spec = {"ports": [{"port": 80}]}
    await api.post(f"{BASE}/services", {"metadata": {"name": "outside"}, "spec": spec})
    slice = {
        "metadata": {"name": "outside-1", "labels": {"kubernetes.io/service-name": "outside"}},
        "addressType": "IPv4",
        "ports": [{"name": "", "port": port}],
        "endpoints": [{"addresses": ["203.0.113.1"]}],
    }
    await api.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice)
    reached = []

    async def connect(address, number, ssl=None):
        reached.append((address, number))
        return await asyncio_connect(host, number)

    asyncio_connect = asyncio.open_connection
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seamark.api.streaming.connecting.asyncio.open_connection", connect)
        async with listening(api) as client, client.get(f"{BASE}/services/outside/proxy/") as answer:
            assert answer.status == 200
    assert reached == [("203.0.113.1", port)]


@pytest.mark.parametrize("name", ["127.0.0.1", "127.1", "localhost.localdomain"])
async def test_a_name_in_a_slice_leads_nowhere(api, pods, name):
    """Such as one that stands for this machine, to which its writer has no access."""
    port = pods.server[1]
    pods.server = None
    await api.post(f"{BASE}/services", {"metadata": {"name": "inside"}, "spec": {"ports": [{"port": 80}]}})
    slice = {
        "metadata": {"name": "inside-1", "labels": {"kubernetes.io/service-name": "inside"}},
        "addressType": "FQDN",
        "ports": [{"name": "", "port": port}],
        "endpoints": [{"addresses": [name]}],
    }
    await api.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice)
    async with listening(api) as client, client.get(f"{BASE}/services/inside/proxy/") as answer:
        found = (answer.status, (await answer.json())["message"])
    assert found == (503, 'no endpoints available for service "inside"')


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "::1", "fe80::1", "::ffff:127.0.0.1", "0.0.0.0"])
async def test_an_address_of_this_machine_is_not_allowed(api, pods, address):
    """Who may write the status of a Pod or Node reaches no more by it than elsewhere."""
    made = pod("sly", "main")
    made["status"]["podIP"] = address
    node = {"metadata": {"name": "node-1"}, "status": {"addresses": [{"type": "InternalIP", "address": address}]}}
    with pytest.raises(errors.BadRequest, match="address not allowed"):
        proxying.pod_endpoint(made, "80", tls=False)
    with pytest.raises(errors.BadRequest, match="address not allowed"):
        proxying.node_endpoint(node, "80", tls=False)


async def test_names_that_are_words_of_the_path(api, pods):
    await api.post("/api/v1/namespaces", {"metadata": {"name": "proxy"}})
    made = pod("namespaces", "main")
    made["metadata"]["namespace"] = "proxy"
    await put(api, made)
    async with listening(api) as client, client.get("/api/v1/namespaces/proxy/pods/namespaces/proxy/x") as answer:
        assert (await answer.json())["path"] == "/x"


async def test_what_does_not_answer(api, pods):
    pods.server = ("127.0.0.1", 1)
    async with listening(api) as client:
        async with client.get(f"{BASE}/pods/web/proxy/") as answer:
            message = (await answer.json())["message"]
            assert (answer.status, message) == (
                503,
                "error trying to reach service: dial tcp 10.244.0.5:8080: connect: connection refused",
            )

        async def silent(reader, writer):
            await reader.read(1)
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        pods.server = server.sockets[0].getsockname()
        async with client.get(f"{BASE}/pods/web/proxy/") as answer:
            assert answer.status == 503
        server.close()
        pods.server = None
        async with client.get(f"{BASE}/pods/web/proxy/") as answer:
            assert answer.status == 501


async def test_a_node(api, pods):
    """Its kubelet's pages, another port of it, and a node that is not ours."""
    ours = {"metadata": {"name": "node-1", "annotations": {"seamark.dev/simulated": "true"}}}
    addresses = [{"type": "InternalIP", "address": "10.0.0.1"}]
    for each in ({**ours, "status": {"addresses": addresses}}, {"metadata": {"name": "foreign"}}):
        await api.post("/api/v1/nodes", each)
    async with listening(api) as client:

        async def get(path, method="GET"):
            async with client.request(method, f"/api/v1/nodes/{path}") as answer:
                return answer.status, await answer.text()

        assert await get("node-1/proxy/healthz") == (200, "ok")
        assert await get("node-1:10250/proxy/healthz") == (200, "ok")
        assert (await get("node-1/proxy/none"))[0] == 404
        assert (await get("node-1/proxy/pods", "DELETE"))[0] == 405
        assert (await get("foreign/proxy/healthz"))[0] == 501
        assert (await get("absent/proxy/healthz"))[0] == 404
        assert (await get("node-1:8080/proxy/"))[0] == 200
        assert (await get("node-1:name/proxy/"))[0] == 400


def test_names_with_schemes_and_ports():
    assert proxying.split_name("pod", "a") == ("a", "", False)
    assert proxying.split_name("pod", "a:b") == ("a", "b", False)
    assert proxying.split_name("pod", "https:a:") == ("a", "", True)
    for wrong in ("", ":80", "x:a:1", "http:a:1:2"):
        with pytest.raises(errors.BadRequest):
            proxying.split_name("pod", wrong)


def test_ports_of_a_pod():
    made = pod("x", "main")
    assert proxying.pod_endpoint(made, "", tls=False) == Endpoint("10.244.0.5", 80)
    assert proxying.pod_endpoint(made, "", tls=True) == Endpoint("10.244.0.5", 443, tls=True)
    for port in ("none", "99999"):
        with pytest.raises(errors.BadRequest):
            proxying.pod_endpoint(made, port, tls=False)
    del made["status"]["podIP"]
    with pytest.raises(errors.BadRequest, match="no address"):
        proxying.pod_endpoint(made, "80", tls=False)


def test_links_in_pieces():
    links = Links("/p", "host")
    page = b'<a href="http://host/x">1</a><a title="href" href=\'/p/y\'>2</a> 1 < 2'
    shown = b"".join(links.shown(page[at : at + 1]) for at in range(len(page))) + links.rest()
    assert shown == b'<a href="/p/x">1</a><a title="href" href=\'/p/y\'>2</a> 1 < 2'
    assert proxying.led_back("http://[", "/p", "h") == "http://["
