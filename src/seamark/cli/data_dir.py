"""The Seamark of a data directory, for the commands that look after it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from seamark.cli.failure import Failure

if TYPE_CHECKING:
    from seamark.presence import Presence


def add_data_dir_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-dir", metavar="DIR", help="which Seamark (default $SEAMARK_DATA_DIR, or ~/.local/state/seamark)"
    )


def data_dir_of(given: str | None) -> Path:
    """The directory meant by an option that may not have been given."""
    from seamark.config import default_data_dir

    return Path(given or os.environ.get("SEAMARK_DATA_DIR") or default_data_dir()).absolute()


def running_in(directory: Path) -> Presence | None:
    """What runs there; ``Failure`` if that cannot be found out."""
    from seamark.presence import DirectoryError, find

    try:
        return find(directory)
    except DirectoryError as error:
        raise Failure(str(error)) from error
