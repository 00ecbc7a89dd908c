"""The log of a long-running command: lines for people, or JSON for machines."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from seamark.cli.failure import Failure

if TYPE_CHECKING:
    from seamark.config import LogSettings


def set_up(settings: LogSettings) -> None:
    """Log as the settings say; ``Failure`` if the file cannot be written."""
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    if settings.file:
        try:
            handler = _private_file_handler(settings.file)
        except OSError as error:
            raise Failure(f"cannot write the log file {settings.file}: {error.strerror}") from error
    if settings.format == "json":
        handler.setFormatter(JsonFormatter())
    else:
        stamp = "%Y-%m-%d %H:%M:%S" if settings.file else "%H:%M:%S"
        handler.setFormatter(LineFormatter("%(asctime)s %(levelname)s %(name)s %(message)s", stamp))
    logging.basicConfig(level=settings.level.upper(), handlers=[handler], force=True)


def _private_file_handler(path: str) -> logging.Handler:
    """Writes to a file that only its owner may read, and that logrotate may move away at any time."""
    from logging.handlers import WatchedFileHandler
    from typing import TextIO

    from seamark.private_files import open_log

    class PrivateFileHandler(WatchedFileHandler):
        def _open(self) -> TextIO:  # type: ignore[override]  # always a text file, as the base class opens one too
            return open(self.baseFilename, "a", encoding="utf-8", opener=open_log)

    return PrivateFileHandler(path)


class LineFormatter(logging.Formatter):
    """One line for each message, whatever it quotes: users choose names and paths.

    A line break there would let them forge lines, and an escape sequence change what a terminal shows.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # the base class calls it
        if not record.message.isprintable():
            record.message = "".join(map(_visible, record.message))
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802  # likewise
        return "\n".join("".join(map(_visible, line)) for line in super().formatException(ei).split("\n"))


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


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
