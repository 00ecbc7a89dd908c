"""What image names stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from seamark.nodes.running.preparing import images
from seamark.nodes.running.preparing.images import Image, NoImage


def test_a_program_as_an_image(tmp_path):
    program = tmp_path / "agnhost"
    program.touch(0o755)
    rules = images.parse([f"*/agnhost={program} pause --now", f"plain={program}", "*=host"])
    rule = images.rule_of("registry.k8s.io/e2e-test-images/agnhost:2.53", rules)
    assert (rule.place, rule.words, images.kind_of(rule.place)) == (str(program), ("pause", "--now"), "program")
    assert images.rule_of("plain:1", rules).words == ()
    assert images.rule_of("other", rules).place == images.HOST
    made = Image.of_program("agnhost", str(program), rule.words)
    assert (made.root, made.config.entrypoint, made.config.cmd) == (None, ("/agnhost",), ("pause", "--now"))


def test_files_and_directories(tmp_path):
    (tmp_path / "image.tar").touch(0o644)
    (tmp_path / "a root").mkdir()
    assert images.kind_of(str(tmp_path / "image.tar")) == "archive"
    (rule,) = images.parse([f"web={tmp_path}/a root"])
    assert (images.kind_of(rule.place), rule.words) == ("directory", ())
    with pytest.raises(NoImage, match="neither a directory nor a file"):
        images.kind_of(str(tmp_path / "nothing"))


@pytest.mark.parametrize("image", ["nginx", "nginx:latest", "docker.io/library/nginx", "nginx@sha256:abc"])
@pytest.mark.parametrize("pattern", ["nginx", "nginx:latest"])
def test_an_image_without_a_tag_is_the_latest(image: str, pattern: str) -> None:
    rules = images.parse([f"{pattern}=host"])
    if (image, pattern) == ("nginx@sha256:abc", "nginx:latest"):
        with pytest.raises(images.NoImage):
            images.rule_of(image, rules)
    else:
        assert images.rule_of(image, rules).pattern == pattern
    with pytest.raises(images.NoImage):
        images.rule_of("nginx:1", images.parse(["nginx:latest=host"]))


@pytest.mark.parametrize("image", ["registry.k8s.io/pause:3.10", "gcr.io/google_containers/pause", "pause@sha256:abc"])
def test_what_only_waits_needs_no_rule(image):
    rule = images.rule_of(image, ())
    assert (images.kind_of(rule.place), Path(rule.place).name, rule.words) == ("program", "sleep", ("infinity",))
    assert images.rule_of(image, images.parse(["*=host"])).place == images.HOST, "a rule comes first"
    for other in ("pauses", "pause/web", "web:pause"):
        with pytest.raises(NoImage):
            images.rule_of(other, ())


def test_a_machine_without_the_program_to_wait_with(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoImage):
        images.rule_of("registry.k8s.io/pause:3.10", ())
