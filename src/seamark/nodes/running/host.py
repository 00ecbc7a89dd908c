"""What the life of a Pod needs of its node; :mod:`hosting` has it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol

from seamark.clock import Clock
from seamark.nodes.running.machine.machine import Machine
from seamark.nodes.running.network import Network
from seamark.nodes.running.pod_status import Sandbox
from seamark.nodes.running.preparing.environment import Around
from seamark.nodes.running.preparing.file_systems import Volume
from seamark.nodes.running.preparing.images import Image
from seamark.nodes.running.spec import Container, PodToRun
from seamark.nodes.running.streaming.measuring import Meter


class Host(Protocol):
    """A node and its machine: images, volumes, limits, and what environments refer to."""

    machine: Machine
    network: Network
    clock: Clock
    processes: int  # how many a container may have; 0 for any number
    nice: int  # by how much other programs of the machine come first
    meter: Meter

    def limited(self, pod: PodToRun, container: Container) -> str:
        """The path of the control group in which the container is limited, newly made; "" if there are none."""

    def ran_out_of_memory(self, group: str) -> bool:
        """Whether the kernel ended what ran in this group; the group is removed."""

    async def image(self, name: str) -> Image:
        """Raises ``NoImage``."""

    async def around(self, pod: PodToRun, sandbox: Sandbox) -> Around:
        """What environments may refer to."""

    async def volumes(self, pod: PodToRun, folder: Path, sandbox: Sandbox) -> Mapping[str, str]:
        """The Pod's volumes by name, each prepared at a path; raises ``Unmakeable``."""

    def host_name(self, pod: PodToRun) -> str:
        """What the kernel says as host name in the Pod."""

    def renewal(self, pod: PodToRun) -> float | None:
        """When a token of its volumes is to be renewed."""

    async def forget(self, pod: PodToRun) -> None:
        """The Pod is gone."""

    async def own_files(self, pod: PodToRun, folder: Path, sandbox: Sandbox) -> list[Volume]:
        """Files that every container of the Pod has: ``/etc/hosts`` and its like."""

    def tell(
        self, pod: PodToRun, kind: Literal["Normal", "Warning"], reason: str, message: str, container: str = ""
    ) -> None:
        """Record an Event."""
