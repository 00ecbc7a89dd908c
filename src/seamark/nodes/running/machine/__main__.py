"""How the helper enters its namespaces: ``python -m seamark.nodes.running.machine FD``, started by the daemon.

A process that enters a new PID namespace stays outside; its next child is process 1 inside.  So there are two
processes: this one waits for that child, and each ends with the other.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from contextlib import suppress
from typing import NoReturn

from seamark.linux import calls
from seamark.linux.links import Links
from seamark.nodes.running.machine.channel import Channel
from seamark.nodes.running.machine.helper import Helper, write_settings
from seamark.nodes.running.machine.messages import Ready, Refused

FORWARDING = {"net/ipv4/ip_forward": "1", "net/ipv6/conf/all/forwarding": "1"}


def main(descriptor: int) -> NoReturn:
    channel = Channel(socket.socket(fileno=descriptor))
    calls.die_with_parent(signal.SIGKILL)
    tried = "creating namespaces"
    try:
        user, group = os.geteuid(), os.getegid()
        calls.unshare(calls.NEW_USER)
        tried = "becoming root in the new user namespace"
        all_users = _take_users(channel, user, group)
        tried = "creating namespaces"
        calls.unshare(calls.NEW_MOUNTS | calls.NEW_HOSTNAME | calls.NEW_IPC | calls.NEW_PID | calls.NEW_NETWORK)
        child = os.fork()
    except OSError as error:
        channel.send(Refused(tried, error.errno or 0))
        os._exit(1)
    if child:
        channel.socket.close()
        for number in (signal.SIGINT, signal.SIGTERM):  # the daemon decides when the machine ends
            signal.signal(number, signal.SIG_IGN)
        os.waitpid(child, 0)
        os._exit(0)
    calls.die_with_parent(signal.SIGKILL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.setsid()
    try:
        own_processes = _settle()
    except OSError as error:
        channel.send(Refused(f"setting up ({error})", error.errno or 0))
        os._exit(1)
    channel.send(Ready(all_users, own_processes))
    with suppress(ConnectionError):  # the daemon ended while it was being answered
        Helper(channel).run()
    os._exit(0)


def _take_users(channel: Channel, user: int, group: int) -> bool:
    """Map users: all of them if we are root, which only a process outside may do; otherwise only our own, to root."""
    if user == 0:
        channel.socket.send(b"map")
        channel.socket.recv(1)
        return True
    for name, content in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(content)
    return False


def _settle() -> bool:
    """The machine's mounts stay its own, its network is switched on and forwards."""
    calls.mount("none", "/", flags=calls.RECURSIVE | calls.SLAVE)
    try:
        calls.mount("proc", "/proc", "proc", calls.NO_SUID | calls.NO_DEVICES | calls.NO_EXEC)
        own_processes = True
    except PermissionError:
        own_processes = False
    links = Links()
    links.up("lo")
    links.close()
    write_settings(FORWARDING)
    return own_processes


if __name__ == "__main__":
    main(int(sys.argv[1]))
