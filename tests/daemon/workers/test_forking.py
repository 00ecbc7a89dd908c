"""The processes for workers: they get their sockets, are replaced, and none outlives the main process."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator

import pytest

from seamark.daemon.workers import Birth, Board, Forker, Program, forking

WORKERS = 3
# What a new program does: the same as ``greet``.
PROGRAM = f"""
import os, sys
from seamark.daemon.workers import Board, introduced

def greet(told, memory, birth):
    Board({WORKERS}, memory).numbers[birth.number] = os.getpid()
    channel = birth.channel
    channel.sendall(told + b" %d at %d" % (birth.number, birth.address[1]))
    channel.recv(1)

introduced(int(sys.argv[1]), greet)
"""
AGAIN = Program((sys.executable, "-c", PROGRAM), b"again")


def greet(birth: Birth, board: Board) -> None:
    """What the workers of these tests do: say who they are, and wait for the end of their channel."""
    channel = birth.channel
    board.numbers[birth.number] = os.getpid()
    channel.sendall(f"{birth.number} at {birth.address[1]}".encode())
    birth.connections.sendall(b"open")
    channel.recv(1)


@pytest.fixture
def forker() -> Iterator[Forker]:
    made = Forker(greet, AGAIN, WORKERS)
    yield made
    made.end()


def start(forker: Forker, number: int) -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    connections, taking = socket.socketpair()
    with theirs, taking:
        forker.fork(Birth(number, ("127.0.0.1", 6443)), theirs, taking)
    return ours, connections


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_worker_is_given_its_sockets_and_shares_the_board(forker: Forker) -> None:
    (first, taking), (second, other) = start(forker, 1), start(forker, 2)
    with first, taking, second, other:
        assert taking.recv(4) == other.recv(4) == b"open"
        assert first.recv(100) == b"1 at 6443"
        assert second.recv(100) == b"2 at 6443"
        assert len({forker.board.numbers[1], forker.board.numbers[2], os.getpid()}) == 3


def test_a_worker_that_ended_is_replaced_by_a_new_program(forker: Forker) -> None:
    for number in (1, 2):
        channel, taking = start(forker, number)
        with channel, taking:
            assert channel.recv(100)
    ended = forker.board.numbers[1]
    channel, taking = start(forker, 1)
    with channel, taking:
        assert channel.recv(100) == b"again 1 at 6443"
        assert forker.board.numbers[1] not in (ended, os.getpid())
    forker.end()
    assert not alive(forker.board.numbers[1])


def test_those_that_never_began_end_too(forker: Forker) -> None:
    children = set(forker._children)
    assert len(children) == WORKERS - 1
    forker.end()
    assert not any(map(alive, children))


def test_one_that_does_not_end_is_ended(forker: Forker, monkeypatch: pytest.MonkeyPatch) -> None:
    channel, taking = start(forker, 1)
    with channel, taking:
        channel.recv(100)
        monkeypatch.setattr(forking, "END_SECONDS", 0.0)
        forker.end()
        assert not alive(forker.board.numbers[1])


@pytest.mark.parametrize("replaced", [False, True])
def test_none_outlives_a_main_process_that_is_killed(replaced: bool) -> None:
    """Here another process is the main one; a pipe that only its worker holds says when the worker is gone."""
    gone, held = os.pipe()
    ready, tell = os.pipe()
    main = os.fork()
    if not main:
        try:
            forker = Forker(lambda _, __: None if replaced else signal.pause(), AGAIN, 2)
            if replaced:
                start(forker, 1)
                os.set_inheritable(held, True)
            start(forker, 1)
            os.close(held)
            os.write(tell, b"x")
            signal.pause()
        finally:
            os._exit(1)
    os.close(held)
    assert os.read(ready, 1)
    os.kill(main, signal.SIGKILL)
    os.waitpid(main, 0)
    assert os.read(gone, 1) == b""
    for each in (gone, ready, tell):
        os.close(each)


def test_a_new_program_that_is_told_nothing_does_nothing() -> None:
    telling, told = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ran: list[Birth] = []
    memory = os.memfd_create("board")
    socket.send_fds(telling, [b"known"], [memory])
    telling.close()
    os.close(memory)
    child = os.fork()
    if not child:
        try:
            forking.introduced(told.detach(), lambda _, __, birth: ran.append(birth))
        finally:
            os._exit(len(ran))
    told.close()
    assert os.waitpid(child, 0)[1] == 0
