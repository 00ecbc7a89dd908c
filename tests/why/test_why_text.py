"""Columns stay columns: wide characters, combining marks, control characters, long words."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from seamark.why.render import clean, pad, table, width, wrap

# Narrow, wide, combining, zero-width, control characters and line breaks.
any_text = st.text(st.sampled_from("ab- /服务端点ｗ한글é́​\t\n\x1b\x9b[31m…"), max_size=60)
columns = st.integers(8, 120)


def test_width():
    assert width("web") == 3
    assert width("服务") == 4
    assert width("e\N{COMBINING ACUTE ACCENT}") == 1
    assert width("a​b") == 2


@given(any_text, columns)
def test_nothing_is_wider_than_it_may_be_but_a_word(text, limit):
    for line in wrap(text, limit):
        assert width(pad(line, limit)) == limit or " " not in line


@given(st.lists(st.text("abcdefgh-./=", min_size=1, max_size=90), max_size=8), columns)
def test_no_word_is_broken(words, limit):
    assert " ".join(wrap(" ".join(words), limit)).split() == words


@given(any_text, columns)
def test_wrapping_loses_nothing(text, limit):
    assert "".join("".join(wrap(text, limit)).split()) == "".join(clean(text).split())


@given(any_text)
def test_nothing_can_steer_the_terminal(text):
    assert not any(unicodedata.category(character) == "Cc" for character in clean(text))


@given(st.lists(st.tuples(any_text, any_text, any_text), max_size=6), st.integers(40, 120))
def test_a_table_has_straight_columns(rows, limit):
    header = ("NAME", "VERDICT", "WHY")
    lines = table(header, rows, limit) or [""]
    assert all(width(line) <= limit or width(line.split(" ")[-1]) > limit - 12 for line in lines)
    if "WHY" not in lines[0]:
        return  # too narrow: the last cells are under the others
    # The last column begins at one place, whatever stands before it.
    start = width(lines[0][: lines[0].index("WHY")])
    for line in lines[1:]:
        taken, position = 0, 0
        while position < len(line) and taken < start:
            taken += width(line[position])
            position += 1
        assert taken == start or position == len(line)


def test_two_addresses_stand_one_below_the_other_where_room_is_short():
    header = ("POD", "ADDRESS", "WHY")
    row = ("web-6778688898-b84tt", "10.244.8.2,fd00:10:244:2::2", "containers with unready status")
    assert table(header, [row], 200)[1].count("10.244.8.2,fd00:10:244:2::2") == 1
    lines = table(header, [row], 72)
    assert lines[1:] == [
        "web-6778688898-b84tt  10.244.8.2,       containers with unready status",
        "                      fd00:10:244:2::2",
    ]
    many = ("web", "10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4,10.0.0.5", "fine")
    assert table(header, [many], 40)[1:] == [
        "web  10.0.0.1,10.0.0.2,10.0.0.3,  fine",
        "     10.0.0.4,10.0.0.5",
    ]
