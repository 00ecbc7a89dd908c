"""The etcd engine's own matters: sharing, restarts, failover, TLS, log-in, failures."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from etcd_server import EtcdCluster, binary
from seamark.store.etcd import EtcdStore, connection, messages
from seamark.store.etcd.connection import EtcdConnection, Verdict, judge
from seamark.store.opening import open_store
from seamark.store.protocol import Change, Future, Mismatch, Store, StoreError, Unavailable, Uncertain, Write

pytestmark = pytest.mark.skipif(binary() is None, reason="no etcd binary runs here")


@pytest.fixture
def prefix() -> str:
    return f"/test/{uuid.uuid4()}"


@pytest.fixture
async def store(etcd: EtcdCluster, prefix: str) -> AsyncIterator[EtcdStore]:
    store = EtcdStore(etcd.addresses, prefix=prefix)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[EtcdCluster]:
    """A cluster of one's own, to be killed; the marker ``members`` says how many."""
    cluster = EtcdCluster(tmp_path, members=getattr(request, "param", 1))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


# --- sharing -----------------------------------------------------------------------------------------


async def test_two_stores_of_one_place_see_each_other(store: EtcdStore, etcd: EtcdCluster, prefix: str) -> None:
    other = EtcdStore(etcd.addresses, prefix=prefix + "/")
    await other.open()
    watch = other.watch("/", await other.revision())
    first = await store.commit([Write("/a", b"1")])
    assert await other.revision() == first
    assert [row.value for row in (await other.read("/", "0")).rows] == [b"1"]
    assert (await anext(watch)).changes == [Change("/a", b"1", None, first)]
    second = await other.commit([Write("/a", b"2", expect=first)])
    with pytest.raises(Mismatch) as mismatch:
        await store.commit([Write("/a", b"3", expect=first)])
    assert mismatch.value.found == second
    await other.close()


async def test_places_with_a_common_beginning_are_apart(store: EtcdStore, etcd: EtcdCluster, prefix: str) -> None:
    since = await store.revision()
    others = [EtcdStore(etcd.addresses, prefix=prefix + ending) for ending in ("2", "-x", "!")]
    for other in others:
        await other.open()
        await other.commit([Write("/a", b"other"), Write("/z", b"other")])
    assert (await store.read("", "\U0010ffff")).rows == []
    own = await store.commit([Write("/a", b"own")])
    seen = []
    async for batch in store.watch("/a", since):
        seen += batch.changes
        if batch.revision >= own:
            break
    assert seen == [Change("/a", b"own", None, own)]
    for other in others:
        assert [row.value for row in (await other.read("/a", "")).rows] == [b"other"]
        await other.close()


async def test_the_revision_is_the_stores_own_whoever_else_writes(
    store: EtcdStore, etcd: EtcdCluster, prefix: str
) -> None:
    """Else a reader that waits for the watch to reach it would wait for ever."""
    own = await store.commit([Write("/a", b"1")])
    watch = store.watch("/", own - 1)
    neighbour = EtcdStore(etcd.addresses, prefix=prefix + "-neighbour")
    await neighbour.open()
    for _ in range(5):
        await neighbour.commit([Write("/a", b"")])
    assert await store.revision() == own
    assert (await store.read("/", "0")).revision == own
    assert await store.commit([Write("/absent", None)]) == own
    assert (await anext(watch)).revision == own
    await neighbour.close()


async def test_deleting_without_an_expectation_under_contention(store: EtcdStore) -> None:
    async def write() -> None:
        for i in range(20):
            await store.commit([Write("/a", b"%d" % i)])

    async def delete() -> int:
        return len({await store.commit([Write("/a", None), Write("/b", None)]) for _ in range(20)})

    await asyncio.gather(write(), delete(), delete())
    await store.commit([Write("/a", None)])
    assert (await store.read("/", "0")).rows == []


# --- limits ------------------------------------------------------------------------------------------


async def test_no_transaction_only_reads(store: EtcdStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some versions of etcd end themselves if such a one is cancelled."""
    sent = []
    call = EtcdConnection.call

    async def recorded(self: EtcdConnection, method: str, request: Any, *, repeatable: bool) -> Any:
        sent.append((method, request))
        return await call(self, method, request, repeatable=repeatable)

    monkeypatch.setattr(EtcdConnection, "call", recorded)
    first = await store.commit([Write("/a", b""), Write("/b", b"")])
    assert await store.commit([Write("/c", None), Write("/d", None, 0)]) == first
    assert await store.commit([Write("/a", None), Write("/c", None)]) > first
    with pytest.raises(Mismatch):
        await store.commit([Write("/b", None, 0)])
    await store.read("/", "0")
    writing = [{each.WhichOneof("request") for each in asked.success} for method, asked in sent if method == "Txn"]
    assert len(writing) == 2
    assert all("request_put" in kinds for kinds in writing)


async def test_what_etcd_refuses_is_told_in_its_words(store: EtcdStore) -> None:
    with pytest.raises(StoreError, match="too many operations") as refused:
        await store.commit([Write(f"/{i}", b"") for i in range(200)])
    assert not isinstance(refused.value, Unavailable)
    for size, says in ((1700 << 10, "request is too large"), (2 << 20, "larger than max")):
        with pytest.raises(StoreError, match=says) as refused:
            await store.commit([Write("/a", b"x" * size)])
        assert not isinstance(refused.value, Unavailable)
    assert (await store.read("/", "0")).rows == []


async def test_a_replay_larger_than_a_message_comes_in_whole_transactions(store: EtcdStore) -> None:
    since = await store.revision()
    value = b"x" * 100_000
    for i in range(40):
        last = await store.commit([Write(f"/a/{i}", value), Write(f"/b/{i}", value), Write("/c", value)])
    seen: list[Change] = []
    async for batch in store.watch("/", since):
        sizes: dict[int, int] = {}
        for change in batch.changes:
            sizes[change.revision] = sizes.get(change.revision, 0) + 1
        assert set(sizes.values()) <= {3}
        seen += batch.changes
        if batch.revision >= last:
            break
    assert [change.key for change in seen] == [key for i in range(40) for key in (f"/a/{i}", f"/b/{i}", "/c")]


async def test_a_reader_interrupted_in_its_wait_loses_nothing(store: EtcdStore) -> None:
    watch = store.watch("/", await store.revision())
    for i in range(5):
        waiting = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        revision = await store.commit([Write("/a", b"%d" % i)])
        batch = await anext(watch)
        assert [change.revision for change in batch.changes] == [revision]


# --- failures ----------------------------------------------------------------------------------------


async def test_nobody_there() -> None:
    store = EtcdStore(["127.0.0.1:1", "127.0.0.1:2"], patience=0.3)
    with pytest.raises(Unavailable, match=r"etcd at 127.0.0.1:[12]: ") as unavailable:
        await store.open()
    assert "\n" not in str(unavailable.value)


async def test_the_first_of_several_being_away(etcd: EtcdCluster, prefix: str) -> None:
    store = EtcdStore(["127.0.0.1:1", *etcd.addresses], prefix=prefix)
    await store.open()
    revision = await store.commit([Write("/a", b"1")])
    assert (await anext(store.watch("/", revision - 1))).revision == revision
    await store.close()


@pytest.mark.parametrize(
    ("code", "details", "verdict"),
    [
        (grpc.StatusCode.UNAVAILABLE, "etcdserver: no leader", Verdict.NOT_EXECUTED),
        (grpc.StatusCode.UNAVAILABLE, "failed to connect to all addresses; last error: x", Verdict.NOT_EXECUTED),
        (grpc.StatusCode.UNAVAILABLE, "etcdserver: leader changed", Verdict.UNKNOWN),
        (grpc.StatusCode.UNAVAILABLE, "etcdserver: request timed out", Verdict.UNKNOWN),
        (grpc.StatusCode.UNAVAILABLE, "Socket closed", Verdict.UNKNOWN),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded", Verdict.UNKNOWN),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded", Verdict.NOT_EXECUTED),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "etcdserver: too many requests", Verdict.NOT_EXECUTED),
        (grpc.StatusCode.UNAUTHENTICATED, "etcdserver: invalid auth token", Verdict.LOG_IN_AGAIN),
        (grpc.StatusCode.PERMISSION_DENIED, "etcdserver: permission denied", Verdict.REFUSED),
        (grpc.StatusCode.INVALID_ARGUMENT, "etcdserver: too many operations in txn request", Verdict.REFUSED),
    ],
)
def test_what_a_failure_means(code: grpc.StatusCode, details: str, verdict: Verdict) -> None:
    assert judge(code, details) is verdict


class Faltering(grpc.GenericRpcHandler):
    """A member that answers each transaction as told: with a failure's code and words, or for None by doing it."""

    def __init__(self, answers: list[tuple[grpc.StatusCode, str] | None]) -> None:
        self.answers = answers

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        async def answer(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
            failure = self.answers.pop(0)
            if failure is not None:
                await context.abort(*failure)
            header = messages.TxnResponse(succeeded=True)
            header.header.revision = 7
            return bytes(header.SerializeToString())

        return grpc.unary_unary_rpc_method_handler(answer)


@pytest.fixture
async def faltering() -> AsyncIterator[tuple[Faltering, EtcdStore]]:
    member, server = Faltering([None]), grpc.aio.server()
    server.add_generic_rpc_handlers([member])
    store = EtcdStore([f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"])
    await server.start()
    await store.open()
    yield member, store
    await store.close()
    await server.stop(None)


@pytest.mark.parametrize("words", ["etcdserver: leader changed", "etcdserver: request timed out", "Socket closed"])
async def test_a_write_that_may_have_happened_is_not_repeated(
    faltering: tuple[Faltering, EtcdStore], words: str
) -> None:
    member, store = faltering
    member.answers = [(grpc.StatusCode.UNAVAILABLE, words), None]
    with pytest.raises(Uncertain, match=words):
        await store.commit([Write("/a", b"")])
    assert member.answers == [None]


async def test_a_write_that_has_not_happened_is_repeated(faltering: tuple[Faltering, EtcdStore]) -> None:
    member, store = faltering
    member.answers = [(grpc.StatusCode.UNAVAILABLE, "etcdserver: no leader")] * 3 + [None]
    assert await store.commit([Write("/a", b"")]) == 7


async def test_while_etcd_is_away_calls_fail_soon(
    faltering: tuple[Faltering, EtcdStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    member, store = faltering
    monkeypatch.setattr(connection, "AWAY_SECONDS", 0.0)
    leaderless = (grpc.StatusCode.UNAVAILABLE, "etcdserver: no leader")
    member.answers = [(grpc.StatusCode.UNAVAILABLE, "Socket closed"), leaderless, None, leaderless, None]
    with pytest.raises(Uncertain):
        await store.commit([Write("/a", b"")])
    with pytest.raises(Unavailable) as refused:  # not repeated: etcd is known to be away
        await store.commit([Write("/a", b"")])
    assert type(refused.value) is Unavailable
    assert await store.commit([Write("/a", b"")]) == 7
    assert await store.commit([Write("/a", b"")]) == 7  # repeated: etcd is back
    assert member.answers == []


async def test_a_refusal_is_final(faltering: tuple[Faltering, EtcdStore]) -> None:
    member, store = faltering
    member.answers = [(grpc.StatusCode.PERMISSION_DENIED, "etcdserver: permission denied"), None]
    with pytest.raises(StoreError, match="permission denied"):
        await store.commit([Write("/a", b"")])
    assert member.answers == [None]


async def changes_until_end(store: Store, since: int) -> list[Change]:
    """Everything up to the transaction that writes ``/end``."""
    changes: list[Change] = []
    async for batch in store.watch("/", since):
        changes += batch.changes
        if any(change.key == "/end" for change in batch.changes):
            break
    return changes


async def test_a_restart_of_the_only_member(cluster: EtcdCluster) -> None:
    (member,) = cluster.members
    store = EtcdStore(cluster.addresses)
    await store.open()
    following = asyncio.create_task(changes_until_end(store, await store.revision()))
    before = await store.commit([Write("/a", b"before")])
    await asyncio.to_thread(member.kill)
    impatient = EtcdStore(cluster.addresses, patience=0.3)
    with pytest.raises(Unavailable):
        await impatient.open()
    reading = asyncio.create_task(store.read("/", "0"))
    writing = asyncio.create_task(store.commit([Write("/a", b"during")]))
    await asyncio.sleep(0.1)
    member.start()
    assert [row.key for row in (await reading).rows] == ["/a"]
    try:
        during = await writing
    except Unavailable:  # allowed: it may have been sent into the dying connection
        during = await store.commit([Write("/a", b"during")])
    after = await store.commit([Write("/end", b"after")])
    changes = await following
    assert changes[0] == Change("/a", b"before", None, before)
    assert changes[-2:] == [Change("/a", b"during", b"before", during), Change("/end", b"after", None, after)]
    await store.close()


async def test_a_watch_of_an_etcd_that_stays_away_says_so_and_another_goes_on(cluster: EtcdCluster) -> None:
    (member,) = cluster.members
    store = EtcdStore(cluster.addresses, patience=0.3)
    await store.open()
    since = await store.commit([Write("/a", b"1")])
    watch = store.watch("/", since)
    waiting = asyncio.ensure_future(anext(watch))
    await store.commit([Write("/a", b"2")])
    reached = (await waiting).revision
    await asyncio.to_thread(member.kill)
    with pytest.raises(Unavailable, match=f"etcd at {member.address}: "):
        await anext(watch)
    with pytest.raises(Unavailable):
        await store.check()
    member.start()
    await asyncio.to_thread(cluster.wait_until_healthy, member)
    other = EtcdStore(cluster.addresses)
    await other.open()
    third = await other.commit([Write("/a", b"3")])
    assert (await anext(other.watch("/", reached))).changes == [Change("/a", b"3", b"2", third)]
    await other.check()
    await other.close()
    await store.close()


class Writers:
    """Several writers of keys of their own, and what was acknowledged to them."""

    def __init__(self, store: Store, count: int) -> None:
        self.acknowledged: dict[str, int] = {}
        self._stopped = False
        self._tasks = [asyncio.create_task(self._write(store, number)) for number in range(count)]

    async def _write(self, store: Store, number: int) -> None:
        step = 0
        while not self._stopped:
            step += 1
            key = f"/{number}/{step:06d}"
            try:
                self.acknowledged[key] = await store.commit([Write(key, b"", expect=0), Write(f"/{number}", b"")])
            except Unavailable:
                continue  # perhaps written, perhaps not; the next key is another one

    async def until_more(self, count: int) -> None:
        wanted = len(self.acknowledged) + count
        while len(self.acknowledged) < wanted:
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        self._stopped = True
        await asyncio.gather(*self._tasks)


@pytest.mark.parametrize("cluster", [3], indirect=True)
async def test_losing_the_leader_loses_nothing(cluster: EtcdCluster) -> None:
    store, observer = EtcdStore(cluster.addresses), EtcdStore(list(reversed(cluster.addresses)))
    await store.open()
    await observer.open()
    since = await store.revision()
    following = [asyncio.create_task(changes_until_end(each, since)) for each in (store, observer)]
    writers = Writers(store, 6)
    for _ in range(2):
        await writers.until_more(50)
        leader = await asyncio.to_thread(cluster.leader)
        await asyncio.to_thread(leader.kill)
        await writers.until_more(50)
        leader.start()
        await asyncio.to_thread(cluster.wait_until_healthy, leader)
    await writers.stop()
    await observer.commit([Write("/end", b"")])
    rows = {row.key: row.revision for row in (await observer.read("/", "0")).rows}
    assert writers.acknowledged.items() <= rows.items()
    for changes in await asyncio.gather(*following):
        revisions = [change.revision for change in changes]
        assert revisions == sorted(revisions)
        steps = [change for change in changes if change.key.count("/") == 2 or change.key == "/end"]
        assert len(steps) == len({change.key for change in steps})
        assert {change.key: change.revision for change in steps} == {
            key: revision for key, revision in rows.items() if key.count("/") == 2 or key == "/end"
        }
    await store.close()
    await observer.close()


@pytest.mark.soak  # noticing a silent death takes the keepalive's quarter of a minute
@pytest.mark.parametrize("cluster", [3], indirect=True)
async def test_a_member_that_stops_answering_is_left(cluster: EtcdCluster) -> None:
    frozen, *others = cluster.members
    store = EtcdStore(cluster.addresses)
    await store.open()
    watch = store.watch("/", await store.revision())
    first = await store.commit([Write("/a", b"1")])
    assert (await anext(watch)).revision == first
    frozen.freeze()
    other = EtcdStore([member.address for member in others])
    await other.open()
    second = await other.commit([Write("/a", b"2")])
    assert (await anext(watch)).changes == [Change("/a", b"2", b"1", second)]
    assert await store.revision() == second
    await other.close()
    await store.close()


async def test_the_future_is_refused_though_etcd_would_wait(store: EtcdStore) -> None:
    with pytest.raises(Future):
        await anext(store.watch("/", await store.revision() + 1000))


# --- TLS and log-in ----------------------------------------------------------------------------------


def make_certificates(directory: Path) -> None:
    """A CA (ca.pem) and one certificate for server and client alike (cert.pem, key.pem)."""

    def write(name: str, content: bytes) -> None:
        (directory / name).write_bytes(content)

    now = datetime.datetime.now(datetime.UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test-ca")])

    def builder(name: x509.Name, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(ca_name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )

    ca = (
        builder(ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    certificate = (
        builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "seamark")]), key.public_key())
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    write("ca.pem", ca.public_bytes(serialization.Encoding.PEM))
    write("cert.pem", certificate.public_bytes(serialization.Encoding.PEM))
    write(
        "key.pem",
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


async def test_tls_with_client_certificates(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    flags = [
        f"--cert-file={tmp_path}/cert.pem",
        f"--key-file={tmp_path}/key.pem",
        f"--trusted-ca-file={tmp_path}/ca.pem",
        "--client-cert-auth",
    ]
    cluster = EtcdCluster(tmp_path, scheme="https", extra=flags)
    try:
        cluster.start()
        store = open_store(
            f"etcd://{cluster.addresses[0]}/place?ca={tmp_path}/ca.pem&cert={tmp_path}/cert.pem&key={tmp_path}/key.pem"
        )
        await store.open()
        revision = await store.commit([Write("/a", b"1")])
        assert (await anext(store.watch("/", revision - 1))).revision == revision
        await store.close()
        for options in ({}, {"ca": f"{tmp_path}/ca.pem"}):
            with pytest.raises(Unavailable):
                await EtcdStore(cluster.addresses, patience=0.5, **options).open()
    finally:
        cluster.stop()


def test_certificates_that_cannot_be_had(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot read /missing: No such file"):
        open_store("etcd://localhost:2379/place?ca=/missing")
    with pytest.raises(StoreError, match="cert and key go together"):
        open_store("etcd://localhost:2379/place?cert=/missing")


async def test_log_in_and_tokens_that_expire(tmp_path: Path) -> None:
    cluster = EtcdCluster(tmp_path, extra=["--auth-token-ttl=1"])
    try:
        cluster.start()
        for command in (
            "user add root:secret",
            "user add seamark:word",
            "role add place",
            "role grant-permission place --prefix=true readwrite /place/",
            "user grant-role seamark place",
            "auth enable",
        ):
            cluster.control(*command.split())
        url = f"etcd://{cluster.addresses[0]}"
        with pytest.raises(StoreError, match="user name is empty"):
            await open_store(f"{url}/place").open()
        with pytest.raises(StoreError, match="authentication failed"):
            await open_store(f"{url}/place?user=seamark&password=wrong").open()
        with pytest.raises(StoreError, match="permission denied"):
            await open_store(f"{url}/elsewhere?user=seamark&password=word").open()
        store = open_store(f"{url}/place?user=seamark&password=word")
        await store.open()
        revision = await store.commit([Write("/a", b"1")])
        watch = store.watch("/", revision - 1)
        assert (await anext(watch)).revision == revision
        await asyncio.sleep(2.5)  # the token is gone now
        assert (await anext(store.watch("/", revision - 1))).revision == revision
        second = await store.commit([Write("/a", b"2")])
        assert (await anext(watch)).revision == second
        await store.close()
    finally:
        cluster.stop()
