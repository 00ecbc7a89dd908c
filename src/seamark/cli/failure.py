"""An expected failure of a command: one line for a person, and the exit code for a script."""

from __future__ import annotations


class Failure(Exception):
    """``code`` 1: it could not be done; 2: the command line or the configuration is wrong."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code

    @property
    def line(self) -> str:
        """What is printed."""
        return f"seamark: {self}"


class Refusal(Failure):
    """What kubectl refuses as well, and as it says so: the everyday verbs are to be recognised."""

    @property
    def line(self) -> str:
        return f"error: {self}"


class ServerFailure(Failure):
    """What the server refused, in the words kubectl uses for it."""

    @property
    def line(self) -> str:
        return str(self)
