"""Forwards UDP: a flow, which is one client at one frontend, has a backend and a socket of its own until it is silent.

The answers of a flow leave from the socket that the client sent to, so that it knows them.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from seamark.clock import SYSTEM_CLOCK, Cancellable, Clock
from seamark.metrics import Registry
from seamark.proxy.userspace.balancing import Target
from seamark.proxy.userspace.flows import FlowTable
from seamark.proxy.userspace.link import Picker
from seamark.proxy.userspace.sockets import OwnSockets, Sockets, open_socket

_LONGEST = 65_536
_READ_AT_ONCE = 64  # datagrams, before others get their turn
_SWEEP_SECONDS = 5.0
_RECEIVE_BUFFER = 1024 * 1024

Client = tuple[str, int]  # for IPv6, two more numbers follow


def bind_udp(address: str, port: int, *, free: bool = False) -> socket.socket:
    """A socket at this address; raises ``OSError``."""
    sock = open_socket(socket.SOCK_DGRAM, address, free=free)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        sock.bind((address, port))
    except OSError:
        sock.close()
        raise
    return sock


class UdpForwarder:
    """All UDP flows of one engine, up to ``most``."""

    def __init__(
        self,
        *,
        most: int,
        sockets: Sockets | None = None,
        clock: Clock = SYSTEM_CLOCK,
        metrics: Registry | None = None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.sockets = sockets or OwnSockets()
        self.flows: FlowTable[Flow] = FlowTable(most, clock=clock)
        self.buffer = memoryview(bytearray(_LONGEST))
        self._clock = clock
        self._listeners: set[UdpListener] = set()
        self._sweeper: Cancellable | None = None
        registry = metrics or Registry()
        self.displaced = registry.counter(
            "seamark_proxy_flows_displaced_total", "UDP flows that ended because there were too many."
        )
        self.lost = registry.counter("seamark_proxy_datagrams_lost_total", "Datagrams that could not be passed on.")
        registry.measured("seamark_proxy_flows", "UDP flows under way.", lambda: float(len(self.flows)))

    def listen(self, sock: socket.socket, picker: Picker) -> UdpListener:
        listener = UdpListener(self, sock, picker)
        self._listeners.add(listener)
        return listener

    def close(self) -> None:
        for listener in list(self._listeners):
            listener.close()
        if self._sweeper is not None:
            self._sweeper.cancel()

    def forget(self, listener: UdpListener) -> None:
        self._listeners.discard(listener)

    def begin(self, flow: Flow) -> None:
        displaced = self.flows.add(flow.key, flow)
        if displaced is not None:
            self.displaced.add()
            displaced.close()
        if self._sweeper is None:
            self._sweeper = self._clock.call_later(_SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        for flow in self.flows.expired():
            flow.close()
        again = len(self.flows) > 0
        self._sweeper = self._clock.call_later(_SWEEP_SECONDS, self._sweep) if again else None


class UdpListener:
    """One socket that clients send to.  ``picker`` may be exchanged at any time: it decides about new flows only."""

    def __init__(self, forwarder: UdpForwarder, sock: socket.socket, picker: Picker) -> None:
        self.picker = picker
        self.sock = sock
        self._forwarder = forwarder
        self._keys: dict[Client, Flow] = {}
        forwarder.loop.add_reader(sock, self._read)

    def close(self) -> None:
        """Receive no longer; the flows end, because their answers could not leave from this address."""
        self.end_flows(lambda target: True)
        self._forwarder.loop.remove_reader(self.sock)
        self._forwarder.forget(self)
        self.sock.close()

    def end_flows(self, gone: Callable[[Target], bool]) -> None:
        """End the flows whose backend is gone; their clients' next datagrams go elsewhere."""
        for flow in list(self._keys.values()):
            if gone(flow.target):
                flow.end()

    def ended(self, client: Client) -> None:
        self._keys.pop(client, None)

    def _read(self) -> None:
        forwarder = self._forwarder
        buffer, flows = forwarder.buffer, forwarder.flows
        for _ in range(_READ_AT_ONCE):
            try:
                count, client = self.sock.recvfrom_into(buffer)
            except OSError:
                return  # nothing waits, or the kernel tells that an answer did not reach its client
            flow = flows.heard((self, client)) or self._begin(client)
            if flow is None:
                continue
            try:
                flow.sock.send(buffer[:count])
            except OSError as error:
                forwarder.lost.add()
                if not isinstance(error, BlockingIOError):
                    flow.end()  # refused or unreachable: the next datagram tries another backend

    def _begin(self, client: Client) -> Flow | None:
        target = self.picker.pick(client[0])
        if isinstance(target, str):
            self._forwarder.lost.add()
            return None
        try:
            flow = Flow(self._forwarder, self, client, target)
        except OSError:  # no route to the backend, or no more file descriptors
            self._forwarder.lost.add()
            return None
        self._keys[client] = flow
        self._forwarder.begin(flow)
        return flow


class Flow:
    """One client at one frontend, and its backend."""

    __slots__ = ("_client", "_forwarder", "_listener", "key", "sock", "target")

    def __init__(self, forwarder: UdpForwarder, listener: UdpListener, client: Client, target: Target) -> None:
        self.key = (listener, client)
        self.target = target
        self._forwarder = forwarder
        self._listener = listener
        self._client = client
        self.sock = forwarder.sockets.udp(target[0])
        try:
            self.sock.setblocking(False)
            self.sock.connect(target)
        except OSError:
            self.sock.close()
            raise
        forwarder.loop.add_reader(self.sock, self._answer)

    def _answer(self) -> None:
        buffer = self._forwarder.buffer
        for _ in range(_READ_AT_ONCE):
            try:
                count = self.sock.recv_into(buffer)
            except BlockingIOError:
                return
            except OSError:
                self.end()  # the backend refuses
                return
            self._forwarder.flows.answered(self.key)
            try:
                self._listener.sock.sendto(buffer[:count], self._client)
            except OSError:
                self._forwarder.lost.add()

    def end(self) -> None:
        self._forwarder.flows.remove(self.key)
        self.close()

    def close(self) -> None:
        """Close the socket of a flow that is no longer in the table."""
        self._forwarder.loop.remove_reader(self.sock)
        self.sock.close()
        self._listener.ended(self._client)
