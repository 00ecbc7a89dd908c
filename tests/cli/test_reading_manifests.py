"""Objects from files."""

from __future__ import annotations

import functools
import http.server
import io
import json
import threading
from pathlib import Path

import pytest

from seamark.cli.failure import Failure
from seamark.cli.manifests import Manifest, kind_of, namespace_of, parse, read_all
from seamark.cli.server_kinds import ServerKind, ServerKinds
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
    assert [m.name for m in read_all([str(tmp_path)], recursive=False)] == ["first", "b"]
    assert [m.name for m in read_all([str(tmp_path)], recursive=True)] == ["first", "b", "a"]
    assert [m.source for m in read_all([str(tmp_path / "2.yaml")], recursive=False)] == [str(tmp_path / "2.yaml")]
    monkeypatch.setattr("sys.stdin", io.StringIO(ONE))
    assert [m.source for m in read_all(["-"], recursive=False)] == ["STDIN"]


def test_nothing_to_read_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe")
    for name, said in (
        ("empty.yaml", "there is no object"),
        ("missing.yaml", "does not exist"),
        ("bytes.yaml", "is not text"),
    ):
        with pytest.raises(Failure, match=said):
            read_all([str(tmp_path / name)], recursive=False)
    (tmp_path / "bare").mkdir()
    with pytest.raises(Failure, match="has no file that ends in"):
        read_all([str(tmp_path / "bare")], recursive=False)


def test_lists_of_files_and_patterns(tmp_path: Path) -> None:
    for name, text in (("1.yaml", ONE), ("2.yaml", TWO), ("a,b.yaml", ONE), ("x.txt", "no manifest")):
        (tmp_path / name).write_text(text)
    one, two = str(tmp_path / "1.yaml"), str(tmp_path / "2.yaml")
    assert [m.source for m in read_all([f"{two},{one}"], recursive=False)] == [two, one]
    assert [m.source for m in read_all([str(tmp_path / "[12].yaml")], recursive=False)] == [one, two]
    assert [m.name for m in read_all([str(tmp_path / "a,b.yaml")], recursive=False)] == ["a"]
    with pytest.raises(Failure, match=r'the path ".*/\*\.nope" does not exist'):
        read_all([str(tmp_path / "*.nope")], recursive=False)


def test_urls_are_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.yaml").write_text(ONE)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    handler = functools.partial(SilentHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert [(m.name, m.source) for m in read_all([f"{url}/one.yaml"], recursive=False)] == [
            ("a", f"{url}/one.yaml")
        ]
        with pytest.raises(Failure, match=r'unable to read URL ".*/two.yaml", server reported 404 File not found'):
            read_all([f"{url}/two.yaml"], recursive=False)
        server.shutdown()
    with pytest.raises(Failure, match="Connection refused"):
        read_all([f"{url}/one.yaml"], recursive=False)


class SilentHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


def manifest(kind: str = "Service", **metadata: str) -> Manifest:
    return Manifest("f", {"apiVersion": "v1", "kind": kind, "metadata": metadata})


def test_kinds_and_names_are_needed() -> None:
    assert kind_of(manifest(name="a"), KINDS).resource == SERVICES
    with pytest.raises(Failure, match='no matches for kind "Pod" in version "v1"'):
        kind_of(manifest("Pod", name="a"), KINDS)
    with pytest.raises(Failure, match=r"without metadata\.name"):
        kind_of(manifest(), KINDS)


def test_where_an_object_belongs() -> None:
    service, node = KINDS.every_version
    assert namespace_of(manifest(name="a"), service, asked=None, default="default") == "default"
    assert namespace_of(manifest(name="a"), service, asked="shop", default="default") == "shop"
    assert namespace_of(manifest(name="a", namespace="own"), service, asked=None, default="default") == "own"
    assert namespace_of(manifest(name="a", namespace="own"), service, asked="own", default="default") == "own"
    assert namespace_of(manifest("Node", name="a"), node, asked="shop", default="default") == ""
    with pytest.raises(Failure, match="does not match the namespace"):
        namespace_of(manifest(name="a", namespace="own"), service, asked="shop", default="default")
