"""File systems of containers: planned here, built by a real kernel."""

from __future__ import annotations

import os

import pytest
from talking import talking

from seamark.nodes.running.preparing import file_systems
from seamark.nodes.running.preparing.file_systems import Volume


@pytest.fixture
def volumes(tmp_path):
    for name in ("data", "token", "inner", "tmp", "scratch"):
        (tmp_path / name).mkdir()
    (tmp_path / "token/token").write_text("secret")
    (tmp_path / "hosts").write_text("127.0.0.1 localhost web-1\n")
    return [
        Volume(str(tmp_path / "inner"), "/data/sub/inner"),
        Volume(str(tmp_path / "data"), "/data"),
        Volume(str(tmp_path / "token"), "/var/run/secrets/kubernetes.io/serviceaccount", read_only=True),
        Volume(str(tmp_path / "hosts"), "/etc/hosts"),
        Volume(str(tmp_path / "data"), "/usr/share/no-such-package/html"),
    ]


SCRIPT = """
cat /etc/hosts
cat /var/run/secrets/kubernetes.io/serviceaccount/token; echo
echo no 2>/dev/null > /var/run/secrets/kubernetes.io/serviceaccount/token || echo refused
echo 1 > /data/file; echo 2 > /data/sub/inner/file; cat /usr/share/no-such-package/html/file
echo 3 > /tmp/file; echo 4 > /dev/null && head -c 4 /dev/urandom | wc -c
ls /proc | grep -cx 1
"""


async def test_the_machines_own_file_system(machine, tmp_path, volumes):
    """Volumes are where they should be, also below directories that cannot be written to, and nothing else changed."""
    root = file_systems.of_host(str(tmp_path / "tmp"), volumes)
    said = await talking(machine, "one", "sh", "-c", SCRIPT, root=root, scratch=str(tmp_path / "scratch"))
    lines = (await said.output()).splitlines()
    assert [line for line in lines if "Read-only" not in line] == [
        "127.0.0.1 localhost web-1",
        "secret",
        "refused",
        "1",
        "4",
        "1",
    ]
    assert (tmp_path / "inner/file").read_text() == "2\n"
    assert (tmp_path / "tmp/file").read_text() == "3\n"
    assert not os.path.exists("/usr/share/no-such-package")


async def test_a_directory_as_root(machine, tmp_path, volumes):
    """Nothing that the container writes outside of its volumes reaches the image."""
    image, upper, work = (tmp_path / name for name in ("image", "upper", "work"))
    for each in (image, upper, work, image / "var/real-run", image / "etc"):
        each.mkdir(parents=True)
    (image / "var/run").symlink_to("real-run")
    programs = [Volume(f"/{name}", f"/{name}", read_only=True) for name in ("usr", "bin", "lib", "lib64")]
    programs = [each for each in programs if os.path.exists(each.source)]
    root = file_systems.of_directory(str(image), str(upper), str(work), [*programs, *volumes[:4]])
    script = SCRIPT.replace("/usr/share/no-such-package/html", "/data") + "echo 5 > /new; ls /var/real-run"
    said = await talking(machine, "one", "sh", "-c", script, root=root, scratch=str(tmp_path / "scratch"))
    lines = (await said.output()).splitlines()
    assert lines[-1] == "secrets"
    assert (upper / "new").read_text() == "5\n"
    assert sorted(each.name for each in image.iterdir()) == ["etc", "var"]
