"""Calls to etcd: chooses the endpoint, adds the credentials, and retries failed calls where that is safe."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import grpc.aio

from seamark.store.etcd import messages
from seamark.store.protocol import StoreError, Unavailable, Uncertain

ATTEMPT_SECONDS = 5.0
AWAY_SECONDS = 1.0  # how long a call is repeated while etcd is known to be away
FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 0.5

# etcd's error texts.  Its status codes are too coarse to tell these errors apart.
COMPACTED = "etcdserver: mvcc: required revision has been compacted"
FUTURE = "etcdserver: mvcc: required revision is a future revision"
_NOT_EXECUTED = (
    "etcdserver: no leader",
    "etcdserver: too many requests",
    "etcdserver: mvcc: database space exceeded",
    "failed to connect to all addresses",
    "DNS resolution failed",
)
_TOO_LARGE = "received message larger than max"  # its code, RESOURCE_EXHAUSTED, also means an overloaded server
_LOG_IN_AGAIN = ("etcdserver: invalid auth token", "etcdserver: revision of auth store is old")

_CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # Pings detect a dead connection that only a watch uses.  (They are not sent on a connection without any call:
    # etcd would close it.)
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    # By default gRPC waits up to two minutes before it reconnects to a lost server; clients wait a second each time.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
)

_METHODS = {
    "Range": ("/etcdserverpb.KV/Range", messages.RangeRequest, messages.RangeResponse),
    "Txn": ("/etcdserverpb.KV/Txn", messages.TxnRequest, messages.TxnResponse),
    "Compact": ("/etcdserverpb.KV/Compact", messages.CompactionRequest, messages.CompactionResponse),
    "Authenticate": ("/etcdserverpb.Auth/Authenticate", messages.AuthenticateRequest, messages.AuthenticateResponse),
}


class Login(NamedTuple):
    user: str
    password: str


class Refused(StoreError):
    """etcd rejected the request, and would reject it again; ``said`` is etcd's error text."""

    def __init__(self, address: str, said: str) -> None:
        super().__init__(f"etcd at {address}: {said}")
        self.said = said


class Verdict(Enum):
    """Whether the request of a failed call was executed, and whether to send it again."""

    REFUSED = "it will not be done, however often it is sent"
    NOT_EXECUTED = "it was not done, and may be sent again"
    LOG_IN_AGAIN = "it was not done, because the token has expired"
    UNKNOWN = "it may have been done"


def judge(code: grpc.StatusCode, details: str) -> Verdict:
    """Classify a failed call by its status code and error text."""
    if any(text in details for text in _LOG_IN_AGAIN):
        return Verdict.LOG_IN_AGAIN
    if any(text in details for text in _NOT_EXECUTED):
        return Verdict.NOT_EXECUTED
    if _TOO_LARGE in details or code in (
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.UNIMPLEMENTED,
    ):
        return Verdict.REFUSED
    return Verdict.UNKNOWN


def tls_credentials(ca: str | None, cert: str | None, key: str | None) -> grpc.ChannelCredentials | None:
    """TLS credentials from the files named in the URL; None without any file: plain text."""
    if ca is None and cert is None and key is None:
        return None
    if (cert is None) != (key is None):
        raise StoreError("the store options cert and key go together")
    content: dict[str, bytes | None] = {}
    for name, file in (("root_certificates", ca), ("certificate_chain", cert), ("private_key", key)):
        try:
            content[name] = Path(file).read_bytes() if file is not None else None
        except OSError as error:
            raise StoreError(f"cannot read {file}: {error.strerror}") from error
    return grpc.ssl_channel_credentials(**content)


class _Endpoint:
    """One member of the cluster."""

    def __init__(self, address: str, credentials: grpc.ChannelCredentials | None) -> None:
        self.address = address
        if credentials is None:
            self.channel = grpc.aio.insecure_channel(address, options=_CHANNEL_OPTIONS)
        else:
            self.channel = grpc.aio.secure_channel(address, credentials, options=_CHANNEL_OPTIONS)
        self.methods: dict[str, Any] = {
            name: self.channel.unary_unary(
                path, request_serializer=request.SerializeToString, response_deserializer=response.FromString
            )
            for name, (path, request, response) in _METHODS.items()
        }
        self.watch: Any = self.channel.stream_stream(
            "/etcdserverpb.Watch/Watch",
            request_serializer=messages.WatchRequest.SerializeToString,
            response_deserializer=messages.WatchResponse.FromString,
        )


class EtcdConnection:
    """Uses one member while it answers, and moves to the next when it does not."""

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        credentials: grpc.ChannelCredentials | None,
        login: Login | None,
        patience: float,
    ) -> None:
        self._endpoints = [_Endpoint(address, credentials) for address in addresses]
        self._current = 0
        self._login = login
        self._token: str | None = None
        self._logging_in = asyncio.Lock()
        self.patience = patience
        self._away = False  # the last call that was not refused has failed

    async def close(self) -> None:
        await asyncio.gather(*(endpoint.channel.close() for endpoint in self._endpoints))

    @property
    def address(self) -> str:
        return self._endpoints[self._current].address

    def move_on(self, address: str) -> None:
        """Move to the next member, unless another caller has moved on from ``address`` already."""
        if address == self.address:
            self._current = (self._current + 1) % len(self._endpoints)

    async def call(self, method: str, request: Any, *, repeatable: bool) -> Any:
        """Send a request until etcd answers or ``patience`` seconds have passed.

        A request that is not ``repeatable`` is not sent again once etcd may have executed it: the error is then
        :class:`Uncertain`.  When the time is up, it is :class:`Unavailable`.  After that, calls fail sooner until one
        succeeds; otherwise writers of one object, who take turns, would each wait for all before them.
        """
        clock = asyncio.get_running_loop().time
        patience = min(AWAY_SECONDS, self.patience) if self._away else self.patience
        deadline, pause = clock() + patience, FIRST_PAUSE_SECONDS
        while True:
            endpoint = self._endpoints[self._current]
            token = self._token
            try:
                metadata = await self.metadata()
                # An etcd that has returned may be slow, so an attempt is not shortened while it is away.
                timeout = ATTEMPT_SECONDS if self._away else max(0.1, min(ATTEMPT_SECONDS, deadline - clock()))
                answer = await endpoint.methods[method](request, timeout=timeout, metadata=metadata)
                self._away = False
                return answer
            except grpc.aio.AioRpcError as error:
                verdict, said = judge(error.code(), error.details() or ""), _one_line(error)
                if verdict is Verdict.REFUSED:
                    raise Refused(endpoint.address, said) from error
                uncertain = verdict is Verdict.UNKNOWN and not repeatable
                if uncertain or clock() + pause > deadline:
                    self.move_on(endpoint.address)
                    self._away = True
                    kind = Uncertain if uncertain else Unavailable
                    raise kind(f"etcd at {endpoint.address}: {said}") from error
            if verdict is Verdict.LOG_IN_AGAIN:
                self.forget_token(token)
            else:
                self.move_on(endpoint.address)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def metadata(self) -> tuple[tuple[str, str], ...]:
        """gRPC metadata of every request.  ``hasleader`` makes a member without a leader fail at once, not wait."""
        if self._login is None:
            return (("hasleader", "true"),)
        async with self._logging_in:
            if self._token is None:
                request = messages.AuthenticateRequest(name=self._login.user, password=self._login.password)
                endpoint = self._endpoints[self._current]
                answer = await endpoint.methods["Authenticate"](request, timeout=ATTEMPT_SECONDS)
                self._token = answer.token
        return (("hasleader", "true"), ("token", str(self._token)))

    def forget_token(self, token: str | None) -> None:
        """Drop ``token``, which etcd no longer accepts, unless another call has fetched a newer one already."""
        if self._token == token:
            self._token = None

    async def start_watch(self) -> tuple[str, str | None, Any]:
        """Open a watch stream: the member's address, the log-in token used, and the stream."""
        endpoint = self._endpoints[self._current]
        metadata = await self.metadata()
        return endpoint.address, self._token, endpoint.watch(metadata=metadata)


def _one_line(error: grpc.aio.AioRpcError) -> str:
    return " ".join((error.details() or error.code().name).split())
