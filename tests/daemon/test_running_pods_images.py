"""Images of Pods that run: unpacked from disk, or not there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from packed_images import CONFIG, folder, layer, layout
from pods_that_run import container, create, ended, events, first, log_of, pod, until


def shell_layer():
    """A layer with a shell of this machine, and the libraries that it needs."""
    said = subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=False).stdout
    paths = ["/bin/sh", *re.findall(r"(/\S+) \(", said)]
    files = ((path.lstrip("/"), Path(path).read_bytes()) for path in dict.fromkeys(paths))
    return layer(*files, folder("srv"), mode=0o755)


async def test_an_image_on_disk(daemon, tmp_path, monkeypatch):
    used = {"Entrypoint": ["/bin/sh", "-c"], "Cmd": ["echo $A $PWD"], "Env": ["A=1"], "WorkingDir": "/srv"}
    monkeypatch.setitem(CONFIG, "config", used)
    layout(tmp_path / "packed", shell_layer())
    made = pod("packed", "", restartPolicy="Never")
    del made["spec"]["containers"][0]["command"]
    await create(daemon, container(made, image="packed"))
    found = await until(daemon, "packed", ended)
    assert ended(found).exit_code == 0, ended(found)
    assert log_of(daemon, found) == ["1 /srv"]
    assert found.status.container_statuses[0].image_id.startswith("sha256:")


async def test_a_program_as_an_image(daemon, tmp_path):
    """Containers find it directly below the root, and its arguments are theirs."""
    program = tmp_path / "packed"
    program.write_text('#!/bin/sh\necho "$0" "$@"\n')
    program.chmod(0o755)
    made = container(pod("program", "", restartPolicy="Never"), image="packed", args=["netexec", "--port=80"])
    del made["spec"]["containers"][0]["command"]
    await create(daemon, made)
    found = await until(daemon, "program", ended)
    assert log_of(daemon, found) == ["/packed netexec --port=80"]


async def test_an_image_that_is_not_there(daemon):
    cluster = daemon.api.cluster("apiserver")
    async with events(cluster, "BackOff") as messages, events(cluster, "Failed") as failures:
        await create(daemon, container(pod("unknown", ""), image="nowhere"))
        assert (await first(failures, "nowhere")).startswith('Failed to pull image "nowhere": ')
        assert await first(failures, "Error") == "Error: ErrImagePull"
        assert await first(messages, "") == 'Back-off pulling image "nowhere"'
    waits = await until(daemon, "unknown", lambda found: found is not None and reason(found) == "ImagePullBackOff")
    said = waits.status.container_statuses[0].state.waiting.message
    assert said.startswith('Back-off pulling image "nowhere": ErrImagePull: ')
    await create(daemon, container(pod("never", ""), image="nowhere", imagePullPolicy="Never"))
    await until(daemon, "never", lambda found: found is not None and reason(found) == "ErrImageNeverPull")


def reason(found):
    states = [each.state.waiting for each in found.status.container_statuses]
    return states[0].reason if states and states[0] is not None else ""
