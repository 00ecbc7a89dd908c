"""The settings of Pods that run: whether they do, what images are, where their files are."""

from __future__ import annotations

from typing import Annotated, Literal

from seamark.nodes.running import images
from seamark.settings import Section, setting


class PodSettings(Section, frozen=True):
    """How the Pods of the nodes exist: simulated, or as processes of this machine."""

    mode: Annotated[
        Literal["simulated", "processes"],
        setting("`simulated` Pods have a status and nothing else; `processes` run on this machine.", "--pods HOW"),
    ] = "simulated"
    images: Annotated[
        tuple[str, ...],
        setting(
            "What images are, as `PATTERN=WHAT`: `host` for this machine's own file system, a directory used as root, "
            "an OCI layout or archive on disk.",
            "--image PATTERN=WHAT",
        ),
    ] = ()

    def __post_init__(self) -> None:
        images.parse(self.images)
