"""Many datagrams per system call: Linux's ``recvmmsg`` and ``sendmmsg`` through ctypes.

A query served from memory costs about 8 µs, most of it for two system calls.  Receiving and sending up to 64 datagrams
per call brings this close to a server written in C.  The kernel's structures are laid out by hand in one array of
64-bit words, because setting fields of ctypes structures would cost more than the saved calls.

    struct mmsghdr, as words:  0 name  1 name length  2 iovec  3 iovec count  4 control  5 control length  6 flags
                               7 length of the datagram
"""

from __future__ import annotations

import ctypes
import errno
import socket
import struct
import sys
from collections.abc import Callable, Sequence

BATCH = 64
SLOT = 4096  # longer queries are cut off; longer replies are sent one by one

_WORDS = 8
_NAME_ROOM = 32
_CONTROL_ROOM = 64
_HEADER = 16  # size of a control message's header: length, level and type
_DONT_WAIT = 0x40


def _load() -> tuple[Callable[..., int], Callable[..., int], Callable[[], int]] | None:
    if sys.platform != "linux" or sys.byteorder != "little" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    # PyDLL keeps the interpreter's lock: the calls never block, and releasing the lock would cost more than the call.
    library = ctypes.PyDLL(None, use_errno=True)
    try:
        receive, send = library.recvmmsg, library.sendmmsg
    except AttributeError:
        return None
    receive.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_void_p)
    send.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int)
    return receive, send, ctypes.get_errno


_CALLS = _load()
available = _CALLS is not None


class _Side:
    """The buffers of one direction: a header and a slot of bytes for each message."""

    def __init__(self, name_length: int, control_room: int) -> None:
        self._headers = (ctypes.c_uint64 * (BATCH * _WORDS))()
        self._vectors = (ctypes.c_uint64 * (BATCH * 2))()
        self._bytes = (ctypes.c_char * (BATCH * SLOT))()
        self._names = (ctypes.c_char * (BATCH * _NAME_ROOM))()
        self._controls = (ctypes.c_char * (BATCH * _CONTROL_ROOM))()
        self.address = ctypes.addressof(self._headers)
        self.words = memoryview(self._headers).cast("B").cast("Q")
        self.vectors = memoryview(self._vectors).cast("B").cast("Q")
        self.slots = _pieces(self._bytes, SLOT)
        self.names = _pieces(self._names, _NAME_ROOM)
        self.controls = _pieces(self._controls, _CONTROL_ROOM)
        self.name_addresses = [ctypes.addressof(self._names) + at * _NAME_ROOM for at in range(BATCH)]
        self.control_addresses = [ctypes.addressof(self._controls) + at * _CONTROL_ROOM for at in range(BATCH)]
        for at in range(BATCH):
            self.vectors[at * 2] = ctypes.addressof(self._bytes) + at * SLOT
            self.vectors[at * 2 + 1] = SLOT
            self.words[at * _WORDS : at * _WORDS + _WORDS] = (
                memoryview(
                    (ctypes.c_uint64 * _WORDS)(
                        self.name_addresses[at],
                        name_length,
                        ctypes.addressof(self._vectors) + at * 16,
                        1,
                        self.control_addresses[at] if control_room else 0,
                        control_room,
                        0,
                        0,
                    )
                )
                .cast("B")
                .cast("Q")
            )
        self.template = bytes(self.words)


def _pieces(array: ctypes.Array[ctypes.c_char], size: int) -> list[memoryview]:
    whole = memoryview(array).cast("B")
    return [whole[at * size : at * size + size] for at in range(BATCH)]


class Batch:
    """A batch of datagrams of one socket: call ``receive``, then ``reply`` to some, then ``send`` and ``renew``."""

    def __init__(self, sock: socket.socket, *, keep_source: bool) -> None:
        """``keep_source``, for a socket bound to all addresses: replies leave from the address the query came to."""
        assert _CALLS is not None, "this system has no recvmmsg"
        self._receive, self._send, self._errno = _CALLS
        self._sock = sock
        self._descriptor = sock.fileno()
        self._six = sock.family == socket.AF_INET6
        name_length = 28 if self._six else 16
        self._in = _Side(name_length, _CONTROL_ROOM if keep_source else 0)
        self._out = _Side(name_length, 0)
        self._keep_source = keep_source
        self._pending = 0
        self._lost = 0
        self._in_bytes = self._in.words.cast("B")
        # Public, because the hot path reads them directly.
        self.slots: Sequence[memoryview] = self._in.slots
        self.lengths = self._in.words[7::_WORDS]

    def receive(self) -> int:
        """Receive datagrams into ``slots``, with their ``lengths``; returns how many."""
        inside = self._in
        count = self._receive(self._descriptor, inside.address, BATCH, _DONT_WAIT, None)
        if count < 0:
            problem = self._errno()
            if problem not in (errno.EAGAIN, errno.EINTR, errno.ECONNREFUSED):
                raise OSError(problem, "recvmmsg failed")
            return 0
        return count

    def reply(self, to: int, data: bytes) -> None:
        """Add the reply to datagram number ``to`` to the outgoing batch."""
        out, at = self._out, self._pending
        size = len(data)
        if size > SLOT:
            try:
                self.send_alone(data, *self.sender(to))
            except OSError:
                self._lost += 1
            return
        out.slots[at][:size] = data
        out.vectors[at * 2 + 1] = size
        out.words[at * _WORDS] = self._in.name_addresses[to]
        if self._keep_source:
            self._address_from(to, at)
        self._pending = at + 1

    def send(self) -> int:
        """Send the outgoing batch; returns how many replies could not be sent."""
        pending, sent, lost = self._pending, 0, self._lost
        self._pending = self._lost = 0
        while sent < pending:
            address = self._out.address + sent * _WORDS * 8
            count = self._send(self._descriptor, address, pending - sent, _DONT_WAIT)
            if count <= 0:
                # Skip a reply that cannot be sent (no route back), so that the rest are sent.
                if self._errno() in (errno.EAGAIN, errno.ENOBUFS):
                    break
                sent += 1
                lost += 1
                continue
            sent += count
        return pending - sent + lost

    def renew(self, count: int) -> None:
        """Reset the headers of the first ``count`` datagrams, which receiving has changed."""
        end = count * _WORDS * 8
        self._in_bytes[:end] = self._in.template[:end]

    def sender(self, of: int) -> tuple[tuple[str, int] | tuple[str, int, int, int], bytes]:
        """The sender of a datagram, and the control data for replying from the address it was sent to."""
        name = bytes(self._in.names[of])
        port = int.from_bytes(name[2:4], "big")
        control = bytes(self._in.controls[of][: self._in.words[of * _WORDS + 5]]) if self._keep_source else b""
        if self._six:
            flow, scope = int.from_bytes(name[4:8], "big"), int.from_bytes(name[24:28], sys.byteorder)
            return (socket.inet_ntop(socket.AF_INET6, name[8:24]), port, flow, scope), control
        return (socket.inet_ntop(socket.AF_INET, name[4:8]), port), control

    def send_alone(self, data: bytes, address: tuple[str, int] | tuple[str, int, int, int], control: bytes) -> None:
        """Send a single reply: a long one, or one that had to wait for an upstream resolver."""
        ancillary = []
        if control:
            length, level, kind = struct.unpack_from("=QII", control)
            information = _without_interface(bytearray(control[_HEADER:length]), six=self._six)
            ancillary = [(level, kind, bytes(information))]
        self._sock.sendmsg([data], ancillary, 0, address)

    def _address_from(self, to: int, at: int) -> None:
        out, inside = self._out, self._in
        control = inside.controls[to]
        _without_interface(control[_HEADER:], six=self._six)
        out.words[at * _WORDS + 4] = inside.control_addresses[to]
        out.words[at * _WORDS + 5] = inside.words[to * _WORDS + 5]


def _without_interface(information: bytearray | memoryview, *, six: bool) -> bytearray | memoryview:
    """Clear the interface in packet information, because the route back may use another interface.

    It is kept for link-local addresses, which are ambiguous without an interface.
    """
    if not six:
        information[0:4] = b"\0\0\0\0"
    elif information[0] != 0xFE:
        information[16:20] = b"\0\0\0\0"
    return information
