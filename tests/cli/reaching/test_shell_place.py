"""Where `seamark shell` is: in a container of a Pod that is named, or in a Pod of its own that does not stay."""

from __future__ import annotations

import argparse
import asyncio
from typing import cast

import pytest

from seamark.access.remote import RemoteCluster
from seamark.cli.reaching.shell import _place, main_container

ANNOTATION = "kubectl.kubernetes.io/default-container"


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ({}, "web"),
        ({"annotations": {ANNOTATION: "logs"}}, "logs"),
        ({"annotations": {ANNOTATION: "gone"}}, "web"),
    ],
)
def test_the_container_that_kubectl_would_take(metadata: dict[str, object], found: str) -> None:
    assert main_container({"metadata": metadata, "spec": {"containers": [{"name": "web"}, {"name": "logs"}]}}) == found


async def test_a_pod_that_is_being_made_when_the_shell_is_interrupted_does_not_stay() -> None:
    asked, answered = asyncio.Event(), asyncio.Event()
    deleted = []

    class Slow:
        async def create(self, *_: object, **__: object) -> dict[str, object]:
            asked.set()
            await answered.wait()
            return {"metadata": {"name": "shell-1"}, "spec": {"containers": [{"name": "shell"}]}}

        async def delete(self, _: object, name: str, **__: object) -> None:
            deleted.append(name)

    async def shell() -> None:
        async with _place(cast(RemoteCluster, Slow()), argparse.Namespace(inside="", namespace="default")):
            raise AssertionError("it was interrupted before")

    running = asyncio.create_task(shell())
    await asked.wait()
    running.cancel()
    await asyncio.sleep(0)
    answered.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert deleted == ["shell-1"]
