"""YAML bodies that try to cost more than their size: what is made is counted before it is made."""

import gc

import pytest

from seamark.kinds.language import yaml_body
from seamark.kinds.language.yaml_body import DEEPEST, MOST_VALUES, Reading, YamlFault, read

# 306 bytes that stand for 7 ** 8 keys.
MERGES = b"a0: &a0 {k: v}\n" + b"".join(
    b"a%d: &a%d\n <<: [%b]\n" % (i, i, b",".join([b"*a%d" % (i - 1)] * 7)) for i in range(1, 8)
)
ALIASES = b"a0: &a0 [x, x]\n" + b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (i, i, i - 1, i - 1) for i in range(1, 64))


def refused(text):
    with pytest.raises(YamlFault) as caught:
        read(text)
    return str(caught.value)


@pytest.mark.parametrize("bomb", [MERGES, ALIASES], ids=["merge keys", "aliases"])
def test_a_bomb_is_counted_before_it_expands(bomb):
    reading = Reading(bomb)
    before = sum(isinstance(part, dict | list) for part in gc.get_objects())
    with pytest.raises(YamlFault, match="excessive aliasing"):
        reading.result()
    made = sum(isinstance(part, dict | list) for part in gc.get_objects()) - before
    assert made < 1000
    assert len(reading.repeated) <= yaml_body.MOST_REPEATED


def test_aliases_and_merges_within_the_bound_mean_what_they_say():
    value, repeated = read(b"a: &a {x: 1, w: 2}\nb: {<<: *a, z: 3}\nc: {<<: [{x: 0}, *a], z: *a}\nd: [&e 5, *e, '<<']")
    assert value == {
        "a": {"x": 1, "w": 2},
        "b": {"x": 1, "w": 2, "z": 3},
        "c": {"x": 0, "w": 2, "z": {"x": 1, "w": 2}},
        "d": [5, 5, "<<"],
    }
    assert repeated == ['line 3: key "x" already set in map']


def test_what_is_written_wins_over_what_is_merged():
    assert read(b"a: &a {x: 1}\nb: {<<: *a, x: 2}\nc: {x: 2, <<: *a}")[0] == {
        "a": {"x": 1},
        "b": {"x": 2},
        "c": {"x": 2},
    }
    assert read(b"{'<<': 1}")[0] == {"<<": 1}


def test_the_number_of_values_is_bounded():
    assert len(read(b"[" + b"x," * (MOST_VALUES - 1) + b"]")[0]) == MOST_VALUES - 1
    reading = Reading(b"[" + b"x," * (10 * MOST_VALUES) + b"]")
    with pytest.raises(YamlFault, match="too many values"):
        reading.result()
    assert reading.count == MOST_VALUES + 1


@pytest.mark.parametrize("opening", [b"[", b"{a: ", b"- ", b"? "])
def test_depth_is_bounded(opening):
    reading = Reading(opening * 300_000)
    with pytest.raises(YamlFault, match="exceeded max depth"):
        reading.result()
    assert reading.count <= 2 * DEEPEST + 1


@pytest.mark.parametrize("line_break", [b"\n", b"\r", b"\n\xc2\x85", b"\n\xe2\x80\xa8", b"\n#\n"])
def test_directives_are_bounded(line_break):
    text = b"".join(b"%%TAG !a%d! b%b" % (i, line_break) for i in range(30_000)) + b"---\na: 1\n"
    assert "directives" in refused(text)
    assert read(b"%TAG !a! b\n---\na: '%TAG'\n")[0] == {"a": "%TAG"}
    assert "directives" in refused(b"\xef\xbb\xbf" + b"# %TAG\n" * 65 + b"a: 1\n")
    assert read(b"a: |\n" + b"  %TAG\n" * 100)[0] == {"a": "%TAG\n" * 100}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"a: |\n" + b" x\n" * 100_000, {"a": "x\n" * 100_000}),
        (b"# %TAG\n" * 60 + b"#x\n" * 100_000 + b"a: 1\n", {"a": 1}),
        (b"\n" * 300_000 + b"a: 1\n", {"a": 1}),
        (b"a: '" + "\U0001f40b\N{LATIN SMALL LETTER E WITH ACUTE}x".encode() * 50_000 + b"'\n", None),
    ],
    ids=["one value", "comments", "blank lines", "characters of all widths"],
)
def test_the_text_comes_in_pieces_between_which_others_can_run(monkeypatch, text, value):
    pieces = []
    whole = yaml_body._Pieces.read

    def noted(self, size):
        pieces.append(size)
        return whole(self, size)

    monkeypatch.setattr(yaml_body._Pieces, "read", noted)
    assert read(text)[0] == (value or {"a": text.decode()[4:-2]})
    assert len(pieces) > len(text) / 50_000


@pytest.mark.parametrize(
    "text",
    [
        b'a: !!int ""',
        b'a: !!float "_"',
        b"a: !!bool z",
        b"a: !!timestamp z",
        b"a: !!set {x}",
        b"a: !mine x",
        b"a: !!int " + b"9" * 5000,
        b"a: " + b"9" * 5000,
        b"a: 0b_",
        b"a: -.inf",
        b"a: 1e999",
        b"a: &x [*x]",
        b"a: *unknown",
        b"<<: 1",
        b"? [a]\n: b",
        b"~: b",
        b'"\\ud800"',
        b"\xff",
        b"a: \x00",
        b"a: b: c",
    ],
)
def test_what_json_cannot_express_is_a_fault(text):
    assert refused(text).startswith("error converting YAML to JSON: ")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"", None),
        (b"# nothing", None),
        (b"a", "a"),
        (b"!!str 1", "1"),
        (b"!!int '1_000'", 1000),
        (b"!!float 1", 1.0),
        (b"!!bool 'on'", True),
        (b"!!null x", None),
        (b"!!map {a: !!seq [b]}", {"a": ["b"]}),
        (b"[yes, Off, ~, null, '', -0x1F, +.5, 1., 1e3, 0o7, 12:30]", [
            True, False, None, None, "", -31, 0.5, 1.0, 1000.0, "0o7", "12:30",
        ]),
        ("ä: €".encode(), {"ä": "€"}),
        (b"a: 1\n---\nb: [", {"a": 1}),
        (b"1: a\n1.5: b\ntrue: c", {"1": "a", "1.5": "b", "true": "c"}),
    ],
)  # fmt: skip
def test_values(text, value):
    assert read(text)[0] == value


def test_a_lonely_y_or_n_is_a_boolean_as_for_kubernetes():
    assert read(b"a: y\nb: N\nc: 'y'\nd: yy\nn: 1") == ({"a": True, "b": False, "c": "y", "d": "yy", "false": 1}, [])
