"""Users, capabilities and read-only file systems of containers, and what is told because it cannot be honoured."""

from __future__ import annotations

import pytest
from talking import talking

from seamark.nodes.running.preparing import file_systems, security
from seamark.nodes.running.preparing.environment import Unmakeable
from seamark.nodes.running.preparing.file_systems import Volume
from seamark.nodes.running.preparing.security import Identity
from seamark.nodes.running.spec import Container, PodToRun, Security, Setting, Spec
from seamark.rules.objects.metadata import Metadata

PASSWD = "root:x:0:0:root:/root:/bin/sh\nweb:x:33:44:web:/srv:/bin/sh\n"
GROUP = "staff:x:50:\n"


def pod(common=None, own=None, **spec):
    container = Container(name="main", security_context=Security(**(own or {})))
    made = Spec(containers=(container,), security_context=Security(**(common or {})), **spec)
    return PodToRun(Metadata(name="web", namespace="default", uid="u"), made)


def who(common=None, own=None, image_user="", **more):
    made = pod(common, own)
    files = {"passwd": PASSWD, "group": GROUP, **more}
    return security.identity(made, made.spec.containers[0], image_user=image_user, **files)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (who(), Identity(0, 0, (), "/root")),
        (who(passwd="", group=""), Identity(0, 0, (), "/root")),
        (who(image_user="web"), Identity(33, 44, (), "/srv")),
        (who(image_user="33"), Identity(33, 44, (), "/srv")),
        (who(image_user="1000:staff"), Identity(1000, 50, (), "/")),
        (who(image_user="web:7"), Identity(33, 7, (), "/srv")),
        (who({"run_as_user": 5}, image_user="web:7"), Identity(5, 0, (), "/")),
        (who({"run_as_user": 5}, {"run_as_user": 33}), Identity(33, 44, (), "/srv")),
        (who({"run_as_group": 6, "supplemental_groups": (1, 2), "fs_group": 2}), Identity(0, 6, (1, 2), "/root")),
        (who({"run_as_non_root": True, "run_as_user": 5}), Identity(5, 0, (), "/")),
        (who({"run_as_non_root": True}, image_user="33"), Identity(33, 44, (), "/srv")),
        (who({"run_as_non_root": True}, harmless=True), Identity(0, 0, (), "/root")),
    ],
)
def test_users(found, expected):
    assert found == expected


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (({"run_as_non_root": True}, {"run_as_user": 0}), "container's runAsUser breaks non-root policy"),
        (({"run_as_non_root": True},), "container has runAsNonRoot and image will run as root"),
        (({"run_as_non_root": True}, {}, "web"), r"image has non-numeric user \(web\), cannot verify"),
        (({}, {}, "nobody-knows"), "unable to find user nobody-knows"),
        (({}, {}, "web:nobody-knows"), "unable to find group nobody-knows"),
    ],
)
def test_users_that_are_refused(arguments, words):
    with pytest.raises(Unmakeable, match=words):
        who(*arguments)


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (None, security.USUAL),
        ({"drop": ["ALL"]}, set()),
        ({"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}, {"NET_BIND_SERVICE"}),
        ({"drop": ["CAP_CHOWN"], "add": ["net_admin"]}, security.USUAL - {"CHOWN"} | {"NET_ADMIN"}),
        ({"add": ["ALL"]}, set(security.CAPABILITIES)),
    ],
)
def test_capabilities(asked, kept):
    found = security.capabilities(Security(capabilities=asked))
    assert {security.CAPABILITIES[number] for number in found} == kept
    assert len(security.capabilities(Security(privileged=True))) == 41


def test_what_is_not_honoured():
    made = pod({"run_as_user": 5}, {"privileged": True, "seccomp_profile": {"type": "RuntimeDefault"}})
    container = ["securityContext.privileged of container main", "securityContext.seccompProfile of container main"]
    assert security.not_honoured(made, all_users=True) == container
    assert security.not_honoured(made, all_users=False) == ["spec.securityContext.runAsUser", *container]
    assert security.not_honoured(pod(), all_users=False) == []


@pytest.mark.parametrize(
    ("name", "path", "forbidden"),
    [
        ("kernel.shm_rmid_forced", "kernel/shm_rmid_forced", ""),
        ("net/ipv4/tcp_rmem", "net/ipv4/tcp_rmem", ""),
        ("kernel.msgmax", "kernel/msgmax", "kernel.msgmax"),
        ("net.ipv4.conf.eth0/1.rp_filter", "net/ipv4/conf/eth0.1/rp_filter", "net.ipv4.conf.eth0/1.rp_filter"),
    ],
)
def test_settings_of_the_kernel(name, path, forbidden):
    asked = Security(sysctls=(Setting(name, "1"),))
    assert security.settings(asked) == {path: "1"}
    assert security.forbidden_setting(asked) == forbidden


async def test_a_process_keeps_only_its_capabilities(machine):
    said = await talking(machine, "one", "grep", "CapEff", "/proc/self/status", capabilities=(10,))
    assert (await said.output()).split()[-1] == f"{1 << 10:016x}"


async def test_a_file_system_that_can_only_be_read(machine, tmp_path):
    for name in ("tmp", "scratch", "data"):
        (tmp_path / name).mkdir()
    volumes = [Volume(str(tmp_path / "data"), "/data")]
    root = file_systems.read_only(file_systems.of_host(str(tmp_path / "tmp"), volumes), volumes)
    script = "for at in /etc /tmp / /data /dev/shm; do touch $at/seamark-was-here 2>/dev/null && echo $at; done"
    said = await talking(machine, "one", "sh", "-c", script, root=root, scratch=str(tmp_path / "scratch"))
    assert (await said.output()).split() == ["/data", "/dev/shm"]


async def test_an_ordinary_user_has_only_so_many_processes(machine):
    if machine.all_users:
        pytest.skip("the kernel bounds no processes of root")
    script = "for i in $(seq 60); do sleep 1000 & done; echo all"
    said = await talking(machine, "one", "sh", "-c", script, user_processes=40)
    assert "all" not in (await said.output()).split()
