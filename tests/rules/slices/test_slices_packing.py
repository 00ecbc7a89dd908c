"""Packing: into which slices new endpoints go."""

from hypothesis import given
from hypothesis import strategies as st

from seamark.rules.objects.endpointslice import Endpoint
from seamark.rules.slices.group import place


def content(prefix, count):
    return {((f"{prefix}{i:03d}",), "", "", ""): Endpoint(addresses=(f"{prefix}{i:03d}",)) for i in range(count)}


def sizes(contents):
    return sorted(len(each) for each in contents)


def test_nothing_missing_changes_nothing():
    changed = {"a": content("a", 3)}
    packing = place({}, changed=changed, unchanged={"b": content("b", 1)}, limit=5)
    assert packing.changed == changed
    assert packing.new == []


def test_slices_that_change_anyway_are_filled_first_the_fullest_first():
    changed = {"a": content("a", 1), "b": content("b", 4)}
    packing = place(content("n", 3), changed=changed, unchanged={"c": content("c", 1)}, limit=5)
    assert {name: len(each) for name, each in packing.changed.items()} == {"a": 3, "b": 5}
    assert sizes(changed.values()) == [1, 4]  # what was given is not modified


def test_the_rest_goes_where_it_fits_most_tightly():
    unchanged = {"a": content("a", 1), "b": content("b", 3), "c": content("c", 4)}
    packing = place(content("n", 2), changed={}, unchanged=unchanged, limit=5)
    assert {name: len(each) for name, each in packing.changed.items()} == {"b": 5}


def test_what_fits_nowhere_fills_one_slice_up_and_begins_another():
    unchanged = {"a": content("a", 3), "b": content("b", 4), "c": content("c", 5)}
    packing = place(content("n", 3), changed={}, unchanged=unchanged, limit=5)
    assert {name: len(each) for name, each in packing.changed.items()} == {"a": 5, "b": 5}
    assert packing.new == []
    packing = place(content("n", 4), changed={}, unchanged=unchanged, limit=5)
    assert {name: len(each) for name, each in packing.changed.items()} == {"b": 5}
    assert sizes(packing.new) == [3]


@given(st.lists(st.integers(1, 12), max_size=12), st.integers(1, 6))
def test_what_only_grows_is_packed_without_gaps(batches, limit):
    slices = {}
    for number, count in enumerate(batches):
        packing = place(content(f"{number:02d}-", count), changed={}, unchanged=slices, limit=limit)
        slices |= packing.changed
        slices |= {f"s{number}-{i}": each for i, each in enumerate(packing.new)}
        assert len(slices) == -(-sum(batches[: number + 1]) // limit)


def test_lower_addresses_go_first():
    addresses = ["10.0.0.99", "10.0.0.100", "10.0.1.2", "10.0.0.9", "fd00::10", "fd00::9"]
    missing = {((each,), "", "", ""): Endpoint(addresses=(each,)) for each in addresses}
    packing = place(missing, changed={}, unchanged={}, limit=2)
    assert [[identity[0][0] for identity in each] for each in packing.new] == [
        ["10.0.0.9", "10.0.0.99"],
        ["10.0.0.100", "10.0.1.2"],
        ["fd00::9", "fd00::10"],
    ]


def test_many_fill_new_slices_and_only_the_last_few_join_an_old_one():
    packing = place(content("n", 12), changed={}, unchanged={"a": content("a", 3)}, limit=5)
    assert sizes(packing.new) == [5, 5]
    assert sizes(packing.changed.values()) == [5]


counts = st.lists(st.integers(0, 6), max_size=5)


@given(st.integers(0, 30), counts, counts, st.integers(1, 6))
def test_everything_is_placed_once_and_no_slice_is_overfilled(missing, changed, unchanged, limit):
    before = {f"c{i}": content(f"c{i}-", min(n, limit)) for i, n in enumerate(changed)}
    others = {f"u{i}": content(f"u{i}-", min(n, limit)) for i, n in enumerate(unchanged)}
    packing = place(content("n", missing), changed=before, unchanged=others, limit=limit)
    after = [*packing.changed.values(), *packing.new]
    assert all(len(each) <= limit for each in after)
    joined = {name: each for name, each in packing.changed.items() if name in others}
    assert len(joined) <= 2
    expected = sum(map(len, before.values())) + sum(len(others[name]) for name in joined) + missing
    assert sum(map(len, after)) == expected
    assert len({identity for each in after for identity in each}) == expected
    for name, each in {**before, **{name: others[name] for name in joined}}.items():
        assert each.keys() <= packing.changed[name].keys()  # what is in a slice stays there
