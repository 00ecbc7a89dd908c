"""Control groups: where our own is, whether it can be divided, and what is written into it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seamark.linux.cgroups import Cgroups, NotDelegated, events, own_group

PLAIN = "30 23 0:26 / {point} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


@pytest.mark.parametrize(
    ("mounts", "groups", "found"),
    [
        (PLAIN.format(point="/sys/fs/cgroup"), "0::/user.slice/a.scope\n", "/sys/fs/cgroup/user.slice/a.scope"),
        (PLAIN.format(point="/sys/fs/cgroup"), "0::/\n", "/sys/fs/cgroup"),
        (PLAIN.format(point="/sys/fs/cgroup/unified"), "4:memory:/x\n0::/a\n", "/sys/fs/cgroup/unified/a"),
        ("30 23 0:26 /box /c rw - cgroup2 none rw\n", "0::/box/inner\n", "/c/inner"),
    ],
)
def test_the_group_of_a_process(mounts, groups, found):
    assert own_group(mounts, groups) == Path(found)


@pytest.mark.parametrize(
    ("mounts", "groups", "why"),
    [
        ("30 23 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "4:memory:/\n0::/\n", "not mounted"),
        (PLAIN.format(point="/c"), "4:memory:/\n", "not mounted"),
        (PLAIN.format(point="/c"), "0::/../other\n", "outside"),
    ],
)
def test_no_group(mounts, groups, why):
    with pytest.raises(NotDelegated, match=why):
        own_group(mounts, groups)


class Tree:
    """A directory that looks like a process and its group; what the kernel does by itself is left out."""

    def __init__(self, folder: Path, *, controllers: str = "cpuset cpu io memory pids", processes: str = "") -> None:
        self.process, self.group = folder / "process", folder / "tree" / "seamark.scope"
        self.process.mkdir()
        self.group.mkdir(parents=True)
        (self.process / "mountinfo").write_text(PLAIN.format(point=folder / "tree"))
        (self.process / "cgroup").write_text("0::/seamark.scope\n")
        (self.group / "cgroup.controllers").write_text(controllers)
        (self.group / "cgroup.procs").write_text(processes or f"{os.getpid()}\n")
        (self.group / "cgroup.type").write_text("domain")


def test_a_group_that_is_ours_is_divided(tmp_path):
    tree = Tree(tmp_path)
    groups = Cgroups.take(tree.process)
    assert (tree.group / "seamark" / "cgroup.procs").read_text() == str(os.getpid())
    assert (tree.group / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"
    made = groups.make("uid", "main", {"memory.max": "1000", "pids.max": "max"})
    assert Path(made) == tree.group / "pods" / "uid" / "main"
    assert Path(made, "memory.max").read_text() == "1000"
    assert (tree.group / "pods" / "uid" / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"


def test_who_was_moved_before_finds_the_same_group(tmp_path):
    tree = Tree(tmp_path)
    Cgroups.take(tree.process)
    (tree.process / "cgroup").write_text("0::/seamark.scope/seamark\n")
    assert Path(Cgroups.take(tree.process).make("uid", "main", {})).parent.parent == tree.group / "pods"


def test_groups_that_are_left_are_removed(tmp_path):
    tree = Tree(tmp_path)
    (tree.group / "pods" / "gone" / "main").mkdir(parents=True)
    groups = Cgroups.take(tree.process)
    assert not (tree.group / "pods" / "gone").exists()
    (tree.group / "pods" / "other" / "main").mkdir(parents=True)
    groups.remove("other")
    assert not (tree.group / "pods" / "other").exists()
    groups.remove("never there")


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"controllers": "hugetlb"}, "no controller for cpu, memory, pids"),
        ({"processes": "1\n"}, "other processes"),
    ],
)
def test_a_group_that_is_not_ours_is_left_alone(tmp_path, how, why):
    tree = Tree(tmp_path, **how)
    with pytest.raises(NotDelegated, match=why):
        Cgroups.take(tree.process)
    assert not (tree.group / "seamark").exists()


def test_a_kernel_that_refuses(tmp_path):
    tree = Tree(tmp_path)
    (tree.group / "cgroup.subtree_control").mkdir()  # cannot be written to
    with pytest.raises(NotDelegated, match=r"seamark\.scope: "):
        Cgroups.take(tree.process)


def test_what_happened_in_a_group(tmp_path):
    (tmp_path / "memory.events").write_text("low 0\nmax 7\noom 1\noom_kill 2\n")
    assert events(str(tmp_path), "memory.events")["oom_kill"] == 2
    assert events(str(tmp_path), "pids.events") == {}
