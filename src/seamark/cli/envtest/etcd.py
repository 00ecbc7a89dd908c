"""What ``etcd`` of the directory for envtest runs: it says that it is healthy, and keeps nothing.

The API server keeps its objects in memory.  envtest waits for an etcd before it starts the API server, so there is one;
it is small, because each start of a test's control plane waits for it.
"""

from __future__ import annotations

import signal
import socket
import sys
from urllib.parse import urlsplit

ANSWERS = {
    b"/health": b'{"health":"true","reason":""}',
    b"/version": b'{"etcdserver":"3.6.0","etcdcluster":"3.6.0"}',
}
PATIENCE_SECONDS = 5.0


def main(arguments: list[str]) -> int:
    host, port = place(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        print(f"seamark: etcd cannot listen on {host}:{port}: {error.strerror}", file=sys.stderr)
        return 1
    with listening:
        while True:
            client, _ = listening.accept()
            serve(client)


def place(arguments: list[str]) -> tuple[str, int]:
    """The first address of ``--listen-client-urls``, where clients are to reach it."""
    urls = [word.partition("=")[2] for word in arguments if word.startswith("--listen-client-urls=")]
    found = urlsplit(urls[-1].split(",")[0] if urls else "http://127.0.0.1:2379")
    return found.hostname or "127.0.0.1", found.port or 2379


def serve(client: socket.socket) -> None:
    """Answer one request and close."""
    with client:
        client.settimeout(PATIENCE_SECONDS)
        try:
            head = client.recv(65536)
            path = head.split(b" ", 2)[1].partition(b"?")[0] if head.count(b" ") > 1 else b""
            client.sendall(answer(path))
        except OSError:
            return


def answer(path: bytes) -> bytes:
    body = ANSWERS.get(path)
    status = b"404 Not Found" if body is None else b"200 OK"
    head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    return head % (status, len(body or b"")) + (body or b"")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
