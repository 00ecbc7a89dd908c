"""Finds the Pod or Service that a request is about, and who answers: the log, a command, a port, an HTTP server."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from seamark.access.pod_streams import Connection, PodStreams, unverified
from seamark.api.admission import Others
from seamark.api.call import Target, not_available
from seamark.api.http.url import Query, first, flag
from seamark.api.http.websocket import asked_for
from seamark.api.http.wire.messages import Request, Response, Streaming
from seamark.api.http.wire.pieces import frame
from seamark.api.http.wire.stream import Stream
from seamark.api.streaming.sockets import Socket, Tasks, WebSocket
from seamark.api.streaming.upgrading import as_either, as_websocket
from seamark.clock import Clock
from seamark.errors import Object
from seamark.kinds.autoscaling import usage
from seamark.kinds.autoscaling.usage import Measurement
from seamark.kinds.resource import ENDPOINT_SLICES, NODES, PODS
from seamark.kinds.values.refusals import missing
from seamark.kinds.wellknown import SERVICE_NAME_LABEL, SIMULATED_ANNOTATION

if TYPE_CHECKING:
    from seamark.api.streaming.proxying import Endpoint


class Connecting:
    """Answers for subresources that lead into Pods.  ``pods`` is None until Pods run in this process."""

    def __init__(self, others: Others, clock: Clock) -> None:
        self._others = others
        self._clock = clock
        self.pods: PodStreams | None = None
        self.tasks = Tasks()

    async def answer(self, request: Request, target: Target, query: Query) -> Response | Streaming:
        """Raises an ``ApiError``, for what is simulated 501."""
        sub = target.subresource
        assert sub is not None, "connections are made to subresources"
        if sub.name == "proxy":
            return await self._proxy(request, target)
        match sub.name:
            case "log":
                return self._log(request, target, query)
            case "portforward":
                return self._forward(request, target, query)
            case _:
                return self._command(request, target, query)

    async def _proxy(self, request: Request, target: Target) -> Response | Streaming:
        from seamark.api.streaming import kubelet_pages, proxying

        resource = target.kind.resource
        name, port, tls = proxying.split_name(target.kind.singular, target.name)
        found = self._others.get(resource, name, target.namespace)
        if found is None:
            raise missing(resource, name)
        path = request.path.partition(f"/{resource.plural}/{target.name}/proxy")[2]
        if resource == NODES:
            if self.pods is None or SIMULATED_ANNOTATION not in (found["metadata"].get("annotations") or {}):
                raise not_available(target)
            if port in ("", kubelet_pages.PORT):
                return self._page(request, path, found)
            endpoint = proxying.node_endpoint(found, port, tls=tls)
        elif resource == PODS:
            endpoint = proxying.pod_endpoint(found, port, tls=tls)
        else:
            label = f'"{SERVICE_NAME_LABEL}":"{name}"'.encode()
            slices = list(self._others.all(ENDPOINT_SLICES, target.namespace, containing=label))
            endpoint = random.choice(proxying.service_endpoints(found, slices, port, tls=tls))
        if not path and request.method in ("GET", "HEAD") and "upgrade" not in request.headers:
            return proxying.redirect(request)
        request.waits = asyncio.current_task()
        try:
            return await proxying.relay(self.tasks, await self._reach(target, endpoint), request, path)
        except OSError as error:
            raise proxying.unreachable(endpoint, error) from error

    def _page(self, request: Request, path: str, node: Object) -> Response:
        from seamark.api.streaming import kubelet_pages

        if request.method not in ("GET", "HEAD"):
            return Response(405, b"405: Method Not Allowed", "text/plain")
        name = node["metadata"]["name"]
        pods = [pod for pod in self._others.all(PODS) if pod["spec"].get("nodeName") == name]
        return kubelet_pages.page(path, node, pods, self._measured())

    async def _reach(self, target: Target, endpoint: Endpoint) -> Connection:
        """A connection by the Pods' network, or by this machine's own to what is no Pod."""
        if self.pods is not None:
            found = await self.pods.reach(endpoint.address, endpoint.port, tls=endpoint.tls)
            if found is not None:
                return found
        if endpoint.pod:
            raise not_available(target)
        tls = unverified() if endpoint.tls else None
        return await asyncio.open_connection(endpoint.address, endpoint.port, ssl=tls)

    # --- metrics -----------------------------------------------------------------------------------

    def _measured(self) -> Measurement:
        return Measurement() if self.pods is None else self.pods.measured()

    def pod_metrics(self) -> list[Object]:
        return usage.pod_metrics(self._others.all(PODS), self._measured())

    def node_metrics(self) -> list[Object]:
        return usage.node_metrics(self._others.all(NODES), self._others.all(PODS), self._measured())

    # --- Pods --------------------------------------------------------------------------------------

    def _pod(self, target: Target) -> Object:
        pod = self._others.get(PODS, target.name, target.namespace)
        if pod is None:
            raise missing(PODS, target.name)
        return pod

    def _pods(self, target: Target, pod: Object) -> PodStreams:
        """The nodes that run the Pod."""
        if self.pods is None or not self.pods.runs(pod["metadata"]["uid"]):
            raise not_available(target)
        return self.pods

    def _log(self, request: Request, target: Target, query: Query) -> Response | Streaming:
        from seamark.api.streaming import choosing, log_messages

        options = choosing.log_options(target.name, query, now=self._clock.time())
        pod = self._pod(target)
        container = choosing.container_of(pod, first(query, "container"))
        if not pod["spec"].get("nodeName"):
            return Response(204, b"", "")  # there is no node to ask yet, which is no mistake of the client
        run = choosing.log_run(pod, container, previous=flag(query, "previous"))
        options = msgspec.structs.replace(options, run=run)
        pieces = self._pods(target, pod).logs(pod["metadata"]["uid"], container, options)

        if asked_for(request.headers):
            upgrade = as_websocket(request, log_messages.PROTOCOLS)
            speak = partial(log_messages.pump, pieces=pieces, protocol=upgrade.protocol)
            return self.tasks.upgraded(upgrade, speak)

        async def pump(stream: Stream) -> None:
            async for piece in pieces:
                if not stream.write(frame(piece)) or (stream.stalled and not await stream.drain()):
                    return
            stream.finish()

        return Streaming(self.tasks.starting(pump), "text/plain")

    def _command(self, request: Request, target: Target, query: Query) -> Response | Streaming:
        from seamark.api.streaming import channels, choosing, commands

        assert target.subresource is not None
        exec = target.subresource.name == "exec"
        pod = self._pod(target)
        container = choosing.container_of(pod, first(query, "container"))
        choosing.check_can_run(pod, "exec into" if exec else "attach")
        command = choosing.command_of(query, exec=exec)
        pods = self._pods(target, pod)
        uid = pod["metadata"]["uid"]
        pods.check_open(uid, container)
        upgrade = as_either(request, channels.IN_MESSAGES, channels.IN_STREAMS)
        if isinstance(upgrade, Response):
            return upgrade
        protocol = upgrade.protocol

        async def converse(socket: Socket) -> None:
            opened = channels.channels_of(socket, protocol)
            await commands.converse(opened, command, partial(pods.open, uid, container, command))

        return self.tasks.upgraded(upgrade, converse)

    def _forward(self, request: Request, target: Target, query: Query) -> Response | Streaming:
        from seamark.api.streaming import choosing, forwarding

        pod = self._pod(target)
        choosing.check_can_run(pod, "forward a port of")
        dial = partial(self._pods(target, pod).dial, pod["metadata"]["uid"])
        upgrade = as_either(request, forwarding.IN_WEBSOCKETS, forwarding.IN_SPDY)
        if isinstance(upgrade, Response):
            return upgrade
        if upgrade.protocol == forwarding.TUNNELLED or upgrade.socket is not WebSocket:
            return self.tasks.upgraded(upgrade, partial(forwarding.streams, dial=dial))
        ports = forwarding.ports_of(query)
        return self.tasks.upgraded(upgrade, partial(forwarding.channels, dial=dial, ports=ports))
