"""The expressions by which claims and classes select devices: what they can name, and what they have to evaluate to."""

from __future__ import annotations

import re
from functools import cache

from seamark.cel import CompileError, Environment
from seamark.cel.types import BOOL, Type, map_of, object_of, opaque
from seamark.kinds.expressions.environments import environment
from seamark.kinds.values.fields import Errors, forbidden, invalid, too_long

_LONGEST = 10 * 1024
_HIGHEST_COST = 1_000_000
_MOST_ATTRIBUTES = 32
_LONGEST_DOMAIN = 63
_LONGEST_IDENTIFIER = 32
_LONGEST_VALUE = 64

# What Kubernetes offers here beside its libraries, and this compiler does not know.
_foreign = re.compile(r"\bcel\s*\.\s*bind\s*\(|\.\s*includes\s*\(")


@cache
def _environment() -> Environment:
    domain, identifier = Type("string", most=_LONGEST_DOMAIN), Type("string", most=_LONGEST_IDENTIFIER)

    def by_name(value: Type) -> Type:
        return map_of(domain, map_of(identifier, value, _MOST_ATTRIBUTES), _MOST_ATTRIBUTES)

    device = {
        "driver": domain,
        "attributes": by_name(Type("dyn", most=_LONGEST_VALUE)),
        "capacity": by_name(opaque("kubernetes.Quantity")),
        "allowMultipleAllocations": BOOL,
    }
    return environment({"device": object_of("kubernetes.DRADevice", device)})


def expression_mistakes(text: str, path: str) -> Errors:
    """What is wrong with a new expression; one that uses what is not known here is taken as it is."""
    if len(text.encode()) > _LONGEST:
        return [too_long(path, _LONGEST)]
    if _foreign.search(text):
        return []
    try:
        program = _environment().compile(text)
    except CompileError as error:
        return [invalid(path, text, f"compilation failed: {error}")]
    if program.type.kind not in ("bool", "dyn"):
        return [invalid(path, text, f"must evaluate to bool or the unknown type, not {program.type}")]
    if program.cost_estimate.most > _HIGHEST_COST:
        return [forbidden(path, "too complex, exceeds cost limit")]
    return []
