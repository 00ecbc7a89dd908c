"""The data directory, which tells ``status``, ``logs``, ``down``, ``node`` and ``demo`` which Seamark is meant."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from seamark.cli.failure import Failure

if TYPE_CHECKING:
    from seamark.presence import Presence


def add_data_dir_option(parser: argparse.ArgumentParser, about: str = "which Seamark") -> None:
    parser.add_argument(
        "--data-dir", metavar="DIR", help=f"{about} (default $SEAMARK_DATA_DIR, or ~/.local/state/seamark)"
    )


def data_dir_of(given: str | None) -> Path:
    """The directory that the option, the environment or the file of ``SEAMARK_CONFIG`` names, or the default."""
    from seamark.presence import default_data_dir

    named = given or os.environ.get("SEAMARK_DATA_DIR")
    if not named and os.environ.get("SEAMARK_CONFIG"):
        from seamark.config import ConfigError, gathered

        try:
            named = gathered({}).get("data_dir")
        except ConfigError as error:
            raise Failure(str(error), 2) from error
    return Path(named or default_data_dir()).absolute()


def running_in(directory: Path) -> Presence | None:
    """What runs there; ``Failure`` if that cannot be found out."""
    from seamark.presence import DirectoryError, find

    try:
        return find(directory)
    except DirectoryError as error:
        raise Failure(str(error)) from error
