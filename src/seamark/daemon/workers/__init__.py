"""``--workers N``: N processes that serve one API, so that it can use as many cores.

The main process has the store, most other parts, and the listening socket.  It serves clients like the others do, and
hands each new connection to the process that has the fewest.  A worker is an API server like the main one: it has its
own copy of the state, made and followed through :mod:`seamark.store.relayed` (or from etcd), and validates and encodes
by itself; only its commits are ordered by the main process.  The first worker has the controllers.

- ``forking``: the processes of workers, forked at the start so that they share memory with the main process
- ``worker``: what a worker does
- ``pool``: the main process's side: keeps the workers running, hands connections to them, puts reports together
"""

from seamark.daemon.workers.forking import Birth, Forker, Program, introduced
from seamark.daemon.workers.pool import Forks, Workers
from seamark.daemon.workers.worker import Worker
from seamark.store.relayed import Board

__all__ = ["Birth", "Board", "Forker", "Forks", "Program", "Worker", "Workers", "introduced"]
