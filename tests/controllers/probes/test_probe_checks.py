"""One health check each, of real servers on this machine."""

import asyncio
import contextlib
import sys

import pytest

from seamark.api.certificates import Authority
from seamark.controllers.probes.checks import check, impossible
from seamark.rules.probing import Probe, Target

PATIENT = 60.0  # seconds; a slow machine is not what is tested


@contextlib.asynccontextmanager
async def server(answer, tls=None):
    """Sends ``answer`` to each client that has sent a request (None: never); yields the target, and the requests."""
    heard, serving = [], []

    async def serve(reader, writer):
        serving.append(asyncio.current_task())
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            heard.append(await reader.readuntil(b"\r\n\r\n"))
            if answer is None:
                await reader.read()
            writer.write(answer or b"")
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with listening:
        yield Target("127.0.0.1", listening.sockets[0].getsockname()[1]), heard
    await asyncio.gather(*serving)


@pytest.mark.parametrize(
    ("answer", "healthy", "said"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", True, "200 OK"),
        (b"HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n", True, "302 Found"),
        (b"HTTP/1.0 503 Service Unavailable\r\n\r\n", False, "503 Service Unavailable"),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", False, "404 Not Found"),
        (b"SSH-2.0-OpenSSH\r\n", False, "'SSH-2.0-OpenSSH' is no HTTP answer"),
        (b"", False, "no answer"),
        (b"x" * 100_000, False, "found"),
    ],
)
async def test_http(answer, healthy, said):
    async with server(answer) as (target, heard):
        result = await check(Probe("http", path="/healthz", timeout=PATIENT), target)
        assert (result.healthy, said in result.said) == (healthy, True), result
        assert result.said.startswith(f"GET http://{target}/healthz: ")
        [request] = heard
        assert request.startswith(b"GET /healthz HTTP/1.1\r\n")
        assert f"Host: {target}\r\n".encode() in request


async def test_http_names_the_host_that_was_asked_for():
    async with server(b"HTTP/1.1 204 No Content\r\n\r\n") as (target, heard):
        assert (await check(Probe("http", timeout=PATIENT, host="shop.example.com"), target)).healthy
        assert b"Host: shop.example.com\r\n" in heard[0]


async def test_https_with_a_certificate_of_its_own(tmp_path):
    authority = Authority(tmp_path)
    authority.prepare(["shop.example.com"])
    async with server(b"HTTP/1.1 200 OK\r\n\r\n", authority.tls()) as (target, _):
        assert (await check(Probe("https", timeout=PATIENT), target)).said == f"GET https://{target}/: 200 OK"
    async with server(b"HTTP/1.1 200 OK\r\n\r\n") as (target, _):
        result = await check(Probe("https", timeout=0.2), target)  # the server waits for the rest of a request
        assert not result.healthy


async def test_tcp():
    async with server(b"") as (target, _):
        assert (await check(Probe("tcp", timeout=PATIENT), target)).healthy
    refused = await check(Probe("tcp", timeout=PATIENT), target)
    assert (refused.healthy, refused.said) == (False, f"connecting to {target}: Connection refused")
    unknown = await check(Probe("tcp", timeout=PATIENT), Target("no-such-host.invalid", 80))
    assert not unknown.healthy


async def test_a_server_that_accepts_and_never_answers():
    async with server(None) as (target, _):
        result = await check(Probe("http", timeout=0.05), target)
        assert result.said == f"GET http://{target}/: no answer within 0.05 s"


async def test_grpc():
    import grpc
    import grpc.aio

    asked = []

    async def answer(request, context):
        asked.append(request)
        if b"missing" in request:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return b"\x08\x02" if b"sick" in request else b"\x08\x01"

    served = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(answer)
    served.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": handler})])
    target = Target("127.0.0.1", served.add_insecure_port("127.0.0.1:0"))
    await served.start()
    try:
        what = f"at {target}"
        assert (
            await check(Probe("grpc", timeout=PATIENT), target)
        ).said == f"gRPC health of the server {what}: SERVING"
        sick = await check(Probe("grpc", path="/sick", timeout=PATIENT), target)
        assert (sick.healthy, sick.said) == (False, f"gRPC health of sick {what}: NOT_SERVING")
        missing = await check(Probe("grpc", path="/missing", host="orders", timeout=PATIENT), target)
        assert (missing.healthy, "does not answer" in missing.said) == (False, True)
        long = await check(Probe("grpc", path="/" + "x" * 300, timeout=PATIENT), target)
        assert long.healthy
        assert asked == [b"", b"\x0a\x04sick", b"\x0a\x07missing", b"\x0a\xac\x02" + b"x" * 300]
    finally:
        await served.stop(None)
    assert not (await check(Probe("grpc", timeout=PATIENT), target)).healthy


async def test_a_command_finds_the_member_in_its_environment_and_words():
    code = "import os, sys; print(os.environ['ADDRESS'], sys.argv[1]); sys.exit(3)"
    result = await check(
        Probe("exec", command=(sys.executable, "-c", code, "$PORT"), timeout=PATIENT), Target("10.0.0.1", 80)
    )
    assert not result.healthy
    assert result.said.endswith("exit code 3: 10.0.0.1 80")
    assert (await check(Probe("exec", command=("true",), timeout=PATIENT), Target("10.0.0.1", 80))).healthy
    missing = await check(Probe("exec", command=("/no/such/program",), timeout=PATIENT), Target("10.0.0.1", 80))
    assert missing.said == "/no/such/program: No such file or directory"


async def test_a_command_that_does_not_end_is_ended():
    result = await check(Probe("exec", command=("sleep", "1000"), timeout=0.05), Target("10.0.0.1", 80))
    assert result.said == "sleep 1000: no answer within 0.05 s"


def test_what_cannot_be_done_here_is_named():
    assert "switched off" in impossible(Probe("exec"), commands=False)
    assert impossible(Probe("exec"), commands=True) == impossible(Probe("grpc"), commands=False) == ""
