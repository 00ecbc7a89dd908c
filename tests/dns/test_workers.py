"""What the supervisor of several workers says for them; that they share a port is a journey."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from seamark.dns.config import DnsConfig
from seamark.dns.server import ListenError
from seamark.dns.workers import Channel, WorkerPool, merged

TEXT = """\
# HELP a_total About a.
# TYPE a_total counter
a_total 1
a_total{x="1"} 2
# HELP b About b.
# TYPE b gauge
b 0.5
"""


def test_metrics_of_all_workers_are_one_text() -> None:
    assert merged({0: TEXT, 1: TEXT.replace(" 2\n", " 3\n")}).splitlines() == [
        "# HELP a_total About a.",
        "# TYPE a_total counter",
        'a_total{worker="0"} 1',
        'a_total{x="1",worker="0"} 2',
        'a_total{worker="1"} 1',
        'a_total{x="1",worker="1"} 3',
        "# HELP b About b.",
        "# TYPE b gauge",
        'b{worker="0"} 0.5',
        'b{worker="1"} 0.5',
    ]


async def test_workers_that_do_not_run_are_not_ready() -> None:
    config = DnsConfig(listen=("127.0.0.1:0",), workers=2)
    pool = WorkerPool(config, kubeconfig="/nowhere/kubeconfig")
    async with pool.running():
        code, text = await pool.ready()
        assert code == 503
        assert text.count("\n") == 2
        assert "seamark_dns_worker_restarts_total" in await pool.metrics()
        assert len(set(pool.addresses)) == 1


async def test_a_status_address_in_use_is_one_plain_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = DnsConfig(listen=("127.0.0.1:0",), workers=2, status=f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(ExceptionGroup) as group:
            async with WorkerPool(config, kubeconfig="/nowhere/kubeconfig").running():
                pass
    assert group.group_contains(ListenError, match="cannot serve the status")


async def test_a_late_answer_is_not_taken_for_the_next() -> None:
    """A worker that starts slowly is asked in vain at first, and not for ever."""
    ours, theirs = socket.socketpair()
    channel = Channel(*await asyncio.open_unix_connection(sock=ours))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await channel.ask("ready")
    theirs.send(b"late\n")
    asked = asyncio.create_task(channel.ask("metrics"))
    theirs.send(b"in time\n")
    assert await asked == b"in time\n"
    channel.close()
    theirs.close()


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"listen": ()}])
def test_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"worker|listen"):
        DnsConfig(**wrong)
