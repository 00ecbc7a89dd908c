"""What all containers of a Pod share on this machine: its network, its PID namespace, its directory and its volumes."""

from __future__ import annotations

import asyncio
import shutil
import signal
from pathlib import Path

from seamark.nodes.running.host import Host
from seamark.nodes.running.pod_status import Sandbox
from seamark.nodes.running.preparing import resources, security
from seamark.nodes.running.preparing.starting import Home, holder
from seamark.nodes.running.spec import PodToRun


def namespace_of(pod: PodToRun) -> str:
    """The name of a Pod's namespaces: its own, or its node's if it shares that network."""
    return f"node/{pod.spec.node_name}" if pod.spec.host_network else pod.metadata.uid


class PodHome:
    """Makes it when the first container starts, keeps its volumes up to date, and removes it in the end.

    Each method is given the Pod as it is now, because its spec may change.
    """

    def __init__(self, host: Host, folder: Path, sandbox: Sandbox) -> None:
        self._host = host
        self.folder = folder
        self._sandbox = sandbox
        self._one_at_a_time = asyncio.Lock()
        self._made: Home | None = None
        self._connected = False
        self._holder = ""  # the process that holds the PID namespace of all containers

    @property
    def is_made(self) -> bool:
        return self._made is not None

    async def settle(self, pod: PodToRun) -> Home:
        """Make what is not there yet; raises ``Unmakeable`` and ``OSError``."""
        async with self._one_at_a_time:
            if not self._connected and not pod.spec.host_network:
                await self._host.network.add_pod(
                    pod.metadata.uid,
                    pod.spec.node_name,
                    self._sandbox.pod_ips,
                    self._host.host_name(pod),
                    settings=security.settings(pod.spec.security_context),
                    shares_memory=pod.spec.host_ipc,
                )
            self._connected = True
            if (process := holder(pod)) and not self._holder:
                await self._host.machine.hold(process, resources.bound(self._host.processes))
                self._holder = process
            if self._made is None:
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._tell_limits(pod)
                self._made = Home(
                    self.folder,
                    namespace_of(pod),
                    self._host.host_name(pod),
                    await self._host.own_files(pod, self.folder, self._sandbox),
                    await self._host.volumes(pod, self.folder, self._sandbox),
                    self._host.machine.all_users,
                    self._host.processes,
                    self._host.nice,
                )
            return self._made

    def _tell_limits(self, pod: PodToRun) -> None:
        """One Event about all that the Pod asks for and does not get."""
        if ignored := security.not_honoured(pod, all_users=self._host.machine.all_users):
            words = f"Not honoured by a node that runs Pods as processes: {', '.join(ignored)}"
            self._host.tell(pod, "Warning", "NotHonoured", words)

    async def refresh(self, pod: PodToRun) -> None:
        """Bring the content of its volumes up to date; raises as ``settle`` does."""
        async with self._one_at_a_time:
            await self._host.volumes(pod, self.folder, self._sandbox)

    async def disconnect(self, pod: PodToRun) -> None:
        """Take its namespaces away, once its containers have ended."""
        if self._holder:
            await self._host.machine.signal(self._holder, signal.SIGKILL)
            self._holder = ""
        if self._connected and not pod.spec.host_network:
            self._connected = False
            await self._host.network.remove_pod(pod.metadata.uid, pod.spec.node_name)

    async def clear(self, pod: PodToRun) -> None:
        """Remove its files; only its logs stay."""
        await self._host.forget(pod)
        for name in ("volumes", "containers"):
            await asyncio.to_thread(shutil.rmtree, self.folder / name, ignore_errors=True)

    async def remove(self) -> None:
        """Remove its directory, with its logs."""
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)
