"""What upstream's conformance tests of nodes and storage ask of Pods, on one daemon whose Pods run."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest
import pytest_asyncio
from machines import unless_forbidden

from seamark.config import settled
from seamark.daemon import EVERYTHING, Daemon
from seamark.errors import NotFound
from seamark.kinds.resource import CONFIGMAPS, EVENTS, PODS, SECRETS
from seamark.nodes.running.machine.machine import Machine
from seamark.rules.objects.pod import Pod

NET_ADMIN = 1 << 12

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def here(tmp_path_factory):
    """A cluster, and whether its Pods may run as any user."""
    with unless_forbidden():
        machine = await Machine.start()
    await machine.close()
    folder = tmp_path_factory.mktemp("data")
    said = {
        "data_dir": str(folder),
        "ephemeral": True,
        "api": {"port": 0},
        "dns": {"listen": ["127.0.0.1:0"]},
        "userspace": {"enabled": False},
        "nodes": {"count": 1, "crash_backoff": 0.01},
        "pods": {"mode": "processes", "images": ["*=host"]},
    }
    async with Daemon(settled(said), EVERYTHING).running() as made:
        cluster = made.api.cluster("apiserver")
        yield SimpleNamespace(cluster=cluster, folder=folder, all_users=machine.all_users)


def container(script, name="main", **more):
    return {"name": name, "image": "here", "command": ["sh", "-c", script], **more}


async def create(here, name, *containers, labels=None, annotations=None, **spec):
    made = {
        "metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "containers": list(containers), **spec},
    }
    await here.cluster.create(PODS, made, namespace="default")


async def until(here, name, so):
    listing = await here.cluster.list(PODS, namespace="default", fields=f"metadata.name={name}", as_=Pod)
    for found in listing.items:
        if so(found):
            return found
    watch = here.cluster.watch(
        PODS, since=listing.version, namespace="default", fields=f"metadata.name={name}", as_=Pod
    )
    async for change in watch:
        if change.type != "BOOKMARK" and so(change.object):
            return change.object
    raise AssertionError("the watch ended")


def log_of(here, made, name="main", run=0):
    file = here.folder / "pods/pods" / made.metadata.uid / "logs" / name / f"{run}.log"
    return [line.split(" ", 3)[3] for line in file.read_text().splitlines()]


async def log_with(here, made, line, name="main"):
    """The lines, once this one is among them."""
    while line not in (lines := log_of(here, made, name)):
        await asyncio.sleep(0.02)
    return lines


async def output(here, name, script, *, volumes=(), mounts=(), container_more=None, **spec):
    """What a container wrote, once its Pod is over."""
    own = container(script, volumeMounts=list(mounts), **(container_more or {}))
    await create(here, name, own, volumes=list(volumes), **spec)
    done = await until(here, name, lambda pod: pod.finished)
    return log_of(here, done)


async def event(here, name, reason, saying=""):
    """The message of an Event about a Pod, once there is one that says this."""
    listing = await here.cluster.list(EVENTS, namespace="default")
    found = listing.items
    watch = here.cluster.watch(EVENTS, since=listing.version, namespace="default")
    while True:
        for each in found:
            if (each["involvedObject"]["name"], each["reason"]) == (name, reason) and saying in each["message"]:
                return each["message"]
        change = await anext(watch)
        found = [change.object] if change.type in ("ADDED", "MODIFIED") else []


def ended(pod, name="main"):
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return next((each.state.terminated for each in statuses if each.name == name), None)


# --- storage ---------------------------------------------------------------------------------------


async def test_an_empty_directory_is_shared_and_open_to_all(here):
    data = {"name": "data", "mountPath": "/data"}
    await create(
        here,
        "empty-shared",
        container("stat -c %a /data; until cat /data/file 2>/dev/null; do sleep 0.02; done", volumeMounts=[data]),
        container("echo hello > /data/new && mv /data/new /data/file", "other", volumeMounts=[data]),
        volumes=[{"name": "data", "emptyDir": {}}],
    )
    done = await until(here, "empty-shared", lambda pod: pod.finished)
    assert log_of(here, done) == ["777", "hello"]


async def test_an_empty_directory_in_memory(here):
    script = "stat -f -c %T /data; stat -c %a /data /data/part; touch /data/part/x; head -c 2000000 /dev/zero > /data/y"
    lines = await output(
        here,
        "empty-memory",
        script,
        volumes=[{"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}],
        mounts=[
            {"name": "data", "mountPath": "/data"},
            {"name": "data", "mountPath": "/part", "subPath": "part"},
        ],
    )
    assert lines[:3] == ["tmpfs", "777", "777"]
    assert "No space left" in lines[3]


async def test_volumes_belong_to_the_group_of_the_pod(here):
    if not here.all_users:
        pytest.skip("one user runs all Pods")
    await here.cluster.create(
        SECRETS, {"metadata": {"name": "grouped"}, "stringData": {"key": "value"}}, namespace="default"
    )
    token = {"serviceAccountToken": {"path": "token"}}
    lines = await output(
        here,
        "grouped",
        "for at in /data /memory /secret/key /token/token; do stat -L -c '%u %g %a' $at; done; cat /secret/key; id -G;"
        "touch /data/new; stat -c %g /data/new",
        volumes=[
            {"name": "data", "emptyDir": {}},
            {"name": "memory", "emptyDir": {"medium": "Memory"}},
            {"name": "secret", "secret": {"secretName": "grouped", "defaultMode": 0o440}},
            {"name": "token", "projected": {"sources": [token]}},
        ],
        mounts=[{"name": name, "mountPath": f"/{name}"} for name in ("data", "memory", "secret", "token")],
        securityContext={"runAsUser": 1000, "runAsGroup": 1002, "fsGroup": 1001},
    )
    assert lines[:4] == ["0 1001 2777", "0 1001 2777", "0 1001 440", "1000 1001 640"]
    assert lines[4:] == ["value1002 1001", "1001"]


async def test_content_with_modes_and_paths(here):
    content = {"metadata": {"name": "modes"}, "data": {"one": "1", "two": "2"}, "binaryData": {"raw": "AP8="}}
    await here.cluster.create(CONFIGMAPS, content, namespace="default")
    items = [{"key": "one", "path": "deep/er/one", "mode": 0o400}, {"key": "two", "path": "two"}]
    lines = await output(
        here,
        "modes",
        "cat /some/deep/er/one /some/two; echo; stat -L -c %a /some/deep/er/one /some/two /all/one; "
        "od -An -tx1 /all/raw; touch /all/new 2>&1; ls /none | wc -l",
        volumes=[
            {"name": "all", "configMap": {"name": "modes", "defaultMode": 0o440}},
            {"name": "some", "configMap": {"name": "modes", "items": items}},
            {"name": "none", "configMap": {"name": "nothing", "optional": True}},
        ],
        mounts=[{"name": name, "mountPath": f"/{name}"} for name in ("all", "some", "none")],
    )
    assert lines[:5] == ["12", "400", "644", "440", " 00 ff"]
    assert "Read-only file system" in lines[5]
    assert lines[6] == "0"


async def test_content_follows_its_sources(here):
    """A reader that follows the link ``..data`` sees all of the old content or all of the new."""
    for resource, name in ((CONFIGMAPS, "follows"), (SECRETS, "follows-secret")):
        field = "data" if resource is CONFIGMAPS else "stringData"
        await here.cluster.create(resource, {"metadata": {"name": name}, field: {"key": "old"}}, namespace="default")
    sources = [
        {"configMap": {"name": "follows"}},
        {"secret": {"name": "follows-secret", "items": [{"key": "key", "path": "secret"}]}},
        {"downwardAPI": {"items": [{"path": "label", "fieldRef": {"fieldPath": "metadata.labels['version']"}}]}},
        {"configMap": {"name": "later", "optional": True, "items": [{"key": "key", "path": "later"}]}},
    ]
    script = "cd /all; while :; do cat label key secret later 2>/dev/null | tr '\\n' ' '; echo .; sleep 0.05; done"
    await create(
        here,
        "follows",
        container(script, volumeMounts=[{"name": "all", "mountPath": "/all"}]),
        volumes=[{"name": "all", "projected": {"sources": sources}}],
        labels={"version": "1"},
    )
    made = await until(here, "follows", lambda pod: pod.ready)
    await log_with(here, made, "1oldold.")
    await here.cluster.patch(CONFIGMAPS, "follows", {"data": {"key": "new"}}, namespace="default")
    await here.cluster.patch(SECRETS, "follows-secret", {"data": {"key": "bmV3"}}, namespace="default")
    await here.cluster.create(CONFIGMAPS, {"metadata": {"name": "later"}, "data": {"key": "!"}}, namespace="default")
    await here.cluster.patch(PODS, "follows", {"metadata": {"labels": {"version": "2"}}}, namespace="default")
    await log_with(here, made, "2newnew!.")
    await here.cluster.delete(PODS, "follows", namespace="default", grace_seconds=0)


async def test_a_volume_that_is_not_there_yet(here):
    """The container goes on being created, and an Event says what is missing."""
    mount = {"name": "data", "mountPath": "/data"}
    await create(
        here,
        "waits",
        container("cat /data/key", volumeMounts=[mount]),
        volumes=[{"name": "data", "configMap": {"name": "comes-late"}}],
    )
    words = 'MountVolume.SetUp failed for volume "data" : configmap "comes-late" not found'
    assert await event(here, "waits", "FailedMount") == words
    made = await until(here, "waits", lambda pod: pod.status.container_statuses)
    assert made.status.container_statuses[0].state.waiting.reason == "ContainerCreating"
    content = {"metadata": {"name": "comes-late"}, "data": {"key": "here"}}
    await here.cluster.create(CONFIGMAPS, content, namespace="default")
    assert log_of(here, await until(here, "waits", lambda pod: pod.finished)) == ["here"]


async def test_parts_of_volumes(here):
    await here.cluster.create(
        CONFIGMAPS, {"metadata": {"name": "parts"}, "data": {"key": "value\n"}}, namespace="default"
    )
    name = {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    lines = await output(
        here,
        "parts",
        "cat /etc/resolv.conf; echo made > /own/file; find /data -type f; touch /fixed/x 2>&1",
        volumes=[{"name": "data", "emptyDir": {}}, {"name": "content", "configMap": {"name": "parts"}}],
        mounts=[
            {"name": "content", "mountPath": "/etc/resolv.conf", "subPath": "key"},
            {"name": "data", "mountPath": "/own", "subPathExpr": "logs/$(POD_NAME)"},
            {"name": "data", "mountPath": "/data"},
            {"name": "data", "mountPath": "/fixed", "readOnly": True},
        ],
        container_more={"env": [name]},
    )
    assert lines[:2] == ["value", "/data/logs/parts/file"]
    assert "Read-only" in lines[2]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("absolute", "/tmp", "must not be an absolute path"),
        ("unknown", None, 'missing value for "WHERE"'),
        ("upwards", "../..", "must not contain '..'"),
    ],
)
async def test_a_part_that_leads_elsewhere(here, name, value, words):
    env = [] if value is None else [{"name": "WHERE", "value": value}]
    mount = {"name": "data", "mountPath": "/data", "subPathExpr": "$(WHERE)"}
    await create(
        here,
        f"part-{name}",
        container("true", env=env, volumeMounts=[mount]),
        volumes=[{"name": "data", "emptyDir": {}}],
    )
    found = await until(here, f"part-{name}", _waiting_for("CreateContainerConfigError"))
    assert words in found.status.container_statuses[0].state.waiting.message
    await here.cluster.delete(PODS, f"part-{name}", namespace="default", grace_seconds=0)


def _waiting_for(reason):
    def so(pod):
        return any(each.state.waiting and each.state.waiting.reason == reason for each in pod.status.container_statuses)

    return so


async def test_a_link_does_not_lead_out_of_a_volume(here):
    data = {"name": "data", "mountPath": "/data"}
    await create(
        here,
        "link",
        container("cat /part/passwd", volumeMounts=[{**data, "mountPath": "/part", "subPath": "out"}]),
        initContainers=[container("ln -s /etc /data/out", "first", volumeMounts=[data])],
        volumes=[{"name": "data", "emptyDir": {}}],
    )
    done = await until(here, "link", lambda pod: pod.finished)
    assert "leads out of its volume" in ended(done).message


@pytest.mark.parametrize(
    ("kind", "fits"),
    [("", True), ("Directory", True), ("DirectoryOrCreate", True), ("File", False), ("Socket", False)],
)
async def test_kinds_of_host_paths(here, tmp_path, kind, fits):
    name = f"kind-{kind.lower() or 'any'}"
    path = tmp_path if kind == "Directory" or not fits else tmp_path / "new" / "er"
    volume = {"name": "data", "hostPath": {"path": str(path), "type": kind}}
    mount = {"name": "data", "mountPath": "/data"}
    await create(here, name, container("echo hello > /data/file", volumeMounts=[mount]), volumes=[volume])
    if fits:
        done = await until(here, name, lambda pod: pod.finished)
        assert (done.status.phase, (path / "file").read_text()) == ("Succeeded", "hello\n")
    else:
        assert "hostPath type check failed" in await event(here, name, "FailedMount")


async def test_a_socket_and_a_new_file_of_the_host(here, tmp_path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        lines = await output(
            here,
            "host-files",
            "test -S /s && echo socket; echo more > /f",
            volumes=[
                {"name": "s", "hostPath": {"path": str(tmp_path / "s"), "type": "Socket"}},
                {"name": "f", "hostPath": {"path": str(tmp_path / "f"), "type": "FileOrCreate"}},
            ],
            mounts=[{"name": "s", "mountPath": "/s"}, {"name": "f", "mountPath": "/f"}],
        )
    assert lines == ["socket"]
    assert (tmp_path / "f").read_text() == "more\n"


# --- nodes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "more", "script", "message"),
    [
        ("written", {}, "printf DONE > /dev/termination-log", "DONE"),
        ("elsewhere", {"terminationMessagePath": "/dev/custom"}, "printf DONE > /dev/custom", "DONE"),
        ("log", {"terminationMessagePolicy": "FallbackToLogsOnError"}, "printf DONE; exit 1", "DONE"),
        (
            "both",
            {"terminationMessagePolicy": "FallbackToLogsOnError"},
            "printf OK > /dev/termination-log; exit 1",
            "OK",
        ),
        ("success", {"terminationMessagePolicy": "FallbackToLogsOnError"}, "printf DONE", ""),
    ],
)
async def test_last_words(here, name, more, script, message):
    await create(here, f"words-{name}", container(script, **more))
    assert ended(await until(here, f"words-{name}", lambda pod: pod.finished)).message == message


async def test_variables_and_commands(here):
    env = [
        {"name": "FOO", "value": "foo"},
        {"name": "BAR", "value": "$(FOO);;$(BAR);;$$(FOO)"},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "MEMORY", "valueFrom": {"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}}},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
    ]
    own = {
        "name": "main",
        "image": "here",
        "command": ["sh", "-c", 'echo "$1 $BAR $CPU $MEMORY $NODE $LABEL"', "sh"],
        "args": ["$(FOO)-$(UNKNOWN)-$$(FOO)"],
        "env": env,
        "resources": {"limits": {"cpu": "1500m"}, "requests": {"memory": "32Mi"}},
    }
    await create(here, "variables", own, labels={"app": "x"})
    done = await until(here, "variables", lambda pod: pod.finished)
    assert log_of(here, done) == ["foo-$(UNKNOWN)-$(FOO) foo;;$(BAR);;$(FOO) 2 32 node-1 x"]


async def test_hosts_of_a_pod(here):
    aliases = [{"ip": "10.1.2.3", "hostnames": ["one", "two"]}]
    lines = await output(here, "hosts", "cat /etc/hosts; hostname", hostAliases=aliases, hostname="called")
    assert lines[0] == "# Kubernetes-managed hosts file."
    assert "10.1.2.3\tone\ttwo" in lines
    assert lines[-1] == "called"
    lines = await output(here, "hosts-of-node", "cat /etc/hosts", hostAliases=aliases, hostNetwork=True)
    assert lines[0] == "# Kubernetes-managed hosts file (host network)."
    assert set(Path("/etc/hosts").read_text().splitlines()) <= set(lines)
    assert lines[-1] == "10.1.2.3\tone\ttwo"


async def test_init_containers_run_first_and_in_order(here):
    data = {"name": "data", "mountPath": "/data"}
    await create(
        here,
        "ordered",
        container("echo main >> /data/order; cat /data/order", volumeMounts=[data]),
        initContainers=[container(f"echo {name} >> /data/order", name, volumeMounts=[data]) for name in ("one", "two")],
        volumes=[{"name": "data", "emptyDir": {}}],
    )
    done = await until(here, "ordered", lambda pod: pod.finished)
    assert (done.status.phase, log_of(here, done)) == ("Succeeded", ["one", "two", "main"])
    assert done.condition("Initialized").status == "True"


async def test_an_init_container_that_fails(here):
    await create(here, "unlucky", container("true"), initContainers=[container("exit 1", "first")])
    done = await until(here, "unlucky", lambda pod: pod.finished)
    assert (done.status.phase, ended(done, "first").exit_code) == ("Failed", 1)
    assert done.status.container_statuses[0].state.waiting.reason == "PodInitializing"
    assert done.condition("Initialized").status == "False"

    await create(
        here, "hopeless", container("true"), initContainers=[container("exit 1", "first")], restartPolicy="Always"
    )
    found = await until(here, "hopeless", lambda pod: _restarts(pod.status.init_container_statuses) >= 3)
    assert found.status.phase == "Pending"
    assert found.condition("Initialized").reason == "ContainersNotInitialized"
    await here.cluster.delete(PODS, "hopeless", namespace="default", grace_seconds=0)


def _restarts(statuses):
    return sum(each.restart_count for each in statuses)


async def test_hooks(here, tmp_path):
    volume = {"name": "data", "hostPath": {"path": str(tmp_path)}}
    hooks = {
        "postStart": {"exec": {"command": ["sh", "-c", "echo started >> /data/told"]}},
        "preStop": {"exec": {"command": ["sh", "-c", "echo stopping >> /data/told"]}},
    }
    own = container("sleep 1000", lifecycle=hooks, volumeMounts=[{"name": "data", "mountPath": "/data"}])
    await create(here, "hooks", own, volumes=[volume])
    await until(here, "hooks", lambda pod: pod.ready)
    assert (tmp_path / "told").read_text() == "started\n"
    await here.cluster.delete(PODS, "hooks", namespace="default")
    while await _there(here, "hooks"):
        await asyncio.sleep(0.02)
    assert (tmp_path / "told").read_text() == "started\nstopping\n"


async def _there(here, name):
    try:
        return await here.cluster.get(PODS, name, namespace="default")
    except NotFound:
        return None


async def test_a_liveness_probe_restarts_and_a_startup_probe_comes_first(here):
    def probe(script, failures):
        quick = {"periodSeconds": 1, "timeoutSeconds": 60, "failureThreshold": failures}
        return {"exec": {"command": ["sh", "-c", script]}, **quick}

    own = container(
        "touch /tmp/well; until test -e /tmp/begun; do sleep 0.02; done; rm /tmp/well; sleep 1000",
        startupProbe=probe("test -e /tmp/well && touch /tmp/begun", 1000),
        livenessProbe=probe("test -e /tmp/well", 1),
    )
    await create(here, "probed", own, restartPolicy="Always", terminationGracePeriodSeconds=0)
    found = await until(here, "probed", lambda pod: _restarts(pod.status.container_statuses) >= 1)
    assert found.status.container_statuses[0].last_state.terminated.exit_code == 137
    # The startup probe may have failed before: it can be run before the container's first command.
    assert await event(here, "probed", "Unhealthy", "Liveness probe failed")
    await here.cluster.delete(PODS, "probed", namespace="default", grace_seconds=0)


async def test_containers_that_see_each_others_processes(here):
    main, other = container("sleep 4321"), container("until pgrep -f 'sleep 432[1]'; do sleep 0.02; done", "other")
    await create(here, "shared", main, other, shareProcessNamespace=True)
    found = await until(here, "shared", lambda pod: ended(pod, "other"))
    assert int(log_of(here, found, "other")[0]) > 1
    await here.cluster.delete(PODS, "shared", namespace="default", grace_seconds=0)


async def test_a_container_that_looks_at_another(here):
    await create(here, "target", container("exec sleep 4322"))
    await until(here, "target", lambda pod: pod.ready)
    debug = {**container("cat /proc/1/cmdline | tr '\\0' ' '", "debugger"), "targetContainerName": "main"}
    patch = {"spec": {"ephemeralContainers": [debug]}}
    await here.cluster.patch(
        PODS, "target", patch, namespace="default", type="strategic", subresource="ephemeralcontainers"
    )
    found = await until(here, "target", lambda pod: _ephemeral_ended(pod))
    assert log_of(here, found, "debugger") == ["sleep 4322 "]
    await here.cluster.delete(PODS, "target", namespace="default", grace_seconds=0)


def _ephemeral_ended(pod):
    return any(each.state.terminated for each in pod.status.ephemeral_container_statuses)


async def test_processes_and_memory_of_the_node(here):
    lines = await output(here, "wide", "readlink /proc/1/ns/pid /proc/self/ns/pid", hostPID=True, hostIPC=True)
    assert len(set(lines)) == 1


async def test_settings_of_the_kernel(here):
    setting = {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}
    lines = await output(here, "sysctl", "cat /proc/sys/kernel/shm_rmid_forced", securityContext=setting)
    assert lines == ["1"]
    unsafe = {"sysctls": [{"name": "kernel.msgmax", "value": "10000"}]}
    await create(here, "unsafe", container("true"), securityContext=unsafe)
    found = await until(here, "unsafe", lambda pod: pod.finished)
    assert (found.status.phase, found.status.reason) == ("Failed", "SysctlForbidden")


async def test_users_and_privileges(here):
    lines = await output(
        here,
        "unprivileged",
        "grep CapEff /proc/self/status; grep NoNewPrivs /proc/self/status; touch /x 2>&1",
        container_more={"securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True}},
    )
    assert not int(lines[0].split()[1], 16) & NET_ADMIN
    assert lines[1].split() == ["NoNewPrivs:", "1"]
    assert "Read-only" in lines[2]
    more = {"securityContext": {"privileged": True}}
    (line,) = await output(here, "privileged", "grep CapEff /proc/self/status", container_more=more)
    assert int(line.split()[1], 16) & NET_ADMIN
    if here.all_users:
        who = {"runAsUser": 1234, "runAsGroup": 5678, "supplementalGroups": [9]}
        assert await output(here, "user", "id -u; id -g; id -G", securityContext=who) == ["1234", "5678", "5678 9"]


async def test_a_deadline(here):
    await create(here, "deadline", container("sleep 1000"), activeDeadlineSeconds=1, terminationGracePeriodSeconds=0)
    found = await until(here, "deadline", lambda pod: pod.finished)
    assert (found.status.phase, found.status.reason) == ("Failed", "DeadlineExceeded")
