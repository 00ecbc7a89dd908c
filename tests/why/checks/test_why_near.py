"""Near misses: ranked by how little would have to change, and only what is near."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.why.checks.near import SHOWN, DifferenceKind, distance, misspelt, near_miss, near_misses, related
from seamark.why.views import Pod
from seamark.why.world import Shape


def shape(count=1, **labels):
    labels = {key.replace("__", "/").replace("_", "."): value for key, value in labels.items()}
    pod = msgspec.convert({"metadata": {"name": "p", "labels": labels}}, Pod)
    return Shape(labels, (pod,) * count)


def kinds(selector, labels, **more):
    miss = near_miss(selector, Shape(labels), **more)
    return None if miss is None else [difference.kind for difference in miss.differences]


@pytest.mark.parametrize(
    ("one", "other", "letters"),
    [
        ("web", "web", 0),
        ("Web", "web", 0),
        ("web-app", "web_app", 0),
        ("web", "wbe", 1),
        ("checkout", "chekcout", 1),
        ("frontend", "fronted", 1),
        ("frontend", "fontent", 2),
        ("web", "db", None),
        ("v1", "v2", None),
        ("shard-12", "shard-13", None),
        ("api", "web", None),
    ],
)
def test_a_slip_of_the_pen_is_told_from_another_word(one, other, letters):
    assert misspelt(one, other) == letters
    assert misspelt(other, one) == letters


@given(st.text("abc", max_size=8), st.text("abc", max_size=8))
def test_distance_is_a_distance(one, other):
    found = distance(one, other, 20)
    assert found == distance(other, one, 20)
    assert (found == 0) == (one == other)
    assert found <= max(len(one), len(other))
    for limit in range(4):
        assert distance(one, other, limit) == (found if found <= limit else None)


@given(st.text("abcd", min_size=1, max_size=8), st.integers(0, 8), st.characters(codec="ascii"))
def test_one_letter_more_is_one_letter_away(word, where, letter):
    assert distance(word, word[:where] + letter + word[where:], 2) == 1


def test_related_words():
    assert related("web", "shop-web")
    assert related("web", "webserver")
    assert not related("web", "db")
    assert not related("we", "webserver")


def test_what_differs():
    assert kinds({"app": "wbe"}, {"app": "web"}) == [DifferenceKind.SPELLING]
    assert kinds({"ap": "web"}, {"app": "web"}) == [DifferenceKind.KEY_SPELLING]
    assert kinds({"app": "web"}, {"app.kubernetes.io/name": "web"}) == [DifferenceKind.OTHER_KEY]
    assert kinds({"app": "web", "tier": "a"}, {"app": "web", "tier": "b"}) == [DifferenceKind.VALUE]
    assert kinds({"app": "web", "tier": "a"}, {"app": "web"}) == [DifferenceKind.MISSING]
    assert kinds({"app": "web"}, {"app": "shop-web"}) == [DifferenceKind.RELATED]
    assert kinds({"app": "web", "pod-template-hash": "x"}, {"app": "web"}) == [DifferenceKind.INSTANCE]


def test_what_is_not_near():
    assert kinds({"app": "web"}, {"app": "web"}) is None  # it matches
    assert kinds({"app": "web"}, {"app": "db"}) is None
    assert kinds({"app": "web"}, {}) is None
    assert kinds({"app": "web", "env": "prod"}, {"app": "db", "env": "prod"}) is None  # another application
    assert kinds({"app": "a", "tier": "b", "zone": "c"}, {"app": "x", "tier": "y", "zone": "z"}) is None
    assert kinds({"pod-template-hash": "x"}, {"app": "web"}) is None  # nothing would be left of the selector
    assert kinds({"debug": "true"}, {"canary": "true"}) is None  # a value that means nothing by itself


def test_a_service_s_namesake_is_nearer_than_a_stranger():
    selector = {"app": "old", "env": "prod"}
    assert kinds(selector, {"app": "web", "env": "prod"}) is None
    assert kinds(selector, {"app": "web", "env": "prod"}, name="web") == [DifferenceKind.VALUE]


def test_ranked_by_how_little_would_have_to_change():
    selector = {"app": "web", "tier": "front"}
    exact_but_missing = shape(app="web")
    one_letter = shape(app="web", tier="frnt")
    other_value = shape(app="web", tier="back")
    found = near_misses(selector, [exact_but_missing, other_value, one_letter])
    assert found[0].shape is one_letter
    assert [miss.cost for miss in found] == sorted(miss.cost for miss in found)


def test_of_equals_the_one_with_more_pods_comes_first_and_there_is_an_end():
    few, many = shape(1, app="web", tier="a"), shape(5, app="web", tier="b")
    assert near_misses({"app": "web", "tier": "x"}, [few, many])[0].shape is many
    crowd = [shape(app="web", tier=f"t{number}") for number in range(50)]
    assert len(near_misses({"app": "web", "tier": "x"}, crowd)) == SHOWN


labels = st.dictionaries(
    st.sampled_from(["app", "tier", "release", "app.kubernetes.io/name"]),
    st.sampled_from(["web", "wbe", "db", "shop-web", "front", "back", "v1", "v2"]),
    max_size=4,
)


@given(labels.filter(bool), labels)
def test_the_corrected_selector_matches(selector, found):
    """The patch a near miss proposes makes the selector pick exactly such Pods."""
    miss = near_miss(selector, Shape(found))
    if miss is None:
        return
    patch = miss.corrected(selector)
    corrected = {key: value for key, value in {**selector, **patch}.items() if value is not None}
    assert corrected.items() <= found.items()
