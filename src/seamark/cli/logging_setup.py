"""What a long-running command tells of its work: lines for people, or JSON for machines."""

from __future__ import annotations

import argparse
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seamark.config import LogSettings

LEVELS = ("warning", "info", "debug")  # by how often -v is given


def add_log_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-v", "--verbose", action="count", default=0, help="say more; twice: say everything")
    parser.add_argument("--log-format", choices=("text", "json"), help="lines for people (default) or for machines")


def level_of(verbosity: int) -> str:
    return LEVELS[min(verbosity, len(LEVELS) - 1)]


def set_up_logging(verbosity: int, format: str | None = None) -> None:
    """For what has flags and no configuration: on stderr, warnings and worse unless asked for more."""
    from seamark.config import LogSettings

    # The choices of argparse, and the words above, are those of the settings.
    set_up(LogSettings(level=level_of(verbosity), format=format or "text"))  # type: ignore[arg-type]  # see above


def set_up(settings: LogSettings) -> None:
    """Have everything logged as the settings say; ``OSError`` if the file cannot be written."""
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    if settings.file:
        from logging.handlers import WatchedFileHandler

        handler = WatchedFileHandler(settings.file)  # may be moved away by logrotate at any time
    if settings.format == "json":
        handler.setFormatter(JsonFormatter())
    else:
        stamp = "%Y-%m-%d %H:%M:%S" if settings.file else "%H:%M:%S"
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s", stamp))
    logging.basicConfig(level=settings.level.upper(), handlers=[handler], force=True)


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        import msgspec

        line = {
            "time": datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()
