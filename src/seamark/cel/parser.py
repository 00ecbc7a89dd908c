"""Tokens as a tree, by recursive descent.  Macros such as ``all`` and ``has`` become nodes of their own.

The words of syntax errors are those of ANTLR, by which Kubernetes parses: it deletes one token that should not be there
(*extraneous*), adds one that is missing, or gives up (*mismatched*).
"""

from __future__ import annotations

from seamark.cel.errors import CompileError, Mistake
from seamark.cel.lexer import END, Token, tokens, unquoted
from seamark.cel.nodes import Bind, Call, Entry, Ident, Listing, Literal, Loop, Mapping, Node, Select
from seamark.cel.values import Uint

DEEPEST = 100  # nested parentheses, calls and operators
_LONGEST = 100_000
_MOST_DIGITS = 30  # of a number

_RESERVED = frozenset(("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop"))
_RESERVED |= {"package", "namespace", "return", "var", "void", "while"}
_STARTS = ("[", "{", "(", ".", "-", "!", "true", "false", "null", "float", "int", "uint", "string", "bytes", "ident")
_SHOWN = {
    "float": "NUM_FLOAT",
    "int": "NUM_INT",
    "uint": "NUM_UINT",
    "string": "STRING",
    "bytes": "BYTES",
    "ident": "IDENTIFIER",
    "escaped": "ESC_IDENTIFIER",
    END: END,
}
# How tightly operators bind, from loosest to tightest.
_LEVELS = (
    ("||",),
    ("&&",),
    ("<", "<=", ">=", ">", "==", "!=", "in"),
    ("+", "-"),
    ("*", "/", "%"),
)
_NAMES = {"in": "@in"}
# Macros of one variable, then of two: how many parts they can have.
_ONE = {
    "all": (1,),
    "exists": (1,),
    "exists_one": (1,),
    "existsOne": (1,),
    "map": (1, 2),
    "filter": (1,),
    "sortBy": (1,),
}
_TWO = {
    "all": (1,),
    "exists": (1,),
    "exists_one": (1,),
    "existsOne": (1,),
    "transformList": (1, 2),
    "transformMap": (1, 2),
    "transformMapEntry": (1, 2),
}


class _Stop(Exception):
    """The parser gives up; the mistake is already noted."""


def parse(text: str) -> Node:
    """The tree of an expression; raises :class:`CompileError`."""
    mistakes: list[Mistake] = []
    if len(text) > _LONGEST:
        raise CompileError(
            text, [Mistake(0, f"expression code point size exceeds limit: size: {len(text)}, limit {_LONGEST}")]
        )
    parser = _Parser(tokens(text, mistakes), mistakes)
    node = parser.whole()
    if mistakes or node is None:
        raise CompileError(text, mistakes)
    return node


class _Parser:
    def __init__(self, found: list[Token], mistakes: list[Mistake]) -> None:
        self._tokens = found
        self._next = 0
        self._mistakes = mistakes
        self._depth = 0

    def whole(self) -> Node | None:
        try:
            node = self._expression()
            if self._token.kind != END:
                lonely = self._tokens[self._next + 1].kind == END
                self._wrong("extraneous" if lonely else "mismatched", (END,))
            return node
        except _Stop:
            return None

    # --- tokens --------------------------------------------------------------------------------------

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._token
        self._next += token.kind != END
        return token

    def _found(self, *kinds: str) -> Token | None:
        return self._take() if self._token.kind in kinds else None

    def _mistake(self, at: int, message: str) -> None:
        self._mistakes.append(Mistake(at, message))

    def _wrong(self, word: str, wanted: tuple[str, ...]) -> None:
        token = self._token
        names = [_SHOWN.get(kind, f"'{kind}'") for kind in wanted]
        expecting = names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"
        self._mistake(token.at, f"Syntax error: {word} input '{token.text}' expecting {expecting}")

    def _need(self, kind: str, *others: str) -> Token:
        """The next token, which must be of this kind; ``others`` could have been there too."""
        if self._token.kind == kind:
            return self._take()
        following = self._tokens[min(self._next + 1, len(self._tokens) - 1)]
        if self._token.kind != END and following.kind == kind:
            self._wrong("extraneous", (*others, kind))
            self._take()
            return self._take()
        if kind in (")", "]", "}") and self._token.kind in (END, ")", "]", "}", ","):
            self._mistake(self._token.at, f"Syntax error: missing '{kind}' at '{self._token.text}'")
            return self._token
        self._wrong("mismatched", (*others, kind))
        raise _Stop

    # --- operators -----------------------------------------------------------------------------------

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            self._mistake(self._token.at, f"expression recursion limit exceeded: {DEEPEST}")
            raise _Stop
        node = self._binary(0)
        if token := self._found("?"):
            yes = self._binary(0)
            self._need(":")
            node = Call("_?_:_", None, [node, yes, self._expression()], at=token.at)
        self._depth -= 1
        return node

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        node = self._binary(level + 1)
        while token := self._found(*_LEVELS[level]):
            function = _NAMES.get(token.kind, f"_{token.kind}_")
            node = Call(function, None, [node, self._binary(level + 1)], at=token.at)
        return node

    def _unary(self) -> Node:
        token = self._token
        if token.kind not in ("-", "!"):
            return self._member(self._primary())
        if token.kind == "-" and self._tokens[self._next + 1].kind in ("int", "float"):
            self._take()
            return self._member(self._number(self._take(), "-", token.at))
        count = 0
        while self._found(token.kind):
            count += 1
        node = self._member(self._primary())
        return Call(f"{token.kind}_", None, [node], at=token.at) if count % 2 else node

    # --- members -------------------------------------------------------------------------------------

    def _member(self, node: Node) -> Node:
        while token := self._found(".", "["):
            optional = self._found("?") is not None
            if token.kind == "[":
                index = self._expression()
                self._need("]")
                node = Call("_[?_]" if optional else "_[_]", None, [node, index], at=token.at)
                continue
            name = self._found("ident", "escaped") or self._need("ident")
            bracket = None if optional or name.kind == "escaped" else self._found("(")
            if bracket is None:
                node = Select(node, name.text.strip("`"), optional=optional, at=token.at)
            else:
                arguments = self._arguments()
                node = self._method(node, name.text, arguments, bracket.at)
        return node

    def _arguments(self) -> list[Node]:
        found: list[Node] = []
        if self._token.kind != ")":
            found.append(self._expression())
            while self._found(","):
                found.append(self._expression())
        self._need(")")
        return found

    def _primary(self) -> Node:
        token = self._token
        match token.kind:
            case "int" | "uint" | "float":
                return self._number(self._take(), "", token.at)
            case "string" | "bytes":
                self._take()
                try:
                    return Literal(unquoted(token.text), at=token.at)
                except ValueError as error:
                    self._mistake(token.at, str(error))
                    return Literal(None, at=token.at)
            case "true" | "false" | "null":
                self._take()
                return Literal({"true": True, "false": False, "null": None}[token.kind], at=token.at)
            case "(":
                self._take()
                node = self._expression()
                self._need(")")
                return node
            case "[":
                return self._list(self._take())
            case "{":
                return self._map(self._take())
            case "ident" | ".":
                return self._named()
        following = self._tokens[min(self._next + 1, len(self._tokens) - 1)].kind
        if token.kind != END and following in _STARTS:
            self._wrong("extraneous", _STARTS)
            self._take()
            return self._primary()
        self._wrong("mismatched", _STARTS)
        raise _Stop

    def _number(self, token: Token, sign: str, at: int) -> Node:
        text = token.text
        if token.kind == "float":
            value = float(sign + text)
            if value in (float("inf"), float("-inf")):
                self._mistake(at, "invalid double literal")
            return Literal(value, at=at)
        digits = text.rstrip("uU") if token.kind == "uint" else text
        base = 16 if digits.startswith("0x") else 10
        # Python refuses to read more than 4,300 digits; so many as these are too large in any case.
        number = int(sign + (digits.removeprefix("0x").lstrip("0")[:_MOST_DIGITS] or "0"), base)
        if token.kind == "uint":
            if number >= 1 << 64:
                self._mistake(at, "invalid uint literal")
            return Literal(Uint(number), at=at)
        if not -(1 << 63) <= number < 1 << 63:
            self._mistake(at, "invalid int literal")
        return Literal(number, at=at)

    def _list(self, start: Token) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        while self._token.kind != "]":
            if self._found("?"):
                optional.add(len(elements))
            elements.append(self._expression())
            if not self._found(","):
                break
        self._need("]")
        return Listing(elements, frozenset(optional), at=start.at)

    def _map(self, start: Token) -> Node:
        entries: list[Entry] = []
        while self._token.kind != "}":
            optional = self._found("?") is not None
            key = self._expression()
            colon = self._need(":")
            entries.append(Entry(key, self._expression(), optional, at=colon.at))
            if not self._found(","):
                break
        self._need("}")
        return Mapping(entries, at=start.at)

    def _entries(self) -> list[Entry]:
        """The fields of an object, whose names are no expressions."""
        entries: list[Entry] = []
        while self._token.kind != "}":
            optional = self._found("?") is not None
            name = self._found("ident", "escaped") or self._need("ident")
            colon = self._need(":")
            key = Literal(name.text.strip("`"), at=name.at)
            entries.append(Entry(key, self._expression(), optional, at=colon.at))
            if not self._found(","):
                break
        self._need("}")
        return entries

    def _named(self) -> Node:
        """A variable, a call, or an object of a named type."""
        dot = self._found(".")
        token = self._need("ident")
        name = ("." if dot else "") + token.text
        if self._is_object():
            while self._found("."):
                name += f".{self._need('ident').text}"
            start = self._need("{")
            return Mapping(self._entries(), name.lstrip("."), at=start.at)
        if token.text in _RESERVED:
            self._mistake(token.at, f"reserved identifier: {token.text}")
        if bracket := self._found("("):
            arguments = self._arguments()
            if token.text == "has" and len(arguments) == 1 and not dot:
                return self._has(arguments[0], bracket.at)
            return Call(name, None, arguments, at=bracket.at)
        return Ident(name, at=token.at)

    def _is_object(self) -> bool:
        """Whether ``.name.name{`` follows."""
        ahead = self._next
        while self._tokens[ahead].kind == "." and self._tokens[ahead + 1].kind == "ident":
            ahead += 2
        return self._tokens[ahead].kind == "{"

    # --- macros --------------------------------------------------------------------------------------

    def _has(self, argument: Node, at: int) -> Node:
        if not isinstance(argument, Select) or argument.test:
            self._mistake(argument.at, "invalid argument to has() macro")
            return argument
        return Select(argument.operand, argument.field, test=True, optional=argument.optional, at=at)

    def _method(self, target: Node, name: str, arguments: list[Node], at: int) -> Node:
        count = len(arguments)
        if name in ("optMap", "optFlatMap") and count == 2:
            return Bind(name, target, self._variable(arguments[0]), arguments[1], at=at)
        # all and exists have one variable or two, map has one always.
        if name in _TWO and count - 2 in _TWO[name]:
            variables = 2
        elif name in _ONE and count - 1 in _ONE[name]:
            variables = 1
        else:
            return Call(name, target, arguments, at=at)
        names = tuple(self._variable(argument) for argument in arguments[:variables])
        if len(set(names)) != len(names):
            self._mistake(arguments[1].at, f"duplicate variable name: {names[0]}")
        macro = "exists_one" if name == "existsOne" else name
        return Loop(macro, target, names, arguments[variables:], at=at)

    def _variable(self, node: Node) -> str:
        if isinstance(node, Ident) and not node.name.startswith("."):
            if node.name == "__result__":
                self._mistake(node.at, "iteration variable overwrites accumulator variable")
            return node.name
        self._mistake(node.at, "argument must be a simple name")
        return "_"


# --- back to text ---------------------------------------------------------------------------------------


def unparsed(node: Node) -> str:
    """A text that parses to the same tree."""
    match node:
        case Literal(value):
            return _literal(value)
        case Ident(name):
            return name
        case Select(operand, name, test, optional):
            text = f"{_owner(operand)}.{'?' if optional else ''}{name if name.isidentifier() else f'`{name}`'}"
            return f"has({text})" if test else text
        case Call("_?_:_", None, arguments):
            return "({} ? {} : {})".format(*map(unparsed, arguments))
        case Call("_[_]" | "_[?_]" as function, None, [owner, index]):
            return f"{_owner(owner)}[{'?' if '?' in function else ''}{unparsed(index)}]"
        case Call("-_" | "!_" as function, None, [operand]):
            return f"{function[0]}({unparsed(operand)})"
        case Call("@in", None, [left, right]):
            return f"({unparsed(left)} in {unparsed(right)})"
        case Call(function, None, [left, right]) if function.startswith("_"):
            return f"({unparsed(left)} {function.strip('_')} {unparsed(right)})"
        case Call(function, target, arguments):
            listed = ", ".join(map(unparsed, arguments))
            return f"{function}({listed})" if target is None else f"{_owner(target)}.{function}({listed})"
        case Listing(elements, optional):
            return "[" + ", ".join(("?" if i in optional else "") + unparsed(e) for i, e in enumerate(elements)) + "]"
        case Mapping(entries, name):
            return f"{name}{{" + ", ".join(_entry(entry, name) for entry in entries) + "}"
        case Loop(macro, over, variables, parts):
            return f"{_owner(over)}.{macro}({', '.join([*variables, *map(unparsed, parts)])})"
        case Bind(macro, value, name, body):
            return f"{_owner(value)}.{macro}({name}, {unparsed(body)})"
    raise TypeError(f"not a node: {node!r}")


def _entry(entry: Entry, name: str) -> str:
    key = str(entry.key.value) if name and isinstance(entry.key, Literal) else unparsed(entry.key)
    return f"{'?' if entry.optional else ''}{key}: {unparsed(entry.value)}"


def _owner(node: Node) -> str:
    text = unparsed(node)
    return f"({text})" if isinstance(node, Literal) or text.startswith(("-", "!")) else text


def _literal(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Uint():
            return f"{int(value)}u"
        case bytes():
            return 'b"' + "".join(f"\\x{byte:02x}" for byte in value) + '"'
        case str():
            return '"' + "".join(c if c.isalnum() and c.isascii() else f"\\U{ord(c):08x}" for c in value) + '"'
        case float():
            text = repr(value)
            return text if "." in text or "e" in text else f"{text}.0"
        case _:
            return str(value)
