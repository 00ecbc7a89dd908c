"""Accept headers."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seamark.api.http.negotiate import (
    MOST_PARAMETERS,
    MOST_TYPES,
    NONE,
    PLAIN,
    STORED,
    STREAMED,
    Representation,
    negotiate,
    parse_accept,
)
from seamark.errors import NotAcceptable

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "allowed", "found"),
    [
        ("", STORED, PLAIN),
        ("*/*", STORED, PLAIN),
        ("application/*", STORED, PLAIN),
        ("APPLICATION/JSON", STORED, PLAIN),
        ("application/yaml", STORED, Representation("yaml")),
        ("text/html, application/yaml;q=0.9, */*;q=0.8", STORED, Representation("yaml")),
        ("application/json;q=0.1,application/yaml;q=0.5", STORED, Representation("yaml")),
        ("*/*,application/yaml", STORED, Representation("yaml")),  # what says more comes first
        ("application/*, application/yaml", STORED, Representation("yaml")),
        ("application/json,application/yaml", STORED, PLAIN),
        ("application/json;q=nonsense,application/yaml", STORED, Representation("yaml")),
        ("application/vnd.kubernetes.protobuf,application/json", STORED, PLAIN),
        ("application/json;stream=watch", STORED, PLAIN),
        ("application/json;stream=sideways, application/yaml", STORED, Representation("yaml")),
        (TABLE, STORED, Representation(as_="Table", version="v1")),
        (f"{TABLE.replace('v1;', 'v1beta1;')}", STORED, Representation(as_="Table", version="v1beta1")),
        (f"{TABLE.replace('v1;', 'v2;')},application/json", STORED, PLAIN),
        (f"{TABLE}, application/json", NONE, PLAIN),
        (
            " application/yaml ; as=Table ; v=v1 ; g=meta.k8s.io",
            STORED,
            Representation("yaml", as_="Table", version="v1"),
        ),
        ("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json", STREAMED, PLAIN),
        ("application/json;pretty=1", STORED, PLAIN),
    ],
)
def test_the_best_that_both_sides_can_do(accept, allowed, found):
    assert negotiate(accept, allowed) == found


@pytest.mark.parametrize("accept", ["text/html", "application/json;q=0", "application/vnd.kubernetes.protobuf"])
def test_nothing_fits(accept):
    with pytest.raises(NotAcceptable) as refused:
        negotiate(accept, STORED)
    assert refused.value.details == {}
    assert refused.value.message.startswith("406: Not Acceptable\n\nAvailable representations: application/json")


@pytest.mark.parametrize("accept", [TABLE.replace("Table", "Chair"), TABLE.replace("meta.k8s.io", "x")])
def test_an_unknown_transformation(accept):
    with pytest.raises(NotAcceptable) as refused:
        negotiate(accept, STORED)
    assert refused.value.details is None
    assert refused.value.message.startswith("only the following media types are accepted: application/json, ")


PIECES = ["application/json", "application/yaml", "application/*", "*/*", "text/html", ",", ";", "q=0", "q=0.5", "q=x"]
PIECES += ["as=Table", "as=Chair", "v=v1", "g=meta.k8s.io", "stream=watch", "=", " ", "\t", "\0", "ä"]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
@example(TABLE)
def test_any_header_is_read_or_refused(accept):
    parse_accept(accept)
    try:
        found = negotiate(accept, STORED)
    except NotAcceptable:
        return
    assert found.format != "yaml" or "application/yaml" in accept
    assert found.as_ in ("", "Table")
    assert not found.as_ or "as=Table" in accept


def test_of_very_many_types_and_parameters_the_first_are_looked_at() -> None:
    assert len(parse_accept("a/b," * 40_000)) == MOST_TYPES
    assert len(parse_accept("a/b" + "".join(f";p{n}=v" for n in range(10_000)))[0].parameters) < MOST_PARAMETERS
    assert negotiate("a/b," * (MOST_TYPES - 1) + "application/yaml", STORED) == Representation("yaml")
    with pytest.raises(NotAcceptable):
        negotiate("a/b," * MOST_TYPES + "application/yaml", STORED)
