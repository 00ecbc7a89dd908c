"""An expected failure of a command: a line for the user, and an exit code for scripts."""

from __future__ import annotations

# What a terminal would act on; texts of files and servers are part of many sentences.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}


def harmless(text: str) -> str:
    """The text with its control characters shown, not sent."""
    return text.translate(_CONTROLS)


class Failure(Exception):
    """Printed as ``seamark: …``.  ``code`` 1: it could not be done; 2: the command line or configuration is wrong."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code

    @property
    def line(self) -> str:
        """What is printed."""
        return f"seamark: {harmless(str(self))}"


class ServerFailure(Failure):
    """What the server refused, printed in the words that kubectl uses for it."""

    @property
    def line(self) -> str:
        return harmless(str(self))
