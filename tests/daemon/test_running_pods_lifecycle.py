"""How containers of Pods that run begin and end: hooks, signals, grace periods, last messages."""

from __future__ import annotations

from pods_that_run import container, create, ended, events, first, pod, ready, until

from seamark.kinds.resource import PODS

FOREVER = "import signal; signal.sigwait([])"
IGNORES = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("/data/ready", "w").close()
while True: time.sleep(1000)
"""
CATCHES = """
import pathlib, signal, sys, time
def end(number, frame):
    found = pathlib.Path("/tmp/hook")
    open("/dev/termination-log", "w").write(f"signal {number}, " + found.read_text())
    sys.exit(7)
signal.signal(signal.SIGUSR1, end)
pathlib.Path("/tmp/set").touch()
while True: time.sleep(1000)
"""


def shell(words):
    return {"exec": {"command": ["/bin/sh", "-c", words]}}


async def test_a_process_that_does_not_catch_the_signal_ends_at_once(daemon):
    """The kernel drops SIGTERM for the first process of a PID namespace, unless the process says what to do."""
    cluster = daemon.api.cluster("apiserver")
    made = pod("sleeps", "", restartPolicy="Never", terminationGracePeriodSeconds=1000)
    await create(daemon, container(made, command=["sleep", "1000"]))
    await until(daemon, "sleeps", ready)
    await cluster.patch(PODS, "sleeps", {"spec": {"activeDeadlineSeconds": 1}}, namespace="default")
    found = await until(daemon, "sleeps", ended)
    assert ended(found).exit_code == 143
    over = await until(daemon, "sleeps", lambda found: found is not None and found.finished)
    assert (over.status.phase, over.status.reason) == ("Failed", "DeadlineExceeded")
    await cluster.delete(PODS, "sleeps", namespace="default")


async def test_hooks_and_the_stop_signal(daemon):
    """postStart runs before the container counts as ready, preStop before the signal, which the Pod chooses."""
    cluster = daemon.api.cluster("apiserver")
    hooks = {
        "postStart": shell("until [ -e /tmp/set ]; do sleep 0.05; done; echo begun > /tmp/hook"),
        "preStop": shell("echo ending >> /tmp/hook"),
    }
    made = pod("hooks", CATCHES, restartPolicy="Never", terminationGracePeriodSeconds=100, os={"name": "linux"})
    await create(daemon, container(made, lifecycle={**hooks, "stopSignal": "SIGUSR1"}))
    await until(daemon, "hooks", ready)
    how = ended(await until(daemon, "hooks", ended, after=cluster.delete(PODS, "hooks", namespace="default")))
    assert (how.exit_code, how.message) == (7, "signal 10, begun\nending\n")


async def test_a_post_start_hook_that_fails(daemon):
    cluster = daemon.api.cluster("apiserver")
    async with events(cluster, "FailedPostStartHook") as messages:
        made = pod("hook", FOREVER, restartPolicy="Never")
        await create(daemon, container(made, lifecycle={"postStart": shell("exit 3")}))
        assert await first(messages, "") == "PostStartHook failed"
    over = await until(daemon, "hook", lambda found: found is not None and found.finished)
    assert over.status.phase == "Failed"


async def test_a_pre_stop_hook_that_sleeps_takes_from_the_grace_period(daemon):
    cluster = daemon.api.cluster("apiserver")
    async with events(cluster, "FailedPreStopHook") as messages:
        made = container(pod("slow", FOREVER), lifecycle={"preStop": {"httpGet": {"port": 1}}})
        made["spec"]["terminationGracePeriodSeconds"] = 5
        await create(daemon, made)
        await until(daemon, "slow", ready)
        await cluster.delete(PODS, "slow", namespace="default")
        assert await first(messages, "") == "PreStopHook failed"
        await until(daemon, "slow", lambda found: found is None)


async def test_less_time_for_a_pod_that_is_deleted_again(daemon):
    cluster = daemon.api.cluster("apiserver")
    made = pod("stubborn", IGNORES, volumes=[{"name": "data", "emptyDir": {}}], terminationGracePeriodSeconds=1000)
    probe = {**shell("test -e /data/ready"), "periodSeconds": 1}
    await create(daemon, container(made, volumeMounts=[{"name": "data", "mountPath": "/data"}], readinessProbe=probe))
    await until(daemon, "stubborn", ready)
    async with events(cluster, "Killing") as messages:
        await cluster.delete(PODS, "stubborn", namespace="default")
        assert await first(messages, "") == "Stopping container main"
    await cluster.delete(PODS, "stubborn", namespace="default", grace_seconds=1)
    await until(daemon, "stubborn", lambda found: found is None)


async def test_the_log_as_last_message(daemon):
    made = pod("says", "print('why'); raise SystemExit(2)", restartPolicy="Never")
    await create(daemon, container(made, terminationMessagePolicy="FallbackToLogsOnError"))
    assert ended(await until(daemon, "says", ended)).message == "why\n"
    made = pod("silent", "print('fine')", restartPolicy="Never")
    await create(daemon, container(made, terminationMessagePolicy="FallbackToLogsOnError"))
    assert ended(await until(daemon, "silent", ended)).message == ""
