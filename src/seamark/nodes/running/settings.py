"""The settings of Pods that run: whether they do, what images are, where their files are."""

from __future__ import annotations

from typing import Annotated, Literal

from seamark.kinds.values.quantity import QuantityError, measure
from seamark.nodes.running.preparing import images
from seamark.settings import Section, setting

LEAST_PRIORITY = 19


class PodSettings(Section, frozen=True):
    """How the Pods of the nodes exist: simulated, or as processes of this machine."""

    mode: Annotated[
        Literal["simulated", "processes", "chosen"],
        setting(
            "`simulated` Pods have a status and nothing else; `processes` run on this machine; `chosen`: those run "
            "that ask for it, or whose node does.",
            "--pods HOW",
        ),
    ] = "simulated"
    images: Annotated[
        tuple[str, ...],
        setting(
            "What images are, as `PATTERN=WHAT`: `host` for this machine's own file system, a program of it (`/bin/x "
            "ARGUMENTS`), a directory used as root, an OCI layout or archive on disk.",
            "--image PATTERN=WHAT",
        ),
    ] = ()

    processes: Annotated[
        int, setting("How many processes and threads a container may have; one with more is ended. 0: any number.")
    ] = 400

    nice: Annotated[
        int,
        setting("By how much Pods give way to other programs, this daemon first, when all CPUs are busy: 0 to 19."),
    ] = 5

    free_disk: Annotated[
        str,
        setting(
            "Images that no Pod uses are removed, and then the Pod that uses most is evicted, if less disk is free."
        ),
    ] = "100Mi"

    @property
    def run(self) -> bool:
        """Whether there may be Pods that run."""
        return self.mode != "simulated"

    def __post_init__(self) -> None:
        images.parse(self.images)
        try:
            measure(self.free_disk)
        except QuantityError as error:
            raise ValueError(f"free_disk {self.free_disk!r}: {error}") from None
        if self.processes < 0:
            raise ValueError("processes must be 0 or more")
        if not 0 <= self.nice <= LEAST_PRIORITY:
            raise ValueError(f"nice must be from 0 to {LEAST_PRIORITY}")
