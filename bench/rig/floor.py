"""The minimal cost of a write: the API server's HTTP protocol, TLS and SQLite store without anything of Kubernetes.

Every POST is one durable write.  Prints its port once it serves, then serves until killed.
"""

from __future__ import annotations

import asyncio
import sys
from itertools import count
from pathlib import Path

import msgspec
import uvloop

from seamark.api.certificates import Authority
from seamark.api.http.wire.listener import Listener
from seamark.api.http.wire.messages import Request, Response
from seamark.store.opening import open_store
from seamark.store.protocol import Write


async def main() -> None:
    directory = Path(sys.argv[1])
    authority = Authority(directory)
    authority.prepare(["localhost", "127.0.0.1"])
    store = open_store(f"sqlite:///{directory / 'floor.db'}")
    await store.open()
    numbers = count()

    async def handle(request: Request) -> Response:
        value = msgspec.json.encode(msgspec.json.decode(request.body))
        await store.commit([Write(f"/floor/{next(numbers)}", value)])
        return Response(201, value)

    listener = Listener(handle, tls=authority.tls())
    await listener.open("127.0.0.1", 0)
    print(listener.address[1], flush=True)
    await asyncio.Event().wait()


uvloop.run(main())
