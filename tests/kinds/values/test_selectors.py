"""Selectors: every operator, the sentences about bad ones, and printing that parses back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.errors import BadRequest
from seamark.kinds.values.selectors import (
    EVERYTHING,
    NOTHING,
    FieldSelector,
    FieldTerm,
    LabelSelector,
    Requirement,
    from_label_selector,
    from_pairs,
    parse_fields,
    parse_labels,
)

OBJECTS = {
    "a": {"app": "x", "tier": "front"},
    "b": {"app": "y", "tier": "back"},
    "c": {"app": "z"},
    "d": {"other": ""},
    "one": {"n": "1"},
    "ten": {"n": "10"},
    "text": {"n": "abc"},
}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", "a b c d one ten text"),
        ("app=x", "a"),
        ("app==y", "b"),
        (" app = y ", "b"),
        ("app!=x,app", "b c"),
        ("app!=x,!n", "b c d"),
        ("app=x,tier=back", ""),
        ("app=x,app=y", ""),
        ("app=x,app=x", "a"),
        ("app in (x,y)", "a b"),
        ("app in(x)", "a"),
        ("tier,app in (x, y ,z)", "a b"),
        ("app notin (x),!n", "b c d"),
        ("app notin (x),app", "b c"),
        ("!app,!n", "d"),
        ("other=", "d"),
        ("other in ()", "d"),
        ("app in ()", ""),
        ("other in (a,)", "d"),
        ("other in (,a)", "d"),
        ("n>5", "ten"),
        ("n<5", "one"),
        ("n>1,n<11", "ten"),
        ("n > 0", "one ten"),
    ],
)
def test_selects(text, names):
    assert [name for name, labels in OBJECTS.items() if parse_labels(text).matches(labels)] == names.split()


def test_keywords_are_ordinary_words_elsewhere():
    assert parse_labels("in in (in,notin)").matches({"in": "notin"})
    assert parse_labels("notin=in").matches({"notin": "in"})
    assert parse_labels("!in").matches({})


NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("app=x,,", "found ',', expected: identifier after ','"),
        ("app=x,", "found '', expected: identifier after ','"),
        ("app in x", "unable to parse requirement: found 'x' expected: '('"),
        ("app in", "unable to parse requirement: found '' expected: '('"),
        ("app in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("app in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("app in (a", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("app in (a b)", "unable to parse requirement: found 'b', expected: ',' or ')'"),
        ("app in (a,=)", "unable to parse requirement: found '=', expected: ',', or identifier"),
        ("=x", "found '=', expected: !, identifier, or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!app=x", "found '=', expected: ',' or 'end of string'"),
        ("a b=x", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("app===x", "unable to parse requirement: found '=', expected: identifier"),
        ("app=not ok!", "found 'ok', expected: ',' or 'end of string'"),
        (
            "n>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be "
            "an integer",
        ),
        ("@=x", f'unable to parse requirement: <nil>: Invalid value: "@": {NAME_PART}'),
        ("app=@", f'unable to parse requirement: values[0][app]: Invalid value: "@": {LABEL_VALUE}'),
        (
            "app in (@,-)",
            f'unable to parse requirement: [values[0][app]: Invalid value: "-": {LABEL_VALUE}, '
            f'values[1][app]: Invalid value: "@": {LABEL_VALUE}]',
        ),
    ],
)
def test_says_what_is_wrong(text, sentence):
    with pytest.raises(BadRequest, match="^" + re.escape(sentence) + "$"):
        parse_labels(text)


def test_equalities_are_known_where_that_is_all_a_selector_says():
    assert parse_labels("a=1,b in (2)").equalities == {"a": "1", "b": "2"}
    assert EVERYTHING.equalities == {}
    for text in ("a", "a!=1", "a in (1,2)", "a=1,b", "a=1,a=2"):
        assert parse_labels(text).equalities is None
    assert NOTHING.equalities is None


def test_selector_objects():
    assert from_label_selector(None) is NOTHING
    assert not NOTHING.matches({})
    assert not NOTHING.empty
    assert from_label_selector({}).matches({"any": "thing"})
    selector = from_label_selector(
        {
            "matchLabels": {"app": "x"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["front", "back"]},
                {"key": "old", "operator": "DoesNotExist"},
                {"key": "zone", "operator": "NotIn", "values": ["c"]},
                {"key": "tier", "operator": "Exists"},
            ],
        }
    )
    assert selector.matches({"app": "x", "tier": "back", "zone": "a"})
    assert not selector.matches({"app": "x", "tier": "back", "zone": "c"})
    assert not selector.matches({"app": "x", "tier": "back", "old": ""})
    assert str(selector) == "app=x,!old,tier in (back,front),tier,zone notin (c)"


@pytest.mark.parametrize(
    ("selector", "sentence"),
    [
        ({"matchExpressions": [{"key": "a", "operator": "Like"}]}, '"Like" is not a valid label selector operator'),
        (
            {"matchExpressions": [{"key": "a", "operator": "In"}]},
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
            'values: Invalid value: ["b"]: values set must be empty for exists and does not exist',
        ),
        ({"matchLabels": {"@": "b"}}, f'key: Invalid value: "@": {NAME_PART}'),
    ],
)
def test_bad_selector_objects(selector, sentence):
    with pytest.raises(BadRequest, match=re.escape(sentence)):
        from_label_selector(selector)


KEYS = st.sampled_from(["a", "b", "in", "example.com/c"])
VALUES = st.sampled_from(["", "1", "2", "notin", "x.y"])
REQUIREMENTS = st.one_of(
    st.builds(lambda key, op, value: Requirement(key, op, (value,)), KEYS, st.sampled_from(["=", "!="]), VALUES),
    st.builds(
        lambda key, op, values: Requirement(key, op, tuple(sorted(values))),
        KEYS,
        st.sampled_from(["in", "notin"]),
        st.sets(VALUES, min_size=1),
    ),
    st.builds(Requirement, KEYS, st.sampled_from(["exists", "!"])),
    st.builds(lambda key, op: Requirement(key, op, ("1",)), KEYS, st.sampled_from(["gt", "lt"])),
)


@given(st.lists(REQUIREMENTS, max_size=4), st.dictionaries(KEYS, VALUES))
def test_printing_parses_back_and_the_fast_path_agrees(requirements, labels):
    selector = LabelSelector(requirements)
    assert parse_labels(str(selector)) == selector
    assert selector.matches(labels) == all(requirement.matches(labels) for requirement in requirements)
    if selector.equalities is not None:
        assert from_pairs(selector.equalities).matches(labels) == selector.matches(labels)


@given(st.text(alphabet="ab=!(),<> in", max_size=12))
def test_any_text_is_a_selector_or_a_bad_request(text):
    try:
        selector = parse_labels(text)
    except BadRequest:
        return
    assert parse_labels(str(selector)) == selector


# --- field selectors -----------------------------------------------------------------------------------


def test_field_terms_are_sorted_and_normalised():
    assert parse_fields("b==2,a!=1,,").terms == (FieldTerm("a", "!=", "1"), FieldTerm("b", "=", "2"))
    assert parse_fields("").empty
    assert parse_fields("spec.nodeName=n").required("spec.nodeName") == "n"
    assert parse_fields("spec.nodeName!=n").required("spec.nodeName") is None


def test_fields_match_and_an_absent_one_is_empty():
    values = {"metadata.name": "a", "spec.nodeName": ""}
    assert parse_fields("metadata.name=a,spec.nodeName=,other=").matches(values)
    assert not parse_fields("spec.nodeName!=").matches(values)
    assert not parse_fields("metadata.name=a,metadata.name=b").matches(values)
    assert parse_fields("metadata.name!=b").matches(values)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("a=1,b in (c)", "invalid selector: 'a=1,b in (c)'; can't understand 'b in (c)'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=\b", r"invalid field selector: invalid escape sequence: \b"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_bad_fields(text, sentence):
    with pytest.raises(BadRequest, match="^" + re.escape(sentence) + "$"):
        parse_fields(text)


@given(st.text(alphabet="ab\\,=", max_size=8), st.sampled_from(["=", "!="]))
def test_field_values_survive_escaping(value, operator):
    escaped = value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
    selector = parse_fields(f"spec.x{operator}{escaped}")
    assert selector.terms == (FieldTerm("spec.x", operator, value),)
    assert parse_fields(str(selector)) == selector


# --- many requirements -----------------------------------------------------------------------------

KEYS, VALUES = st.sampled_from("abc"), st.sampled_from(["", "1", "2", "3", "x"])
REQUIREMENTS = st.one_of(
    st.builds(
        lambda key, operator, values: Requirement(key, operator, tuple(sorted(set(values)))),
        KEYS,
        st.sampled_from(["in", "notin"]),
        st.lists(VALUES, min_size=1, max_size=3),
    ),
    st.builds(
        lambda key, operator, value: Requirement(key, operator, (value,)), KEYS, st.sampled_from(["=", "!="]), VALUES
    ),
    st.builds(
        lambda key, operator, limit: Requirement(key, operator, (limit,)),
        KEYS,
        st.sampled_from(["gt", "lt"]),
        st.sampled_from(["0", "1", "2", "3"]),
    ),
    st.builds(Requirement, KEYS, st.sampled_from(["exists", "!"])),
)


@given(st.lists(REQUIREMENTS, max_size=6), st.dictionaries(KEYS, VALUES))
def test_what_matches_is_what_every_requirement_matches(requirements, labels):
    assert LabelSelector(requirements).matches(labels) == all(each.matches(labels) for each in requirements)


@given(
    st.lists(st.builds(FieldTerm, KEYS, st.sampled_from(["=", "!="]), VALUES), max_size=6),
    st.dictionaries(KEYS, VALUES),
)
def test_what_matches_is_what_every_term_matches(terms, values):
    every = all((values.get(term.path, "") == term.value) == (term.operator == "=") for term in terms)
    assert FieldSelector(terms).matches(values) == every


class Counted(dict):
    """Labels that count how often they are looked at."""

    looks = 0

    def get(self, key, default=None):
        self.looks += 1
        return super().get(key, default)

    def __contains__(self, key):
        self.looks += 1
        return super().__contains__(key)


@pytest.mark.parametrize("operator", ["!={}", "={},z", " notin ({},0)", " in ({},0)", "", ">{}"])
@pytest.mark.parametrize("keys", ["k{}", "k"])
def test_thousands_of_requirements_are_not_all_looked_at(operator, keys):
    text = ",".join((keys + operator).format(number, number) for number in range(2000))
    labels = Counted({"k": "5000", "z": ""})
    parse_labels(text).matches(labels)
    assert labels.looks <= 2 * len(labels)


def test_thousands_of_terms_are_not_all_looked_at():
    fields = Counted({"metadata.name": "x"})
    assert parse_fields(",".join(f"metadata.name!={number}" for number in range(2000))).matches(fields)
    assert fields.looks == 1
