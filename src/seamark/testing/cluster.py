"""A whole Seamark in a thread of the current process: it starts in milliseconds and leaves no files behind."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from seamark.config import Profile, settled
from seamark.daemon import EVERYTHING, Component, Daemon

T = TypeVar("T")


class _Thread:
    """One event loop in a daemon thread, shared by all clusters of a process."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="seamark", daemon=True).start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()


_thread: _Thread | None = None


def _shared_thread() -> _Thread:
    global _thread
    if _thread is None:
        _thread = _Thread()
    return _thread


class TestCluster:
    """A private cluster: ``with TestCluster() as cluster: …``.

    Clients reach it by ``url``, ``token``, ``ca`` and ``kubeconfig``; ``dns`` is the address of its DNS server.
    Its state is in memory and its files are in a temporary directory, which ``stop`` removes.  With the profile
    ``plain`` there is only what a test makes; ``full`` is a cluster as it usually is, with RBAC and ServiceAccounts.
    """

    __test__ = False  # tells pytest not to collect this class

    def __init__(self, *, nodes: int = 0, profile: Profile = "plain", parts: Sequence[Component] = EVERYTHING) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="seamark-"))
        self._config = settled(
            {
                "data_dir": str(self._folder),
                "ephemeral": True,
                "profile": profile,
                "dns_port": 0,
                "api": {"port": 0},
                "nodes": {"count": nodes},
            }
        )
        self._parts = parts
        self._daemon: Daemon
        self._stop: asyncio.Event
        self._life: asyncio.Task[None]

    def start(self) -> TestCluster:
        _shared_thread().run(self._start())
        return self

    async def _start(self) -> None:
        self._daemon = Daemon(self._config, self._parts)
        self._stop = asyncio.Event()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._live(ready), name="test cluster")
        await ready

    async def _live(self, ready: asyncio.Future[None]) -> None:
        # The same task must enter and leave `running`, because it contains a task group.
        try:
            async with self._daemon.running():
                ready.set_result(None)
                await self._stop.wait()
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    def stop(self) -> None:
        _shared_thread().run(self._end())
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _end(self) -> None:
        self._stop.set()
        await self._life

    def __enter__(self) -> TestCluster:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return self._daemon.url

    @property
    def kubeconfig(self) -> Path:
        return self._daemon.kubeconfig_path

    @property
    def ca(self) -> Path:
        return self._folder / "pki" / "ca.crt"

    @property
    def token(self) -> str:
        return (self._folder / "pki" / "admin.token").read_text().strip()

    @property
    def dns(self) -> tuple[str, int]:
        """Host and port of the DNS server, for UDP and TCP."""
        assert self._daemon.dns_addresses, "this cluster was started without DNS"
        return self._daemon.dns_addresses[0]
