"""The pool of load balancer addresses: what a setting means, and who has what."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seamark.controllers.housekeeping.loadbalancer_pool import EXAMPLE_POOL, Pool, address_range, check_pool


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("192.0.2.0/24", "192.0.2.1", "192.0.2.254"),
        ("192.0.2.4/30", "192.0.2.5", "192.0.2.6"),
        ("192.0.2.4/31", "192.0.2.4", "192.0.2.5"),
        ("192.0.2.4/32", "192.0.2.4", "192.0.2.4"),
        ("192.0.2.0-192.0.2.255", "192.0.2.0", "192.0.2.255"),
        ("192.0.2.9 - 192.0.2.9", "192.0.2.9", "192.0.2.9"),
        ("2001:db8::/127", "2001:db8::", "2001:db8::1"),
    ],
)
def test_a_range_is_what_is_written(text, first, last):
    pool = Pool([text])
    assert pool.contains(first)
    assert pool.contains(last)
    found = address_range(text)
    assert pool.free("IPv4" if found.version == 4 else "IPv6") == first


@pytest.mark.parametrize(
    ("pool", "said"),
    [
        (["192.0.2.1"], "192.0.2.1 is neither a CIDR nor a range"),
        (["192.0.2.1/24"], "192.0.2.1/24 is neither a CIDR nor a range"),
        (["nonsense"], "nonsense is neither a CIDR nor a range"),
        (["192.0.2.9-192.0.2.1"], "ends before it begins"),
        (["192.0.2.9-2001:db8::1"], "no range of addresses of one family"),
        (["192.0.2.0/24", "192.0.2.128-192.0.2.200"], "192.0.2.128-192.0.2.200 and 192.0.2.0/24 overlap"),
    ],
)
def test_a_mistake_in_it_is_one_clear_line(pool, said):
    with pytest.raises(ValueError, match=r"^load balancer pool: ") as raised:
        check_pool(pool)
    assert said in str(raised.value)


def test_the_example_pool_is_a_good_one_of_both_families():
    check_pool(EXAMPLE_POOL)
    assert Pool(EXAMPLE_POOL).has("IPv4")
    assert Pool(EXAMPLE_POOL).has("IPv6")


def test_whoever_came_first_has_an_address_that_two_claim():
    pool = Pool(["192.0.2.0/24"])
    pool.claim("192.0.2.1", "default/young", "2026-02-02T00:00:00Z")
    pool.claim("192.0.2.1", "default/old", "2026-01-01T00:00:00Z")
    assert pool.owner("192.0.2.1") == "default/old"
    pool.release("192.0.2.1", "default/old")
    assert pool.owner("192.0.2.1") == "default/young"
    assert pool.free("IPv4") == "192.0.2.2"
    pool.release("192.0.2.1", "default/young")
    assert pool.owner("192.0.2.1") is None
    assert pool.free("IPv4") == "192.0.2.1"


ADDRESSES = [f"192.0.2.{number}" for number in range(1, 8)]


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.sampled_from(["claim", "release", "free"]), st.sampled_from(ADDRESSES), st.sampled_from("ab")),
        max_size=40,
    )
)
def test_the_lowest_free_address_is_found_whatever_happened_before(steps):
    pool = Pool(["192.0.2.1-192.0.2.4", "192.0.2.6-192.0.2.7"])
    inside = [address for address in ADDRESSES if address != "192.0.2.5"]
    claims = set()
    for what, address, claimant in steps:
        if what == "claim":
            pool.claim(address, claimant, "")
            claims.add((address, claimant))
        elif what == "release":
            pool.release(address, claimant)
            claims.discard((address, claimant))
        taken = {address for address, _ in claims}
        assert pool.free("IPv4") == next((a for a in inside if a not in taken), None)
        assert {a for a in ADDRESSES if pool.owner(a) is not None} == taken
