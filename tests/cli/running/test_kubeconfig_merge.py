"""Merging into a kubeconfig: whatever was in it stays, to the byte where nothing had to change."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from seamark.cli.failure import Failure
from seamark.cli.running.kubeconfig_merge import entries_of, merge_for_user, merged, users_kubeconfig

OURS = {
    "clusters": [
        {"name": "seamark", "cluster": {"server": "https://127.0.0.1:6443", "certificate-authority-data": "eA=="}}
    ],
    "users": [{"name": "seamark-admin", "user": {"token": "t0k"}}],
    "contexts": [
        {"name": "seamark", "context": {"cluster": "seamark", "user": "seamark-admin", "namespace": "default"}}
    ],
}
ENTRIES = entries_of(OURS, "seamark")

FOREIGN = """\
# my clusters
apiVersion: v1
kind: Config
preferences: {}
clusters:
- name: prod        # careful
  cluster:
    server: https://prod.example:6443
    extensions:
    - name: x
      extension: {a: 1}
users:
  - name: me
    user:
      # looks like a number, is none
      token: 0123
      password: 1e3
contexts:
- context:
    cluster: prod
    user: me
  name: prod
current-context: prod
# the end
"""


def merge(text: str, name: str = "seamark") -> Any:
    return yaml.safe_load(merged(text, entries_of(OURS, name), name, source="f"))


def test_every_byte_of_a_foreign_file_stays() -> None:
    result = merged(FOREIGN, ENTRIES, "seamark", source="f")
    left = iter(result.splitlines())
    assert all(any(line == other for other in left) for line in FOREIGN.splitlines()), result
    read = yaml.safe_load(result)
    assert [c["name"] for c in read["contexts"]] == ["seamark", "prod"]
    assert read["clusters"][0] == OURS["clusters"][0]
    assert read["users"][0] == OURS["users"][0]
    assert read["current-context"] == "prod"
    assert len(result.splitlines()) == len(FOREIGN.splitlines()) + 3


def test_merging_again_changes_only_our_own_entries() -> None:
    once = merged(FOREIGN, ENTRIES, "seamark", source="f")
    moved = entries_of(
        {**OURS, "clusters": [{"name": "seamark", "cluster": {"server": "https://127.0.0.1:7"}}]}, "seamark"
    )
    assert merged(once, ENTRIES, "seamark", source="f") == once
    twice = merged(once, moved, "seamark", source="f")
    assert len(twice.splitlines()) == len(once.splitlines())
    assert yaml.safe_load(twice)["clusters"][0]["cluster"] == {"server": "https://127.0.0.1:7"}
    assert yaml.safe_load(twice)["clusters"][1] == yaml.safe_load(FOREIGN)["clusters"][0]


def test_an_entry_of_ours_written_by_kubectl_is_changed_in_its_place() -> None:
    text = yaml.safe_dump({**OURS, "current-context": "seamark"})
    text = text.replace("users:", "# about users\nusers:")
    changed = merged(
        text, entries_of({**OURS, "users": [{"name": "x", "user": {"token": "new"}}]}, "seamark"), "seamark", source="f"
    )
    assert "# about users\n" in changed
    assert yaml.safe_load(changed)["users"] == [{"name": "seamark-admin", "user": {"token": "new"}}]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "# nothing yet\n",
        "apiVersion: v1\nkind: Config\n",
        "apiVersion: v1\nclusters: null\nusers:\ncontexts: []\ncurrent-context: ''\n",
        "{}",
        '{"apiVersion": "v1", "clusters": [{"name": "a", "cluster": {"server": "b"}}]}',
        "clusters: [ {name: a, cluster: {server: b}} ]\n",
        "clusters:\n- {name: a, cluster: {server: b}}",
        "---\nclusters:\n- name: a\n  cluster:\n    server: b\n",
        "clusters:\n- name: seamark\n",
    ],
)
def test_any_kubeconfig_can_be_merged_into(text: str) -> None:
    before = yaml.safe_load(text) or {}
    read = merge(text)
    assert read["current-context"] == "seamark"
    assert {"name": "seamark", "cluster": OURS["clusters"][0]["cluster"]} in read["clusters"]
    for name in ("clusters", "users", "contexts"):
        for entry in before.get(name) or []:
            assert entry in read[name] or entry["name"] == "seamark"
    assert merge(merged(text, ENTRIES, "seamark", source="f")) == read


@pytest.mark.parametrize("text", ["- a\n", "just words", "a: [", "clusters: {a: b}\n", "clusters:\n- just words\n"])
def test_what_is_no_kubeconfig_is_refused(text: str) -> None:
    with pytest.raises(Failure, match="left as it is"):
        merged(text, ENTRIES, "seamark", source="f")


names = some.text("abcxyz-", min_size=1, max_size=6)
values = some.recursive(
    some.text(max_size=8) | some.integers() | some.booleans() | some.none(),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
entries = some.lists(
    some.fixed_dictionaries({"name": names, "cluster": some.dictionaries(names, values, max_size=3)}), max_size=3
)


@given(
    config=some.fixed_dictionaries({}, optional={"clusters": entries, "current-context": names, "preferences": values}),
    flow=some.sampled_from([True, False, None]),
    indent=some.sampled_from([2, 4]),
)
def test_nothing_else_is_ever_lost(config: dict[str, Any], flow: bool | None, indent: int) -> None:
    text = yaml.safe_dump(config, default_flow_style=flow, indent=indent)
    read = merge(text)
    assert read["clusters"][-len(config.get("clusters", [])) or None :] == (config.get("clusters") or read["clusters"])
    assert read["current-context"] == config.get("current-context", "seamark")
    assert read.get("preferences") == config.get("preferences")


def test_the_file_is_private_written_whole_and_found_as_kubectl_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    source = tmp_path / "source"
    source.write_text(yaml.safe_dump(OURS))
    target = merge_for_user(source, "mine")
    assert target == tmp_path / ".kube" / "config"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert yaml.safe_load(target.read_text())["current-context"] == "mine"
    assert [each.name for each in target.parent.iterdir()] == ["config"]
    # A link stays a link: what it points to is changed.
    (tmp_path / "real").write_text(FOREIGN)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([str(tmp_path / "link"), "/nowhere"]))
    assert merge_for_user(source, "mine") == tmp_path / "real"
    assert (tmp_path / "link").is_symlink()
    assert yaml.safe_load((tmp_path / "real").read_text())["current-context"] == "prod"


def test_somebody_elses_change_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    monkeypatch.setattr("seamark.cli.running.kubeconfig_merge.LOCK_PATIENCE", 0.0)
    (tmp_path / "config").write_text(FOREIGN)
    (tmp_path / "config.lock").touch()
    source = tmp_path / "source"
    source.write_text(yaml.safe_dump(OURS))
    with pytest.raises(Failure, match=r"config\.lock is there"):
        merge_for_user(source, "seamark")
    assert (tmp_path / "config").read_text() == FOREIGN


def test_the_home_directory_is_the_default(tmp_path: Path) -> None:
    assert users_kubeconfig({}, tmp_path) == tmp_path / ".kube" / "config"
    assert users_kubeconfig({"KUBECONFIG": f"{os.pathsep}{tmp_path}/b"}, tmp_path) == tmp_path / "b"
