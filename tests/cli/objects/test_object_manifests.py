"""Objects from files."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from seamark.cli.failure import Failure
from seamark.cli.objects.kinds import ServerKind, ServerKinds
from seamark.cli.objects.manifests import Manifest, parse, read_all
from seamark.kinds.resource import NODES, SERVICES

KINDS = ServerKinds([ServerKind(SERVICES), ServerKind(NODES)])
ONE = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n"
TWO = "apiVersion: v1\nkind: Service\nmetadata: {name: b}\n"


def names(text: str) -> list[str]:
    return [manifest.name for manifest in parse(text, "f")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (ONE, ["a"]),
        (f"{ONE}---\n{TWO}", ["a", "b"]),
        (f"---\n{ONE}--- # two\n{TWO}---\n", ["a", "b"]),
        (f"# a comment\n---\n# nothing\n---\n{ONE}", ["a"]),
        (json.dumps({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}, indent=1), ["a"]),
        (
            f"kind: List\napiVersion: v1\nitems:\n- {{apiVersion: v1, kind: Pod, metadata: {{name: a}}}}\n---\n{TWO}",
            ["a", "b"],
        ),
        ("apiVersion: v1\nkind: ServiceList\nitems: []\n", []),
        ("", []),
        (f"{ONE}data: |\n  ---\n  not a new document\n", ["a"]),
    ],
)
def test_documents_lists_and_json(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "f: error converting YAML"),
        ("- a", "an object is needed, not list"),
        ("just words", "an object is needed, not str"),
        ("kind: Service\nmetadata: {name: a}", "without apiVersion"),
        ("apiVersion: v1\nkind: 3", "without kind"),
        ("apiVersion: v1\nkind: Service\nmetadata: a", "must be a mapping"),
        ("apiVersion: v1\nkind: Service\nkind: Pod\n", 'key "kind" already set'),
    ],
)
def test_what_is_no_object_is_said_with_its_file(text: str, said: str) -> None:
    with pytest.raises(Failure) as failed:
        names(text)
    assert said in str(failed.value)
    assert str(failed.value).startswith("f: ")


def test_directories_are_read_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "2.yaml").write_text(TWO)
    (tmp_path / "1.json").write_text(json.dumps({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "first"}}))
    (tmp_path / "readme.txt").write_text("no manifest")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "3.yml").write_text(ONE)
    assert [m.name for m in read_all([str(tmp_path)])] == ["first", "b"]
    assert [m.source for m in read_all([str(tmp_path / "2.yaml")])] == [str(tmp_path / "2.yaml")]
    monkeypatch.setattr("sys.stdin", io.StringIO(ONE))
    assert [m.source for m in read_all(["-"])] == ["STDIN"]


def test_nothing_to_read_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe")
    for name, said in (
        ("empty.yaml", "there is no object"),
        ("missing.yaml", "No such file or directory"),
        ("bytes.yaml", "is not text"),
    ):
        with pytest.raises(Failure, match=said):
            read_all([str(tmp_path / name)])
    (tmp_path / "bare").mkdir()
    with pytest.raises(Failure, match="has no file that ends in"):
        read_all([str(tmp_path / "bare")])


def manifest(kind: str = "Service", **metadata: str) -> Manifest:
    return Manifest("f", {"apiVersion": "v1", "kind": kind, "metadata": metadata})


def test_kinds_and_names_are_needed() -> None:
    assert manifest(name="a").kind_among(KINDS).resource == SERVICES
    with pytest.raises(Failure, match='no matches for kind "Pod" in version "v1"'):
        manifest("Pod", name="a").kind_among(KINDS)
    for version, kind, hint in (
        ("v2", "Service", "the server has Service in v1$"),
        ("v1", "Pot", "the server has no Pot"),
        ("a.b/v1", "Pot", r"the server does not have the API group a\.b;"),
    ):
        with pytest.raises(Failure, match=hint):
            Manifest("f", {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}).kind_among(KINDS)
    with pytest.raises(Failure, match=r"without metadata\.name"):
        manifest().kind_among(KINDS)


def test_where_an_object_belongs() -> None:
    service, node = KINDS.every_version
    assert manifest(name="a").namespace_for(service, asked=None, default="default") == "default"
    assert manifest(name="a").namespace_for(service, asked="shop", default="default") == "shop"
    assert manifest(name="a", namespace="own").namespace_for(service, asked=None, default="default") == "own"
    assert manifest(name="a", namespace="own").namespace_for(service, asked="own", default="default") == "own"
    assert manifest("Node", name="a").namespace_for(node, asked="shop", default="default") == ""
    with pytest.raises(Failure, match="is of the namespace own, not of shop"):
        manifest(name="a", namespace="own").namespace_for(service, asked="shop", default="default")


@pytest.mark.parametrize("name", ["f.yaml", "-"])
def test_files_are_utf_8_whatever_the_locale(name: str, tmp_path: Path) -> None:
    text = f"{ONE}data: {{greeting: Grüße}}\n"
    (tmp_path / "f.yaml").write_text(text, encoding="utf-8")
    program = "from seamark.cli.objects import manifests as m; import sys; print(ascii(m.read_all(sys.argv[1:])[0]))"
    # Python takes the locale C for UTF-8 unless it is told not to, and there may be no other one here.
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", program, name],
        input=text.encode(),
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, **plain},
    )
    assert (done.stderr, "Gr\\xfc\\xdfe" in done.stdout.decode()) == (b"", True)
