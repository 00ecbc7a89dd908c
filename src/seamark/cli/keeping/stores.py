"""Finds the store file of a data directory, for the verbs that work on the file itself."""

from __future__ import annotations

import argparse
from pathlib import Path
from urllib.parse import unquote, urlsplit

from seamark.cli.data_dir import running_in
from seamark.cli.failure import Failure
from seamark.store.opening import store_scheme

NAME = "store.db"


def add_store_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--store", metavar="URL", default="", help="the store, if it is not in the data directory and nothing runs"
    )


def store_file(directory: Path, given: str) -> Path:
    """The SQLite file that a running Seamark uses, that ``--store`` names, or that is in the data directory."""
    running = running_in(directory)
    url = given or (running.store if running is not None else "") or str(directory / NAME)
    match store_scheme(url):
        case "":
            return Path(url)
        case "sqlite":
            return Path(unquote(urlsplit(url).path))
        case "etcd":
            raise Failure("the store is an etcd, which has tools of its own: `etcdctl snapshot save`, `etcdutl`")
        case _:
            raise Failure("the store is in memory and ends with its process; there is no file")
