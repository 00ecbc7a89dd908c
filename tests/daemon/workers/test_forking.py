"""The process that forks workers: they get their sockets, and none outlives the main process."""

from __future__ import annotations

import os
import socket

import pytest

from seamark.daemon.workers import Birth, Board, Forker


def greet(birth: Birth, board: Board) -> None:
    """What the workers of these tests do: say who they are, and wait for the end of their channel."""
    channel = birth.channel
    board.numbers[birth.number] = os.getpid()
    channel.sendall(f"{birth.number} at {birth.address[1]}".encode())
    birth.connections.sendall(b"open")
    channel.recv(1)


@pytest.fixture
def forker() -> Forker:
    return Forker(greet, workers=3)


def start(forker: Forker, number: int) -> socket.socket:
    ours, theirs = socket.socketpair()
    connections, taking = socket.socketpair()
    forker.fork(Birth(number, ("127.0.0.1", 6443)), theirs, taking)
    theirs.close()
    taking.close()
    with connections:
        assert connections.recv(4) == b"open"
    return ours


def test_a_worker_is_given_its_sockets_and_shares_the_board(forker: Forker) -> None:
    with start(forker, 1) as first, start(forker, 2) as second:
        assert first.recv(100) == b"1 at 6443"
        assert second.recv(100) == b"2 at 6443"
        assert len({forker.board.numbers[1], forker.board.numbers[2], os.getpid(), forker.pid}) == 4
    forker.end()


def test_a_worker_that_ended_is_replaced_and_leaves_no_zombie(forker: Forker) -> None:
    for _ in range(2):
        with start(forker, 1) as channel:
            assert channel.recv(100)
            pid = forker.board.numbers[1]
            channel.shutdown(socket.SHUT_RDWR)
            assert channel.recv(1) == b""
    forker.end()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_when_the_main_process_ends_so_do_the_workers(forker: Forker, monkeypatch: pytest.MonkeyPatch) -> None:
    with start(forker, 1) as channel:
        channel.recv(100)
        forker._asking.close()  # as the kernel does it, when the main process is killed
        channel.close()
        os.waitpid(forker.pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(forker.board.numbers[1], 0)
