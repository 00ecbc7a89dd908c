"""Pods that run, in a whole daemon: processes, addresses, DNS and Services of a real kernel."""

from __future__ import annotations

import os
import platform
import time

from pods_that_run import SERVER, log_of, pod, running, until

from seamark.clock import SystemClock
from seamark.kinds.resource import CRON_JOBS, JOBS, NODES, PODS, SERVICES
from seamark.nodes.simulated import control
from seamark.rules.objects.pod import Pod

CLIENT = """
import socket, sys
seen = set()
while len(seen) < 2:
    try:
        with socket.create_connection(("web", 80), timeout=10) as connection:
            seen.add(connection.makefile().read().strip())
    except ConnectionRefusedError:  # one does not listen yet
        pass
print(*sorted(seen))
"""


async def test_a_service_of_pods_that_run(daemon):
    """Two servers behind a Service, found by its name through cluster DNS, balanced by the kernel."""
    cluster = daemon.api.cluster("apiserver")
    service = {
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
    }
    await cluster.create(SERVICES, service, namespace="default")
    for name in ("web-1", "web-2"):
        await cluster.create(PODS, pod(name, SERVER, labels={"app": "web"}), namespace="default")
    for name in ("web-1", "web-2"):
        made = await until(daemon, name, lambda found: found is not None and found.ready)
        assert made.status.phase == "Running"
    await cluster.create(PODS, pod("client", CLIENT, restartPolicy="OnFailure"), namespace="default")
    done = await until(daemon, "client", lambda found: found is not None and found.finished)
    assert done.status.phase == "Succeeded"
    assert log_of(daemon, done)[-1] == "web-1 web-2"


ELSEWHERE = """
import socket, sys
seen = []
while len(seen) < 12:
    try:
        with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10) as connection:
            seen.append(connection.makefile().read().strip())
    except ConnectionRefusedError:  # the proxy does not know the port yet
        pass
print(*sorted(set(seen)))
"""


async def test_a_pod_reaches_the_local_endpoints_of_another_node(daemon):
    """By a node port with the policy Local, which is for its own Pods only a short way to all endpoints."""
    cluster = daemon.api.cluster("apiserver")
    spec = {"type": "NodePort", "externalTrafficPolicy": "Local", "selector": {"app": "web"}}
    service = {"metadata": {"name": "web"}, "spec": {**spec, "ports": [{"port": 80, "targetPort": 8080}]}}
    made = await cluster.create(SERVICES, service, namespace="default")
    for number in (1, 2):
        server = pod(f"web-{number}", SERVER, labels={"app": "web"}, nodeName=f"node-{number}")
        await cluster.create(PODS, server, namespace="default")
    for number in (1, 2):
        served = await until(daemon, f"web-{number}", lambda found: found is not None and found.ready)
    client = pod("client", ELSEWHERE, nodeName="node-1", restartPolicy="Never")
    client["spec"]["containers"][0]["args"] = [served.status.host_ip, str(made["spec"]["ports"][0]["nodePort"])]
    await cluster.create(PODS, client, namespace="default")
    done = await until(daemon, "client", lambda found: found is not None and found.finished)
    assert (done.status.phase, log_of(daemon, done)) == ("Succeeded", ["web-2"])


HEALTH = """
import sys, urllib.error, urllib.request
def ask(host):
    try:
        return urllib.request.urlopen(f"http://{host}:{sys.argv[1]}/healthz", timeout=10).status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:  # the proxy has not heard of the Service yet
        return 0
while (found := [ask(host) for host in sys.argv[2:]]) != [503, 200]:
    print(*found, flush=True)
"""


async def test_a_load_balancer_learns_which_nodes_have_endpoints(daemon):
    cluster = daemon.api.cluster("apiserver")
    spec = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "selector": {"app": "web"}}
    service = {"metadata": {"name": "web"}, "spec": {**spec, "ports": [{"port": 80, "targetPort": 8080}]}}
    made = await cluster.create(SERVICES, service, namespace="default")
    hosts = []
    for number in (1, 2):
        labels = {"app": "web"} if number == 2 else {}
        server = pod(f"web-{number}", SERVER, labels=labels, nodeName=f"node-{number}")
        await cluster.create(PODS, server, namespace="default")
        found = await until(daemon, f"web-{number}", lambda found: found is not None and found.ready)
        hosts.append(found.status.host_ip)
    client = pod("client", HEALTH, restartPolicy="Never")
    client["spec"]["containers"][0]["args"] = [str(made["spec"]["healthCheckNodePort"]), *hosts]
    await cluster.create(PODS, client, namespace="default")
    done = await until(daemon, "client", lambda found: found is not None and found.finished)
    assert done.status.phase == "Succeeded"


async def test_a_node_tells_the_system_of_this_machine(daemon):
    node = await daemon.api.cluster("apiserver").get(NODES, "node-1")
    assert node["status"]["nodeInfo"]["kernelVersion"] == platform.release()
    assert node["status"]["nodeInfo"]["osImage"] not in ("", "Seamark")


async def test_a_pod_that_fails_and_one_without_an_image(daemon):
    cluster = daemon.api.cluster("apiserver")
    await cluster.create(PODS, pod("fails", "raise SystemExit(3)", restartPolicy="Never"), namespace="default")
    failed = await until(daemon, "fails", lambda found: found is not None and found.finished)
    (status,) = failed.status.container_statuses
    assert (failed.status.phase, status.state.terminated.exit_code) == ("Failed", 3)
    unknown = pod("unknown", "")
    unknown["spec"]["containers"][0]["image"] = "nowhere"
    await cluster.create(PODS, unknown, namespace="default")
    waiting = await until(daemon, "unknown", lambda f: f is not None and _waits(f) == "ErrImagePull")
    assert "--image 'nowhere=" in waiting.status.container_statuses[0].state.waiting.message


def _waits(found):
    states = [each.state.waiting for each in found.status.container_statuses]
    return states[0].reason if states and states[0] is not None else ""


MANY = """
import os, time
print(os.nice(0), flush=True)
for _ in range(12):
    if not os.fork():
        break
time.sleep(1000)
"""


async def test_a_container_with_too_many_processes_is_ended(tmp_path):
    async with running(tmp_path, processes=10) as daemon:
        cluster = daemon.api.cluster("apiserver")
        await cluster.create(PODS, pod("many", MANY, restartPolicy="Never"), namespace="default")
        failed = await until(daemon, "many", lambda found: found is not None and found.finished)
        how = failed.status.container_statuses[0].state.terminated
        assert (failed.status.phase, how.reason, how.exit_code, how.signal) == ("Failed", "TooManyProcesses", 137, 9)
        assert how.message == "the container had 13 processes and threads of 10"
        assert log_of(daemon, failed) == [str(min(19, os.nice(0) + 5))]  # how nice it is


async def test_of_the_files_of_a_pod_that_is_over_only_its_logs_stay(daemon):
    cluster = daemon.api.cluster("apiserver")
    writes = pod("writes", "open('/data/file', 'w').write('x'); print('done')", restartPolicy="Never")
    writes["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}]
    writes["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    await cluster.create(PODS, writes, namespace="default")
    done = await until(daemon, "writes", lambda found: found is not None and found.finished)
    folder = daemon.data_dir / "pods/pods" / done.metadata.uid
    assert log_of(daemon, done) == ["done"]
    assert not (folder / "volumes").exists()
    assert not (folder / "containers").exists()


async def test_a_deleted_pod_is_ended_and_gone(daemon):
    cluster = daemon.api.cluster("apiserver")
    await cluster.create(PODS, pod("web", SERVER), namespace="default")
    await until(daemon, "web", lambda found: found is not None and found.ready)
    await cluster.delete(PODS, "web", namespace="default")
    await until(daemon, "web", lambda found: found is None)


async def test_a_node_that_is_switched_off_and_on(daemon):
    """Its processes end, and start again when it is back; Pods of another node do not notice."""
    cluster = daemon.api.cluster("apiserver")
    for number in (1, 2):
        await cluster.create(PODS, pod(f"web-{number}", SERVER, nodeName=f"node-{number}"), namespace="default")
    before = [
        await until(daemon, f"web-{number}", lambda found: found is not None and found.ready) for number in (1, 2)
    ]
    await control.stop(cluster, "node-1")
    await until(daemon, "web-1", lambda found: found is not None and not found.ready)
    await control.start(cluster, "node-1")
    again = await until(daemon, "web-1", lambda found: found is not None and found.ready and found.restarts)
    assert again.ips == before[0].ips
    assert (await until(daemon, "web-2", lambda found: found is not None)).restarts == 0


async def test_the_pod_of_a_cron_job_runs_to_completion(daemon, monkeypatch):
    """The time is set back to half a second before a full minute."""
    back = time.time() % 60 + 0.5
    monkeypatch.setattr(SystemClock, "time", staticmethod(lambda: time.time() - back))
    cluster = daemon.api.cluster("apiserver")
    template = {"spec": pod("", "print('ran')", restartPolicy="Never")["spec"]}
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}}
    await cluster.create(CRON_JOBS, {"metadata": {"name": "tick"}, "spec": spec}, namespace="default")
    version = (await cluster.list(JOBS, namespace="default")).version
    async for change in cluster.watch(JOBS, since=version, namespace="default"):
        if change.type != "BOOKMARK" and (change.object.get("status") or {}).get("completionTime"):
            break
    (ran,) = (await cluster.list(PODS, namespace="default", as_=Pod)).items
    assert (ran.status.phase, log_of(daemon, ran)) == ("Succeeded", ["ran"])
    assert change.object["metadata"]["ownerReferences"][0]["name"] == "tick"
