"""kubectl against the server that our own tests of port-forwarding use.

It is what keeps our client and that server from agreeing on a mistake: kubectl speaks the real protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil

import pytest
from forwarded_cluster import KUBECONFIG, ask, forwarded_cluster


async def test_kubectl_forwards_through_the_server_of_our_tests(tmp_path):
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("there is no kubectl on this machine")
    async with forwarded_cluster() as world:
        await world.pod("web-1")
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG.format(url=world.front.url))
        process = await asyncio.create_subprocess_exec(
            kubectl,
            *("--kubeconfig", str(kubeconfig), "port-forward", "pod/web-1", ":8080", ":81"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        )
        try:
            said = []
            while len(said) < 4:
                line = (await process.stdout.readline()).decode()
                assert line, (await process.stderr.read()).decode()
                said.append(line)
            ports = [int(line.split()[2].rpartition(":")[2]) for line in said if "127.0.0.1" in line]
            for _ in range(2):
                assert await ask("127.0.0.1", ports[0]) == b"web-1:hello"
            assert await ask("127.0.0.1", ports[1]) == b""
            while b"dial tcp4 127.0.0.1:81: connect: connection refused" not in (
                line := await process.stderr.readline()
            ):
                assert line, "kubectl did not say why"
            assert len(world.front.tunnels) == 1
        finally:
            with contextlib.suppress(ProcessLookupError):  # kubectl ends by itself after an error of the node
                process.kill()
            await process.wait()
