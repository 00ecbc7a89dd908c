"""An expected failure of a command: a line for the user, and an exit code for scripts."""

from __future__ import annotations


class Failure(Exception):
    """Printed as ``seamark: …``.  ``code`` 1: it could not be done; 2: the command line or configuration is wrong."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code

    @property
    def line(self) -> str:
        """What is printed."""
        return f"seamark: {self}"


class ServerFailure(Failure):
    """What the server refused, printed in the words that kubectl uses for it."""

    @property
    def line(self) -> str:
        return str(self)
