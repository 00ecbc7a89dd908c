"""The tunnels of one process: an idle tunnel carries the next connection to its Pod, which saves the handshake.

Connections at the same time have tunnels of their own, so that one whose reader is slow does not hold back the others.
"""

from __future__ import annotations

from seamark import errors
from seamark.access.portforward.tunnel import PodConnection, Tunnel
from seamark.access.sending import Request
from seamark.access.transport import Transport
from seamark.kinds.resource import PODS

PROTOCOL = "SPDY/3.1+portforward.k8s.io"
MOST_IDLE = 8  # tunnels to one Pod that are kept without a connection

PodKey = tuple[str, str, str]  # namespace, name, uid: a new Pod of an old name is another Pod


class Tunnels:
    """Connects to ports of Pods through one API server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._tunnels: dict[PodKey, list[Tunnel]] = {}

    async def prepare(self, pod: PodKey) -> None:
        """Open a tunnel for the first connection to come; raises an ``ApiError`` if the server refuses."""
        self._tunnels.setdefault(pod, []).append(await self._open(pod))

    async def connect(self, pod: PodKey, port: int) -> PodConnection:
        """A connection to a port of a Pod; raises an ``ApiError`` or ``ConnectionError``."""
        tunnels = self._tunnels.setdefault(pod, [])
        tunnels[:] = [tunnel for tunnel in tunnels if not tunnel.closed]
        for spare in [tunnel for tunnel in tunnels if tunnel.free][MOST_IDLE:]:
            tunnels.remove(spare)
            await spare.close()
        idle = next((tunnel for tunnel in tunnels if tunnel.free), None)
        if idle is not None:
            try:
                return await idle.connect(port)
            except ConnectionError:
                tunnels.remove(idle)  # it broke while it was idle
        tunnel = await self._open(pod)
        tunnels.append(tunnel)
        return await tunnel.connect(port)

    async def close(self) -> None:
        """Close all tunnels; connections through them break."""
        for tunnel in [tunnel for tunnels in self._tunnels.values() for tunnel in tunnels]:
            await tunnel.close()
        self._tunnels.clear()

    async def _open(self, pod: PodKey) -> Tunnel:
        namespace, name, _ = pod
        for other, tunnels in list(self._tunnels.items()):  # of Pods that are gone
            if other != pod and all(tunnel.closed for tunnel in tunnels):
                del self._tunnels[other]
        path = PODS.path(namespace=namespace, name=name, subresource="portforward")
        websocket = await self._transport.websocket(Request("GET", path), PROTOCOL)
        if websocket.protocol != PROTOCOL:
            await websocket.close()
            raise errors.NotAcceptable(
                "the API server does not tunnel port-forwarding over WebSockets (Kubernetes does since 1.30)"
            )
        return Tunnel(websocket)
