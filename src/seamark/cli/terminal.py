"""Output for terminals that must not go into pipes: colours, and a line of progress that is overwritten.

``NO_COLOR`` (https://no-color.org) and TERM=dumb turn colours off.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    import threading

STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}

PATIENCE = 1.0  # seconds before progress is shown
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def colourful(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether to use colours on this stream."""
    if environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def styled(text: str, style: str, *, colour: bool) -> str:
    """The text in a style of ``STYLES``; just the text where there is no colour."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if colour and style and text else text


def columns(stream: TextIO, environ: Mapping[str, str] = os.environ) -> int | None:
    """How wide the output may be: as COLUMNS or the terminal says; None in a pipe, where nothing limits it."""
    if (told := environ.get("COLUMNS", "")).isdecimal() and int(told):
        return int(told)
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None  # a terminal that does not say how wide it is


def width(text: str) -> int:
    """How many columns a terminal needs for it: wide characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    import unicodedata

    taken = 0
    for character in text:
        if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
            continue
        taken += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return taken


def folded(text: str, room: int | None, *, hang: int = 0) -> str:
    """The text in lines of at most ``room`` columns, broken between words; those after the first are indented."""
    if room is None or width(text) <= room:
        return text
    import textwrap

    words = text.lstrip(" ")
    return textwrap.fill(
        words,
        max(room, hang + 20),
        initial_indent=" " * (len(text) - len(words)),
        subsequent_indent=" " * hang,
        break_long_words=False,
        break_on_hyphens=False,
    )


def indented(examples: str, room: int | None) -> str:
    """The lines of examples; the comment of a line that is too long goes above it, so that it can be copied."""
    lines: list[str] = []
    for line in examples.strip("\n").split("\n"):
        command, mark, comment = line.rpartition("  # ")
        if mark and room is not None and len(line) + 2 > room:
            lines += [folded(f"  # {comment}", room, hang=4), f"  {command}"]
        else:
            lines.append(f"  {line}")
    return "\n".join(line.rstrip() for line in lines)


class Progress:
    """``with Progress("waiting …"):`` shows the text while the block takes longer than a moment.

    On a terminal it is a line that is overwritten and goes away again.  In a pipe it is nothing.
    """

    def __init__(self, text: str, stream: TextIO | None = None) -> None:
        import threading

        self._text = text
        self._stream = sys.stderr if stream is None else stream
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._stream.isatty() and os.environ.get("TERM") != "dumb":
            import threading

            self._thread = threading.Thread(target=self._turn, name="progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.done()

    def done(self) -> None:
        """Remove the line."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _turn(self) -> None:
        if self._ended.wait(PATIENCE):
            return
        frame = 0
        while not self._ended.wait(0.1):
            self._stream.write(f"\r\x1b[2K{FRAMES[frame % len(FRAMES)]} {self._text}")
            self._stream.flush()
            frame += 1
        self._stream.write("\r\x1b[2K")
        self._stream.flush()
