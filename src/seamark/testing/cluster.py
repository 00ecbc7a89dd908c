"""A whole Seamark in a thread of this process: started in milliseconds, gone without a trace."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from seamark.config import ApiSettings, Config
from seamark.daemon import EVERYTHING, Daemon, Part

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
    """A cluster of your own: ``with TestCluster() as cluster: …``.

    ``url``, ``token``, ``ca`` and ``kubeconfig`` are how clients reach it, ``dns`` is where it answers names.
    Nothing is kept: state lives in memory, files in a temporary directory.
    """

    __test__ = False  # pytest: this is no test

    def __init__(self, *, nodes: int = 0, parts: Sequence[Part] = EVERYTHING) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="seamark-"))
        self._config = Config(
            data_dir=str(self._folder),
            ephemeral=True,
            dns_port=0,
            api=ApiSettings(port=0),
            nodes={"count": nodes},
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
        # One task enters and leaves: a task group insists on that.
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
        """Host and port of its DNS, UDP and TCP."""
        assert self._daemon.dns is not None, "this cluster was started without DNS"
        host, port = self._daemon.dns.addresses[0]
        return host, port
