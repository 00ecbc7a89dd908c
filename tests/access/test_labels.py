"""Label indexes agree with a scan after any sequence of changes."""

import random

from hypothesis import given
from hypothesis import strategies as st

from seamark.access.labels import ObjectsByLabels, SelectorsByLabels

NAMESPACES = ["one", "two"]
LABELS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("xyz"), max_size=4)
STEPS = st.lists(st.tuples(st.sampled_from(NAMESPACES), st.integers(0, 30), st.one_of(st.none(), LABELS)), max_size=120)


def has(labels, selector):
    return all(labels.get(key) == value for key, value in selector.items())


@given(STEPS, LABELS)
def test_objects_agree_with_a_scan(steps, selector):
    index, model = ObjectsByLabels(), {name: {} for name in NAMESPACES}
    for namespace, key, labels in steps:
        if labels is None:
            index.remove(namespace, key)
            model[namespace].pop(key, None)
        else:
            index.put(namespace, key, labels)
            model[namespace][key] = labels
    for namespace, objects in model.items():
        assert index.select(namespace, selector) == {key for key, labels in objects.items() if has(labels, selector)}
        for pair in selector.items():
            assert index.count(namespace, pair) == sum(pair in labels.items() for labels in objects.values())


@given(STEPS, LABELS)
def test_selectors_agree_with_a_scan(steps, labels):
    index, model = SelectorsByLabels(), {name: {} for name in NAMESPACES}
    for namespace, key, selector in steps:
        if selector is None:
            index.remove(namespace, key)
            model[namespace].pop(key, None)
        else:
            index.put(namespace, key, selector)
            model[namespace][key] = selector
    for namespace, selectors in model.items():
        expected = {key for key, selector in selectors.items() if has(labels, selector)}
        assert index.matching(namespace, labels) == expected


def test_nothing_is_left_behind():
    objects, selectors = ObjectsByLabels(), SelectorsByLabels()
    for number in range(50):
        pairs = {"app": f"app-{number % 7}", "env": "prod", "id": str(number)}
        objects.put("default", number, pairs)
        selectors.put("default", number, pairs)
    for number in range(50):
        objects.remove("default", number)
        selectors.remove("default", number)
    assert objects._namespaces == {}
    assert selectors._namespaces == {}


def test_selections_belong_to_the_caller():
    objects = ObjectsByLabels()
    objects.put("default", "a", {"app": "web"})
    objects.select("default", {"app": "web"}).clear()
    objects.select("default", {}).clear()
    assert objects.select("default", {"app": "web"}) == {"a"}
    assert objects.select("default", {}) == {"a"}


def test_a_pair_that_grows_common_does_not_gather_selectors():
    """Each selector's own pair is rare in the end, whatever the order of arrival made of it at first."""
    chance = random.Random(7)
    index = SelectorsByLabels()
    numbers = list(range(2000))
    # First all selectors are filed under the pair that only later turns out to be in all of them.
    for number in numbers:
        index.put("default", number, {"env": f"env-{number}", "team": "one"})
    chance.shuffle(numbers)
    for number in numbers:
        index.put("default", number, {"env": "prod", "app": f"app-{number}"})
    piles = index._namespaces["default"].filed
    assert index.matching("default", {"env": "prod", "app": "app-5"}) == {5}
    assert len(piles.get(("env", "prod"), ())) <= 8
