"""Label selectors and field selectors: parsing, matching, and Kubernetes' messages about bad ones.

    selector     = requirement *("," requirement) | ""
    requirement  = KEY | "!" KEY
                 | KEY ("=" | "==" | "!=" | ">" | "<") [VALUE]
                 | KEY ("in" | "notin") "(" [VALUE *("," [VALUE])] ")"

``in`` and ``notin`` are operators only in an operator's position; elsewhere they are ordinary words.  Field selectors
support only ``=``, ``==`` and ``!=``; a backslash escapes ``\\``, ``,`` and ``=`` in their values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import inf
from typing import Any, Literal

import msgspec

from seamark.errors import BadRequest
from seamark.kinds.values.fields import FieldError, invalid, one_message
from seamark.kinds.values.metadata import label_value, qualified_name
from seamark.kinds.values.numbers import int64
from seamark.remembering import remembered

Operator = Literal["=", "!=", "in", "notin", "exists", "!", "gt", "lt"]

_BINARY: dict[str, Operator] = {
    "in": "in",
    "notin": "notin",
    "=": "=",
    "==": "=",
    "!=": "!=",
    ">": "gt",
    "<": "lt",
}
_BINARY_WORDS = "in, notin, =, ==, !=, gt, lt"
_EXPRESSION_OPERATORS: dict[str, Operator] = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}

_token = re.compile(r"!=|==|[=!(),<>]|[^=!(),<> \t\r\n]+")
_SPECIAL = frozenset(("=", "==", "!=", "!", "(", ")", ",", "<", ">"))
_END = ""


class Requirement(msgspec.Struct, frozen=True):
    """One condition on labels; ``values`` are sorted, and empty for ``exists`` and ``!``."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "=" | "in":
                return value in self.values
            case "!=" | "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case "gt" | "lt":
                number = None if value is None else int64(value)
                limit = int64(self.values[0])
                if number is None or limit is None:
                    return False
                return number > limit if self.operator == "gt" else number < limit

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(self.values)})"
            case "gt" | "lt":
                return f"{self.key}{'>' if self.operator == 'gt' else '<'}{self.values[0]}"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"


class _Demand:
    """What all requirements about one label together demand of its value."""

    __slots__ = ("_above", "_below", "_numeric", "_unwanted", "_wanted", "absence", "presence")

    def __init__(self, requirements: Iterable[Requirement]) -> None:
        self.presence = self.absence = False  # whether it must be there, and whether it must not
        self._wanted: frozenset[str] | None = None  # None for all
        self._unwanted: set[str] = set()
        self._numeric = False
        self._above: float = -inf
        self._below: float = inf
        for each in requirements:
            match each.operator:
                case "=" | "in":
                    self._want(each.values)
                case "!=" | "notin":
                    self._unwanted.update(each.values)
                case "exists":
                    self.presence = True
                case "!":
                    self.absence = True
                case "gt" | "lt":
                    self.presence = self._numeric = True
                    limit = int64(each.values[0])
                    if limit is None:
                        self._want(())
                    elif each.operator == "gt":
                        self._above = max(limit, self._above)
                    else:
                        self._below = min(limit, self._below)

    def _want(self, values: Iterable[str]) -> None:
        self.presence = True
        self._wanted = frozenset(values) if self._wanted is None else self._wanted.intersection(values)

    def holds(self, value: str) -> bool:
        """Whether the label may be there with this value."""
        if self.absence or value in self._unwanted or (self._wanted is not None and value not in self._wanted):
            return False
        if not self._numeric:
            return True
        number = int64(value)
        return number is not None and self._above < number < self._below


class LabelSelector:
    """Matches if all requirements hold.  Without requirements it matches everything; :data:`NOTHING` matches nothing.

    ``equalities`` are the label pairs of a selector that has no other requirements (``a=b,c=d``), else None; indexes
    and :meth:`matches` use them, because they are faster.
    """

    __slots__ = ("_needed", "_pairs", "_refused", "equalities", "requirements")

    def __init__(self, requirements: Sequence[Requirement]) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda requirement: requirement.key))
        pairs = {r.key: r.values[0] for r in self.requirements if r.operator in ("=", "in") and len(r.values) == 1}
        # "a=1,a=2" gives only one pair, so its requirements are kept, which never match.
        self.equalities: Mapping[str, str] | None = pairs if len(pairs) == len(self.requirements) else None
        self._pairs = tuple(pairs.items()) if self.equalities is not None else None
        # The demands on labels that must be there, and on those that need not be.
        self._needed: dict[str, _Demand] = {}
        self._refused: dict[str, _Demand] = {}
        if self._pairs is None:
            for key, group in groupby(self.requirements, key=lambda requirement: requirement.key):
                demand = _Demand(group)
                (self._needed if demand.presence else self._refused)[key] = demand

    @property
    def empty(self) -> bool:
        """Whether it matches everything."""
        return not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        get = labels.get
        if self._pairs is None:
            # Not every requirement is looked at: there may be thousands of them, and as many objects.
            if len(self._needed) > len(labels):
                return False
            if any((value := get(key)) is None or not demand.holds(value) for key, demand in self._needed.items()):
                return False
            refused = self._refused
            found = labels if len(labels) < len(refused) else refused
            return all(demand.holds(labels[key]) for key in found if key in labels and (demand := refused.get(key)))
        for key, value in self._pairs:  # noqa: SIM110 - a generator would cost more than the comparison
            if get(key) != value:
                return False
        return True

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.requirements == self.requirements

    def __hash__(self) -> int:
        return hash((type(self), self.requirements))

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class _Nothing(LabelSelector):
    """Matches nothing, as an absent LabelSelector in an object does."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(())
        self.equalities = None

    @property
    def empty(self) -> bool:
        return False

    def matches(self, labels: Mapping[str, str]) -> bool:
        return False


EVERYTHING = LabelSelector(())
NOTHING: LabelSelector = _Nothing()


@remembered(1024)
def parse_labels(text: str) -> LabelSelector:
    """Parse a label selector; raises ``BadRequest`` with the API server's message."""
    return LabelSelector(list(_Parser(text).requirements())) if text else EVERYTHING


def from_label_selector(selector: Mapping[str, Any] | None) -> LabelSelector:
    """The selector for a LabelSelector object; None matches nothing, ``{}`` matches everything."""
    if selector is None:
        return NOTHING
    requirements = [
        _checked(Requirement(key, "=", (value,))) for key, value in (selector.get("matchLabels") or {}).items()
    ]
    for expression in selector.get("matchExpressions") or ():
        word = expression.get("operator", "")
        operator = _EXPRESSION_OPERATORS.get(word)
        if operator is None:
            raise BadRequest(f'"{word}" is not a valid label selector operator')
        values = tuple(sorted(set(expression.get("values") or ())))
        requirements.append(_checked(Requirement(expression.get("key", ""), operator, values)))
    return LabelSelector(requirements) if requirements else EVERYTHING


def from_pairs(pairs: Mapping[str, str]) -> LabelSelector:
    """The selector of a Service or ReplicationController: all pairs must match.  The pairs are not validated."""
    return LabelSelector([Requirement(key, "=", (value,)) for key, value in pairs.items()])


def _checked(requirement: Requirement) -> Requirement:
    if wrong := _mistakes(requirement):
        raise BadRequest(one_message([f"{error.field}: {error.message}" for error in wrong]))
    return requirement


def _mistakes(requirement: Requirement) -> list[FieldError]:
    key, operator, values = requirement.key, requirement.operator, requirement.values
    wrong = []
    if sentences := qualified_name(key):
        wrong.append(invalid("key", key, "; ".join(sentences)))
    if operator in ("in", "notin") and not values:
        wrong.append(invalid("values", list(values), "for 'in', 'notin' operators, values set can't be empty"))
    elif operator in ("exists", "!") and values:
        wrong.append(invalid("values", list(values), "values set must be empty for exists and does not exist"))
    elif operator in ("gt", "lt") and int64(values[0]) is None:
        wrong.append(invalid("values[0]", values[0], "for 'Gt', 'Lt' operators, the value must be an integer"))
    for i, value in enumerate(values):
        if sentences := label_value(value):
            wrong.append(invalid(f"values[{i}][{key}]", value, "; ".join(sentences)))
    return wrong


class _Parser:
    """A recursive descent parser; the end of the text is an empty token."""

    def __init__(self, text: str) -> None:
        self.tokens = _token.findall(text)
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else _END

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def requirements(self) -> Iterator[Requirement]:
        token = self.peek()
        if token == _END:
            return
        if not (_is_word(token) or token == "!"):
            raise BadRequest(f"found '{token}', expected: !, identifier, or 'end of string'")
        while True:
            try:
                yield self._requirement()
            except BadRequest as error:
                raise BadRequest(f"unable to parse requirement: {error.message}") from error
            separator = self.take()
            if separator == _END:
                return
            if separator != ",":
                raise BadRequest(f"found '{separator}', expected: ',' or 'end of string'")
            after = self.peek()
            if not (_is_word(after) or after == "!"):
                raise BadRequest(f"found '{after}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        key = self.take()
        negated = key == "!"
        if negated:
            key = self.take()
        if not _is_word(key):
            raise BadRequest(f"found '{key}', expected: identifier")
        if sentences := qualified_name(key):
            # A selector in a query has no path, which Go prints as <nil>.
            error = invalid("<nil>", key, "; ".join(sentences))
            raise BadRequest(f"{error.field}: {error.message}")
        if negated:
            return Requirement(key, "!")
        if self.peek() in (_END, ","):
            return Requirement(key, "exists")
        word = self.take()
        operator = _BINARY.get(word)
        if operator is None:
            raise BadRequest(f"found '{word}', expected: {_BINARY_WORDS}")
        values = self._set() if operator in ("in", "notin") else {self._value()}
        return _checked(Requirement(key, operator, tuple(sorted(values))))

    def _value(self) -> str:
        if self.peek() in (_END, ","):
            return ""
        token = self.take()
        if not _is_word(token):
            raise BadRequest(f"found '{token}', expected: identifier")
        return token

    def _set(self) -> set[str]:
        opening = self.take()
        if opening != "(":
            raise BadRequest(f"found '{opening}' expected: '('")
        first = self.peek()
        if not (_is_word(first) or first in (",", ")")):
            raise BadRequest(f"found '{first}', expected: ',', ')' or identifier")
        values = set()
        while True:
            # Between two separators there is a word, or nothing, which means the empty value.
            token = self.peek()
            if _is_word(token):
                values.add(self.take())
            elif token in (",", ")"):
                values.add("")
            else:
                raise BadRequest(f"found '{token}', expected: ',', or identifier")
            separator = self.take()
            if separator == ")":
                return values
            if separator != ",":
                raise BadRequest(f"found '{separator}', expected: ',' or ')'")


def _is_word(token: str) -> bool:
    return token != _END and token not in _SPECIAL


class FieldTerm(msgspec.Struct, frozen=True):
    path: str
    operator: Literal["=", "!="]
    value: str


class FieldSelector:
    """Matches if all terms hold; without terms it matches everything.  An absent field has the value ``""``."""

    __slots__ = ("_unwanted", "_wanted", "terms")

    def __init__(self, terms: Sequence[FieldTerm] = ()) -> None:
        self.terms = tuple(terms)
        self._wanted: dict[str, str] = {}
        self._unwanted: dict[str, set[str]] = {}
        for term in self.terms:
            if term.operator == "!=" or self._wanted.setdefault(term.path, term.value) != term.value:
                # A field cannot have two values, and the second one refuses the first.
                refused = term.value if term.operator == "!=" else self._wanted[term.path]
                self._unwanted.setdefault(term.path, set()).add(refused)

    @property
    def empty(self) -> bool:
        return not self.terms

    def matches(self, values: Mapping[str, str]) -> bool:
        return all(values.get(path, "") == value for path, value in self._wanted.items()) and not any(
            values.get(path, "") in refused for path, refused in self._unwanted.items()
        )

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.terms == self.terms

    def __hash__(self) -> int:
        return hash(self.terms)

    def required(self, path: str) -> str | None:
        """The value that this field must have, or None if the selector does not demand one."""
        return next((term.value for term in self.terms if term.path == path and term.operator == "="), None)

    def __str__(self) -> str:
        return ",".join(f"{term.path}{term.operator}{_escape(term.value)}" for term in self.terms)


_term = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_piece = re.compile(r"(?:[^\\,]|\\.|\\\Z)*", re.DOTALL)
_escaped = re.compile(r"\\(.?)|([,=])", re.DOTALL)


@remembered(1024)
def parse_fields(text: str) -> FieldSelector:
    """Parse a field selector; it does not check whether the kind has these fields."""
    terms = []
    for piece in sorted(_pieces(text)):
        if not piece:
            continue
        parts = _term.fullmatch(piece)
        if parts is None:
            raise BadRequest(f"invalid selector: '{text}'; can't understand '{piece}'")
        path, operator, value = parts.groups()
        terms.append(FieldTerm(path, "!=" if operator == "!=" else "=", _escaped.sub(_unescape, value)))
    return FieldSelector(tuple(terms))


def _pieces(text: str) -> Iterator[str]:
    """The parts of the text between unescaped commas."""
    at = 0
    while at <= len(text):
        found = _piece.match(text, at)
        assert found is not None, "the pattern matches the empty text"
        yield found.group()
        at = found.end() + 1


def _unescape(found: re.Match[str]) -> str:
    char, bare = found.groups()
    if bare:
        # Go prints the character as its number.
        raise BadRequest(f"invalid field selector: unescaped character in value: {ord(bare)}")
    if char not in ("\\", ",", "="):
        raise BadRequest(f"invalid field selector: invalid escape sequence: \\{char}")
    return str(char)


def _escape(value: str) -> str:
    return re.sub(r"([\\,=])", r"\\\1", value)
