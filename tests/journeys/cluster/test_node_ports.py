"""Node ports of ``seamark up``, as a user reaches them; also after it was killed."""

from __future__ import annotations

import http.server
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from commands import SEAMARK, Program
from seamark_process import Seamark
from waiting import until

from free_ports import free_node_port, reachable_address


class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def saying_hello(host: str) -> Iterator[int]:
    with http.server.ThreadingHTTPServer((host, 0), Hello) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


def manifest(host: str, port: int, node_port: int) -> str:
    slice = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "ports": [{"port": port}],
        "endpoints": [{"addresses": [host]}],
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": node_port}]},
    }
    return "\n---\n".join(json.dumps(each) for each in (service, slice))


def answer(port: int) -> bytes:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as response:
            found: bytes = response.read()
            return found
    except (urllib.error.URLError, ConnectionError):
        return b""


def test_a_node_port_answers_on_loopback_and_again_after_a_kill(tmp_path: Path) -> None:
    host, directory, at = reachable_address(), tmp_path / "data", free_node_port()
    seamark = Program(SEAMARK, {"KUBECONFIG": str(directory / "kubeconfig"), "HOME": str(tmp_path)})
    with saying_hello(host) as port:
        running = Seamark(directory, "--dns-port", "0", verb="up")
        try:
            assert "node ports   on 127.0.0.1" in "\n".join(running.lines)
            seamark("apply", "-f", "-", stdin=manifest(host, port, at))
            assert until(lambda: answer(at)) == b"hello"
        finally:
            running.kill()
        assert answer(at) == b""
        running = Seamark(directory, "--dns-port", "0", verb="up")
        try:
            assert answer(at) == b"hello"  # ready means that it is served
        finally:
            running.stop()
