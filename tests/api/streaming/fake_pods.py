"""Pods whose commands echo their input, for tests of the ways into them; and a client of those ways."""

from __future__ import annotations

import asyncio
import contextlib

import aiohttp
from served import ADMIN

from seamark import errors
from seamark.access.pod_streams import STDERR, STDOUT
from seamark.api.http.wire.listener import Listener

NODE = "node-1"


class Echo:
    """What comes in goes out; resizes are told on the other output; it ends with its input, with code ``code``."""

    def __init__(self, code=0):
        self.outputs = {STDOUT: asyncio.Queue(), STDERR: asyncio.Queue()}
        self.code = asyncio.get_running_loop().create_future()
        self.wanted = code
        self.closed = asyncio.Event()

    async def read(self, stream):
        return await self.outputs[stream].get()

    async def write(self, data):
        await self.outputs[STDOUT].put(data)

    def end_input(self):
        for queue in self.outputs.values():
            queue.put_nowait(b"")
        self.code.set_result(self.wanted)

    def resize(self, width, height):
        self.outputs[STDERR].put_nowait(f"{width}x{height}".encode())

    async def ended(self):
        return await asyncio.shield(self.code)

    async def close(self):
        self.closed.set()


class FakePods:
    """Every Pod runs; port 1 refuses, the others are at the address ``server``; ``elsewhere`` is out of reach."""

    def __init__(self):
        self.sessions = []
        self.asked = []
        self.server = None
        self.followed = asyncio.Event()
        self.measurement = None

    def measured(self):
        return self.measurement

    def runs(self, pod):
        return True

    async def logs(self, pod, container, options):
        self.asked.append((container, options))
        yield b"first\n"
        if options.follow:
            try:
                await asyncio.Event().wait()
            finally:
                self.followed.set()

    def check_open(self, pod, container):
        if container == "waits":
            raise errors.InternalError(f'unable to upgrade connection: container not found ("{container}")')

    async def open(self, pod, container, command):
        self.asked.append((container, command))
        if command.words == ("missing",):
            raise FileNotFoundError(2, "No such file or directory")
        if command.words == ("refused",):
            raise errors.NotFound("pod does not exist")
        session = Echo(int(command.words[-1]) if command.words else 0)
        self.sessions.append(session)
        return session

    async def dial(self, pod, port):
        if port == 1:
            raise ConnectionRefusedError(111, "Connection refused")
        return await asyncio.open_connection(*self.server)

    async def reach(self, address, port, *, tls=False):
        self.asked.append((address, port, tls))
        return None if self.server is None else await asyncio.open_connection(*self.server)


def pod(name, *containers, phase="Running", **spec):
    status = [{"name": each, "state": {"running": {}}, "restartCount": 0} for each in containers]
    return {
        "metadata": {"name": name},
        "spec": {"nodeName": NODE, "containers": [{"name": each, "image": "x"} for each in containers], **spec},
        "status": {
            "phase": phase,
            "containerStatuses": status,
            "podIP": "10.244.0.5",
            "podIPs": [{"ip": "10.244.0.5"}],
        },
    }


async def put(api, made):
    """Create the Pod, then write its status as a kubelet does."""
    base = f"/api/v1/namespaces/{made['metadata'].get('namespace', 'default')}/pods"
    await api.post(base, made)
    current = await api.get(f"{base}/{made['metadata']['name']}")
    await api.put(f"{base}/{made['metadata']['name']}/status", {**current, "status": made["status"]})


@contextlib.asynccontextmanager
async def listening(api, token=ADMIN):
    """A client session to the server; paths are relative to the Pods of the default namespace."""
    listener = Listener(api.api.application, tls=None, admit=api.api.application.admit)
    await listener.open("127.0.0.1", 0)
    host, port = listener.address[:2]
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(f"http://{host}:{port}", headers=headers) as session:
        session.server, session.listener = f"http://{host}:{port}", listener
        yield session
    api.api.connecting.tasks.end()
    await listener.close()
