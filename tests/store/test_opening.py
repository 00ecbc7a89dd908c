"""Store URLs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from seamark.store.opening import open_store
from seamark.store.protocol import StoreError, Write
from seamark.store.sqlite.log import FIRST_REVISION


@pytest.mark.parametrize("form", ["sqlite://{}", "{}", "sqlite://{}?history=60"])
async def test_a_file(form: str, tmp_path: Path) -> None:
    path = tmp_path / "a store.db"
    store = open_store(form.format(path))
    await store.open()
    await store.commit([Write("/a", b"1")])
    await store.close()
    assert path.exists()


async def test_memory() -> None:
    store = open_store("memory:")
    await store.open()
    assert await store.commit([Write("/a", b"1")]) == FIRST_REVISION + 1
    await store.close()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "empty"),
        ("sqlite:", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite://relative/path.db", "has a host"),
        ("memory:///x", "no known kind"),
        ("postgres://localhost/db", "no known kind"),
        ("etcd:///prefix", "names no host"),
        ("etcd://me:word@a:2379/prefix", "are options"),
        ("etcd://[::1/prefix", "cannot be read"),
        ("etcd://a:2379/prefix?colour=red", "option colour is not known"),
        ("etcd://a:2379,,b:2379/prefix", "names no host"),
        ("sqlite:///tmp/x?histroy=5", "option histroy is not known"),
        ("sqlite:///tmp/x?history", "not name=value"),
        ("sqlite:///tmp/x?history=long", "history=long is neither a number of seconds"),
        ("sqlite:///tmp/x?history=0", "history=0 is neither a number of seconds"),
        ("sqlite:///tmp/x?history=inf", "history=inf is neither a number of seconds"),
        ("sqlite:///tmp/x?history=nan", "history=nan is neither a number of seconds"),
    ],
)
def test_what_is_no_store_url_is_told_in_one_line(url: str, says: str) -> None:
    with pytest.raises(StoreError, match=says) as error:
        open_store(url)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("hosts", "addresses"),
    [
        ("a:1,b:2", ["a:1", "b:2"]),
        ("a,b:2", ["a:2379", "b:2"]),
        ("[::1],[::2]:5", ["[::1]:2379", "[::2]:5"]),
    ],
)
def test_the_members_of_an_etcd(hosts: str, addresses: list[str]) -> None:
    store = open_store(f"etcd://{hosts}/place")
    assert store._addresses == addresses  # type: ignore[attr-defined]


def test_a_password_is_not_told_again() -> None:
    with pytest.raises(StoreError) as error:
        open_store("postgres://localhost/db?password=secret")
    assert "secret" not in str(error.value)


def test_an_engine_is_imported_only_when_asked_for() -> None:
    script = "import sys, seamark.store.opening; print([m for m in ('sqlite3', 'grpc') if m in sys.modules])"
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert child.stdout.strip() == "[]"
