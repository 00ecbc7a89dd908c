"""TLS as a kubeconfig asks for it, and proxies in between."""

import asyncio
import contextlib
import datetime
import ipaddress
import os
import socket
import ssl
import threading

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from http_server import HttpServer

from seamark import errors
from seamark.access.blocking import BlockingTransport, run
from seamark.access.credentials import Certificate, Fixed, Identity
from seamark.access.kubeconfig import Connection
from seamark.access.remote import HttpCluster, RemoteCluster
from seamark.kinds.resource import PODS


class Authority:
    """A certificate authority without the extensions that only strict verifiers ask for, as old clusters have them."""

    def __init__(self, name):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(self.name, self.key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), True
        )
        self.certificate = builder.sign(self.key, hashes.SHA256())

    @property
    def pem(self):
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, name, *alternatives):
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key)
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), False)
        certificate = builder.sign(self.key, hashes.SHA256())
        return Certificate(
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
        )

    def _builder(self, subject, key):
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
        )


AUTHORITY = Authority("cluster")
LOOPBACK = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


def server_side(tmp_path, certificate, *, ask_clients=False):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    path = tmp_path / "server.pem"
    path.write_bytes(certificate.certificate + certificate.key)
    context.load_cert_chain(path)
    if ask_clients:
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=AUTHORITY.pem.decode())
    return context


async def answer(exchange):
    await exchange.answer(200, {"metadata": {"name": "a"}})


async def get_in_event_loop(connection):
    async with RemoteCluster(connection) as cluster:
        return (await cluster.get(PODS, "a", namespace="default"))["metadata"]["name"]


async def get_without(connection):
    """The same as a short command does it, in a thread that has no event loop."""

    async def get():
        transport = BlockingTransport(connection)
        try:
            found = await HttpCluster(transport, connection.server).get(PODS, "a", namespace="default")
        finally:
            await transport.close()
        return found["metadata"]["name"]

    return await asyncio.to_thread(lambda: run(get()))


@pytest.fixture(params=[get_in_event_loop, get_without])
def get(request):
    return request.param


async def test_an_authority_is_trusted(tmp_path, get):
    async with HttpServer(answer, server_side(tmp_path, AUTHORITY.issue("api", LOOPBACK))) as server:
        assert await get(Connection(server.url, Fixed(Identity()), authority=AUTHORITY.pem)) == "a"
        assert server.connections == 1


@pytest.mark.parametrize("authority", [None, Authority("another").pem])
async def test_another_is_not(tmp_path, authority, get):
    async with HttpServer(answer, server_side(tmp_path, AUTHORITY.issue("api", LOOPBACK))) as server:
        with pytest.raises(errors.ServiceUnavailable, match=r"certificate of https://.* cannot be trusted: .*verify"):
            await get(Connection(server.url, Fixed(Identity()), authority=authority))
        assert await get(Connection(server.url, Fixed(Identity()), authority=authority, insecure=True)) == "a"


async def test_the_server_may_go_by_another_name(tmp_path, get):
    certificate = AUTHORITY.issue("api", x509.DNSName("kubernetes.default"))
    async with HttpServer(answer, server_side(tmp_path, certificate)) as server:
        with pytest.raises(errors.ServiceUnavailable, match="cannot be trusted"):
            await get(Connection(server.url, Fixed(Identity()), authority=AUTHORITY.pem))
        named = Connection(server.url, Fixed(Identity()), authority=AUTHORITY.pem, server_name="kubernetes.default")
        assert await get(named) == "a"


class Changing:
    def __init__(self, certificate):
        self.certificate = certificate

    async def current(self):
        return Identity(certificate=self.certificate)

    def refused(self, identity):
        return False


def common_name(peer):
    return dict(pair for group in peer["subject"] for pair in group)["commonName"]


async def test_client_certificates_are_shown_and_renewed_without_losing_what_is_under_way(tmp_path):
    go_on = asyncio.Event()

    async def handler(exchange):
        if "watch" in exchange.request.query:
            await exchange.begin()
            await go_on.wait()
            await exchange.event("ADDED", {"metadata": {"name": "a", "resourceVersion": "2"}})
            await exchange.end()
        else:
            await answer(exchange)

    context = server_side(tmp_path, AUTHORITY.issue("api", LOOPBACK), ask_clients=True)
    before = set(os.listdir(tmp_path))
    async with HttpServer(handler, context) as server:
        credentials = Changing(AUTHORITY.issue("jane"))
        async with RemoteCluster(Connection(server.url, credentials, authority=AUTHORITY.pem)) as cluster:
            stream = cluster.watch(PODS, since="1")
            assert (await anext(stream)).type == "BOOKMARK"
            await cluster.get(PODS, "a", namespace="default")
            await cluster.get(PODS, "a", namespace="default")
            credentials.certificate = AUTHORITY.issue("joan")
            await cluster.get(PODS, "a", namespace="default")
            go_on.set()
            assert (await anext(stream)).type == "ADDED"
            await stream.aclose()
        assert [common_name(peer) for peer in server.peers] == ["jane", "jane", "joan"]
    assert set(os.listdir(tmp_path)) == before


@contextlib.contextmanager
def refusing_clients(tls):
    """The address of a server that tells each client what is wrong with its certificate; asyncio's tells nothing."""

    def serve():
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                with tls.wrap_socket(client, server_side=True, do_handshake_on_connect=False) as shaking:
                    with contextlib.suppress(ssl.SSLError):
                        shaking.do_handshake()
                    while socket.socket.recv(shaking, 1 << 16):
                        pass  # what is left unread would make the kernel drop what was told

    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield f"https://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            serving.join()


async def test_a_client_certificate_that_the_server_refuses(tmp_path, get):
    foreign = Fixed(Identity(certificate=Authority("elsewhere").issue("joan")))
    server_tls = server_side(tmp_path, AUTHORITY.issue("api", LOOPBACK), ask_clients=True)
    refused = pytest.raises(errors.Unauthorized, match=r"does not accept the client certificate: .*ALERT")
    with refusing_clients(server_tls) as url, refused:
        await get(Connection(url, foreign, authority=AUTHORITY.pem))


async def test_credentials_that_the_server_does_not_know(tmp_path, get):
    async def refuse(exchange):
        await exchange.fail(401, "Unauthorized", "Unauthorized")

    async with HttpServer(refuse, server_side(tmp_path, AUTHORITY.issue("api", LOOPBACK))) as server:
        connection = Connection(server.url, Fixed(Identity()), authority=AUTHORITY.pem)
        with pytest.raises(errors.Unauthorized, match=rf"^{server.url} does not accept .* expired"):
            await get(connection)


async def test_certificates_that_cannot_be_used(tmp_path, get):
    async with HttpServer(answer, server_side(tmp_path, AUTHORITY.issue("api", LOOPBACK))) as server:
        nonsense = Fixed(Identity(certificate=Certificate(b"CERT", b"KEY")))
        with pytest.raises(errors.Unauthorized, match="the client certificate or its key cannot be used"):
            await get(Connection(server.url, nonsense, authority=AUTHORITY.pem))
        with pytest.raises(errors.ServiceUnavailable, match="is not a PEM certificate"):
            await get(Connection(server.url, Fixed(Identity()), authority=b"CA"))
        assert server.requests == []


@contextlib.asynccontextmanager
async def forwarding_proxy():
    """An HTTP proxy that knows CONNECT only."""
    asked = []
    tasks = set()

    async def pump(reader, writer):
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def accept(reader, writer):
        tasks.add(asyncio.current_task())
        head = await reader.readuntil(b"\r\n\r\n")
        target = head.split()[1].decode()
        asked.append(target)
        host, _, port = target.rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def test_through_a_proxy(tmp_path):
    context = server_side(tmp_path, AUTHORITY.issue("api", LOOPBACK))
    async with forwarding_proxy() as (proxy, asked), HttpServer(answer, context) as server:
        connection = Connection(server.url, Fixed(Identity()), authority=AUTHORITY.pem, proxy=proxy)
        assert await get_in_event_loop(connection) == "a"
        assert asked == [f"127.0.0.1:{server.port}"]
