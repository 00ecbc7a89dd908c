"""Which Pods are evicted because of the disk they use, and which images are removed."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from seamark.nodes.running.disk import PERIOD, DiskUsage, DiskWatch, excess, limited, size_of
from seamark.nodes.running.preparing import unpacking
from seamark.nodes.running.spec import Container, PodToRun, Spec
from seamark.rules.objects.metadata import Metadata
from seamark.rules.objects.pod import Resources

MIB = 1 << 20


def pod(*limits: str, volumes=()):
    containers = tuple(
        Container(name=f"c{number}", resources=Resources(limits={"ephemeral-storage": limit} if limit else {}))
        for number, limit in enumerate(limits)
    )
    return PodToRun(Metadata(), Spec(containers=containers, volumes=tuple(volumes)))


def directory(limit: str = "", medium: str = ""):
    return {"name": "data", "emptyDir": {"sizeLimit": limit, "medium": medium}}


@pytest.mark.parametrize(
    ("made", "volumes", "containers", "words"),
    [
        (pod(""), {}, {"c0": 999 * MIB}, ""),
        (pod("", volumes=[directory("1Mi")]), {"data": MIB}, {}, ""),
        (
            pod("", volumes=[directory("1Mi")]),
            {"data": MIB + 1},
            {},
            'Usage of EmptyDir volume "data" exceeds the limit "1Mi". ',
        ),
        (pod("", volumes=[directory("1Mi", "Memory")]), {"data": 9 * MIB}, {}, ""),
        (
            pod("1Mi", ""),
            {},
            {"c0": 2 * MIB, "c1": 9 * MIB},
            'Container c0 exceeded its local ephemeral storage limit "1Mi". ',
        ),
        (
            pod("1Mi", volumes=[directory()]),
            {"data": 2 * MIB},
            {},
            "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ",
        ),
        (
            pod("1Mi", "1Mi"),
            {},
            {"c0": MIB, "c1": MIB + 1},
            "Pod ephemeral local storage usage exceeds the total limit of containers 2097152. ",
        ),
    ],
)
def test_what_is_too_much(made, volumes, containers, words):
    assert excess(made, DiskUsage(volumes, containers)) == words


def test_which_pods_are_limited():
    assert [limited(each) for each in (pod(""), pod("1Mi"), pod("", volumes=[directory("1")]))] == [False, True, True]
    assert not limited(pod("", volumes=[directory("1Mi", "Memory")]))


class Over(Exception):
    pass


class Clock:
    def time(self):
        return 1e9

    async def sleep(self, seconds):
        assert seconds == PERIOD
        raise Over


class Life:
    def __init__(self, folder, made, image=""):
        self.folder, self.pod, self.doomed, self.evicted = folder, made, None, []
        self.over = False
        self.open = {"c0": SimpleNamespace(image=image)}

    def evict(self, words):
        self.evicted.append(words)


def written(folder, size):
    folder.mkdir(parents=True)
    (folder / "file").write_bytes(b"x" * size)


async def test_a_pod_with_a_limit_is_evicted(tmp_path):
    lives = {name: Life(tmp_path / name, pod("", volumes=[directory("1Mi")])) for name in ("large", "small")}
    for name, size in (("large", 2 * MIB), ("small", 1000)):
        written(tmp_path / name / "volumes/data", size)
    with pytest.raises(Over):
        await DiskWatch(lives, tmp_path, Clock(), least=0).run()
    assert [len(lives[name].evicted) for name in lives] == [1, 0]
    assert size_of(tmp_path / "not there") == 0


async def test_a_disk_that_is_nearly_full(tmp_path):
    lives = {name: Life(tmp_path / name, pod("")) for name in ("small", "large")}
    for name, size in (("large", 2 * MIB), ("small", MIB)):
        written(tmp_path / name / "containers/c0", size)
    await DiskWatch(lives, tmp_path, Clock(), least=5, free=lambda _: 5).look()
    assert [each.evicted for each in lives.values()] == [[], []]
    await DiskWatch(lives, tmp_path, Clock(), least=5, free=lambda _: 4).look()
    assert lives["small"].evicted == []
    (words,) = lives["large"].evicted
    assert words.startswith("The node was low on resource: ephemeral-storage. Threshold quantity: 5, available: 4. ")


async def test_one_pod_is_evicted_at_a_time_and_only_if_it_helps(tmp_path):
    lives = {name: Life(tmp_path / name, pod("")) for name in ("large", "tiny")}
    for name, size in (("large", 2 * MIB), ("tiny", 1000)):
        written(tmp_path / name / "containers/c0", size)
    watch = DiskWatch(lives, tmp_path, Clock(), least=5, free=lambda _: 4)
    lives["tiny"].doomed = "evicted"
    await watch.look()
    assert lives["large"].evicted == []
    lives["tiny"].over = True
    await watch.look()
    assert len(lives["large"].evicted) == 1
    lives["large"].doomed, lives["large"].over = "evicted", True
    lives["tiny"].doomed, lives["tiny"].over = None, False
    await watch.look()
    assert lives["tiny"].evicted == []


async def test_images_that_no_pod_uses(tmp_path):
    for name in ("a1", "b2", "c3"):
        written(tmp_path / "images" / name / "root", 10)
        (tmp_path / "images" / name / "config").write_text("{}")
        os.utime(tmp_path / "images" / name / "config", (1.0, 1.0))
    os.utime(tmp_path / "images/b2/config", (1e9, 1e9))
    lives = {"uid": Life(tmp_path / "pod", pod(""), str(tmp_path / "images/a1/root"))}
    watch = DiskWatch(lives, tmp_path, Clock(), least=5, free=lambda _: 5)
    await watch.look()
    assert sorted(each.name for each in (tmp_path / "images").iterdir()) == ["a1", "b2"]
    os.utime(tmp_path / "images/b2/config", (9e8, 9e8))
    assert sorted(unpacking.drop_unused(tmp_path / "images", (), before=9.5e8)) == ["sha256:a1", "sha256:b2"]
    assert list((tmp_path / "images").iterdir()) == []
