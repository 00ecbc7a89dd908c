"""Messages and open files over a Unix socket that keeps messages apart."""

from __future__ import annotations

import array
import os
import socket
from collections.abc import Sequence
from typing import Any

import msgspec

_INLINE, _BESIDE = b"m", b"f"
_LARGEST = 32 << 10  # what a message may be in the socket itself; a larger one goes into a file in memory
_MOST_FILES = 16


class Channel:
    """One end.  ``send`` and ``receive`` raise ``BlockingIOError`` on a socket that does not wait."""

    def __init__(self, opened: socket.socket) -> None:
        self.socket = opened

    @classmethod
    def pair(cls) -> tuple[socket.socket, socket.socket]:
        return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def send(self, message: Any, files: Sequence[int] = ()) -> None:
        content = msgspec.json.encode(message)
        if len(content) <= _LARGEST:
            self._send(_INLINE + content, files)
            return
        beside = os.memfd_create("message")
        try:
            with open(beside, "wb", closefd=False) as file:
                file.write(content)
            self._send(_BESIDE, [beside, *files])
        finally:
            os.close(beside)

    def _send(self, content: bytes, files: Sequence[int]) -> None:
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
        self.socket.sendmsg([content], control, socket.MSG_NOSIGNAL)

    def receive(self) -> tuple[bytes, list[int]] | None:
        """The next message and the files that came with it; None when the other end is gone."""
        try:
            content, files, _, _ = socket.recv_fds(self.socket, _LARGEST + 1, _MOST_FILES, socket.MSG_CMSG_CLOEXEC)
        except ConnectionError:
            return None
        if not content:
            return None
        if content[:1] == _INLINE:
            return content[1:], files
        with open(files.pop(0), "rb") as file:
            file.seek(0)
            return file.read(), files
