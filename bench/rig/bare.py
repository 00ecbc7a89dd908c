"""The upper limit for the API server: its HTTP protocol and TLS, answering fixed bytes.

Prints its port, then serves until killed.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec
import uvloop

from seamark.api.certificates import Authority
from seamark.api.http.wire.listener import Listener
from seamark.api.http.wire.messages import Request, Response


async def main() -> None:
    authority = Authority(Path(sys.argv[1]))
    authority.prepare(["localhost", "127.0.0.1"])
    fixed = b'{"kind":"Pod","padding":"' + b"x" * int(sys.argv[2]) + b'"}'

    def handle(request: Request) -> Response:
        if request.method == "POST":
            return Response(201, msgspec.json.encode(msgspec.json.decode(request.body)))
        return Response(200, fixed)

    listener = Listener(handle, tls=authority.tls())
    await listener.open("127.0.0.1", 0)
    print(listener.address[1], flush=True)
    await asyncio.Event().wait()


uvloop.run(main())
