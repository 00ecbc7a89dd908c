"""What Pods that run may do, and what they are told that they cannot have."""

from __future__ import annotations

from pods_that_run import container, create, ended, events, first, log_of, pod, until

SCRIPT = """
import os
print(os.getuid(), [line.split()[1] for line in open("/proc/self/status") if line.startswith("CapBnd")][0])
try:
    open("/etc/seamark-was-here", "w")
except OSError as error:
    print(error.errno)
"""


async def test_a_restricted_container(daemon):
    cluster = daemon.api.cluster("apiserver")
    async with events(cluster, "NotHonoured") as messages:
        made = pod("restricted", SCRIPT, restartPolicy="Never")
        asked = {
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        await create(daemon, container(made, securityContext=asked))
        assert "securityContext.seccompProfile of container main" in await first(messages, "")
    found = await until(daemon, "restricted", ended)
    assert log_of(daemon, found) == ["0 0000000000000000", "30"]  # EROFS


async def test_the_whole_host_name(daemon):
    script = "import os, socket; print(socket.gethostname(), os.environ['HOSTNAME'], open('/etc/hostname').read())"
    names = {"hostname": "web", "subdomain": "all", "setHostnameAsFQDN": True}
    await create(daemon, pod("named", script, restartPolicy="Never", **names))
    found = await until(daemon, "named", ended)
    assert set(log_of(daemon, found)[0].split()) == {"web.all.default.svc.cluster.local"}


async def test_root_that_is_refused(daemon):
    cluster = daemon.api.cluster("apiserver")
    async with events(cluster, "Failed") as messages:
        made = pod("root", "", securityContext={"runAsNonRoot": True})
        await create(daemon, container(made, securityContext={"runAsUser": 0}))
        assert (await first(messages, "root")).startswith("Error: container's runAsUser breaks non-root policy")
