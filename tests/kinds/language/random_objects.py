"""Random objects of some kinds, for properties of what reads and writes them."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from hypothesis import strategies as st

from seamark.kinds.language.shape import ListOf, MapOf, Scalar, Type

CORE = "io.k8s.api.core.v1."
TEXTS = {
    "bytes": st.binary(max_size=4).map(lambda raw: b64encode(raw).decode()),
    "time": st.sampled_from(["2020-01-02T03:04:05Z", "0001-01-01T00:00:00Z", "2020-01-02T03:04:05.5-07:00"]),
    "microtime": st.sampled_from(["2020-01-02T03:04:05.000006Z", "0001-01-01T00:00:00.000000Z"]),
    "quantity": st.sampled_from(["0", "1", "100m", "1.5Gi", "1e3", "-7Ki", "0.0001"]) | st.integers(-9, 9999),
    "int-or-string": st.integers(-5, 5) | st.text(max_size=3),
    "string": st.text(max_size=3),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
    "any": st.dictionaries(st.text(max_size=2), st.none() | st.integers()),
}


def values(type_: Type, depth: int = 3) -> st.SearchStrategy[Any]:
    if isinstance(type_, Scalar):
        return TEXTS[type_.name]
    if isinstance(type_, ListOf):
        return st.lists(st.none() | values(type_.of, depth), max_size=2)
    if isinstance(type_, MapOf):
        return st.dictionaries(st.text(max_size=2), st.none() | values(type_.of, depth), max_size=2)
    if depth == 0:
        return st.just({})
    fields = {
        name: st.none() | st.deferred(lambda f=field: values(f.type, depth - 1)) for name, field in type_.fields.items()
    }
    chosen = st.lists(st.sampled_from(sorted(fields)), max_size=4, unique=True) if fields else st.just([])
    return chosen.flatmap(lambda names: st.fixed_dictionaries({name: fields[name] for name in names}))


KINDS = [CORE + "Service", CORE + "Pod", CORE + "Node", CORE + "Event", "io.k8s.api.discovery.v1.EndpointSlice"]
