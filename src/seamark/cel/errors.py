"""What can go wrong with an expression.

CelError
├── CompileError       the text is no expression, or its types do not fit; says where, with a picture
├── EvaluationError    a value is missing, out of range or of the wrong type; logical operators may absorb it
└── CostError          the evaluation costs more than it may; nothing absorbs it
"""

from __future__ import annotations

import msgspec


class CelError(Exception):
    """Any failure of an expression."""


class EvaluationError(CelError):
    """The expression has no value for these variables; the text is Kubernetes' own."""


class CostError(CelError):
    """The evaluation was stopped because of its cost."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class Mistake(msgspec.Struct, frozen=True):
    """One thing that is wrong with the text of an expression, and where (an offset in characters)."""

    at: int
    message: str


class CompileError(CelError):
    """Everything that is wrong with the text of an expression, each with a picture of its place."""

    def __init__(self, text: str, mistakes: list[Mistake]) -> None:
        self.mistakes = sorted(set(mistakes), key=lambda mistake: mistake.at)
        super().__init__("\n".join(_shown(text, mistake) for mistake in self.mistakes))


def _shown(text: str, mistake: Mistake) -> str:
    before = text[: mistake.at]
    line = before.count("\n")
    column = len(before) - (before.rfind("\n") + 1)
    shown = text.split("\n")[line].replace("\t", " ")
    picture = "".join("." if letter.isascii() else "．" for letter in shown[:column].ljust(column))
    arrow = "^" if column >= len(shown) or shown[column].isascii() else "＾"
    return f"ERROR: <input>:{line + 1}:{column + 1}: {mistake.message}\n | {shown}\n | {picture}{arrow}"


def no_such_overload() -> EvaluationError:
    return EvaluationError("no such overload")


def no_such_key(key: object) -> EvaluationError:
    return EvaluationError(f"no such key: {key}")
