"""Addresses of Pods: both families, never twice, kept and given back."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from seamark.nodes.simulated.addresses import Addresses

V4, V6 = "10.244.1.0/28", "fd00:10:244:1::/64"


def test_the_first_pods_get_the_first_addresses():
    addresses = Addresses([V4, V6])
    assert addresses.take("a") == ("10.244.1.2", "fd00:10:244:1::2")
    assert addresses.take("b") == ("10.244.1.3", "fd00:10:244:1::3")
    assert addresses.take("a") == ("10.244.1.2", "fd00:10:244:1::2")


def test_one_just_given_back_is_the_last_to_be_used_again():
    addresses = Addresses([V4])
    first = [addresses.take(str(n)) for n in range(5)]
    addresses.release("0")
    rest = [addresses.take(f"later {n}") for n in range(9)]
    assert rest[-1] == first[0]
    assert len({*first[1:], *rest}) == 13


def test_the_network_the_node_and_broadcast_are_not_for_pods():
    addresses = Addresses(["10.0.0.0/29"])
    given_out = [addresses.take(str(n)) for n in range(9)]
    assert [a and a[0] for a in given_out] == [f"10.0.0.{n}" for n in range(2, 7)] + [None] * 4
    addresses.release("3")
    assert addresses.take("more") == ("10.0.0.5",)


def test_what_pods_have_already_they_keep():
    addresses = Addresses([V4, V6])
    assert addresses.adopt("old", ("10.244.1.9", "fd00:10:244:1::5"))
    assert addresses.of("old") == ("10.244.1.9", "fd00:10:244:1::5")
    others = [addresses.take(str(n)) for n in range(10)]
    assert "10.244.1.9" not in {a for pair in others for a in pair or ()}
    assert "fd00:10:244:1::5" not in {a for pair in others for a in pair or ()}


@pytest.mark.parametrize(
    "strange",
    [
        (),
        ("10.244.1.2",),
        ("10.244.2.2", "fd00:10:244:1::2"),
        ("10.244.1.2", "fd00:10:244:2::2"),
        ("10.244.1.2", "10.244.1.3"),
        ("10.244.1.0", "fd00:10:244:1::2"),
        ("10.244.1.15", "fd00:10:244:1::2"),
        ("10.244.1.2", "fd00:10:244:1::ffff"),
        ("nonsense", "fd00:10:244:1::2"),
        ("10.244.1.4", "fd00:10:244:1::2"),
    ],
)
def test_addresses_that_are_not_of_here_or_anothers_are_not_kept(strange):
    addresses = Addresses([V4, V6])
    assert addresses.adopt("other", ("10.244.1.4", "fd00:10:244:1::4"))
    assert not addresses.adopt("strange", strange)
    assert addresses.of("strange") is None


class Life(RuleBasedStateMachine):
    """Whatever is taken, kept and given back, no two Pods share an address."""

    def __init__(self):
        super().__init__()
        self.addresses = Addresses([V4, V6])
        self.owners = {}

    @rule(owner=st.integers(0, 20))
    def take(self, owner):
        taken = self.addresses.take(str(owner))
        if taken is None:
            ends = {int(ip_address(address)) & 15 for pair in self.owners.values() for address in pair}
            assert len(ends) == 13, "all are taken only if they are"
        else:
            assert self.owners.setdefault(owner, taken) == taken

    @rule(owner=st.integers(0, 20), number=st.integers(0, 20), other=st.integers(0, 20))
    def adopt(self, owner, number, other):
        wanted = (str(ip_network(V4)[0] + number), str(ip_network(V6)[other]))
        if self.addresses.adopt(str(owner), wanted):
            self.owners.setdefault(owner, wanted)

    @rule(owner=st.integers(0, 20))
    def release(self, owner):
        assert self.addresses.release(str(owner)) == (self.owners.pop(owner, None) is not None)

    @invariant()
    def nobody_shares(self):
        everything = [address for pair in self.owners.values() for address in pair]
        assert len(set(everything)) == len(everything)
        for v4, v6 in self.owners.values():
            assert ip_address(v4) in ip_network(V4)
            assert ip_address(v6) in ip_network(V6)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


@given(st.integers(20, 30))
def test_a_range_is_used_to_its_end(length):
    network = ip_network(f"10.0.0.0/{length}")
    addresses = Addresses([str(network)])
    taken = {addresses.take(str(n)) for n in range(network.num_addresses)}
    assert len(taken - {None}) == max(0, network.num_addresses - 3)
