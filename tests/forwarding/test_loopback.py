"""Addresses on this machine for Services, and ports where theirs are refused."""

from __future__ import annotations

import errno
import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from seamark.forwarding.loopback import Addresses, advice, places

keys = st.tuples(st.text(max_size=8), st.text(max_size=8))


@given(st.lists(keys, unique=True, max_size=200))
def test_every_service_has_an_address_of_its_own_that_is_the_same_next_time(listed: list[tuple[str, str]]) -> None:
    first, second = Addresses(), Addresses()
    taken = [first.take(key) for key in listed]
    assert len(set(taken)) == len(listed)
    assert [second.take(key) for key in listed] == taken
    assert [first.take(key) for key in listed] == taken
    for address in taken:
        assert ipaddress.ip_address(address) in ipaddress.ip_network("127.64.0.0/10")
        assert not address.endswith((".0", ".255"))


def test_two_services_whose_names_lead_to_one_address_get_two() -> None:
    # These two have the same CRC-32.
    addresses = Addresses()
    one, other = addresses.take(("plumless",)), addresses.take(("buckeroo",))
    assert one != other
    addresses.give_back(("plumless",))
    assert addresses.take(("buckeroo",)) == other


def test_the_own_port_is_tried_first_then_a_higher_one_then_any() -> None:
    assert list(places("127.64.0.1", 80)) == [
        ("127.64.0.1", 80),
        ("127.64.0.1", 8080),
        ("127.64.0.1", 0),
        ("127.0.0.1", 80),
        ("127.0.0.1", 8080),
        ("127.0.0.1", 0),
    ]
    assert ("127.64.0.1", 68000) not in places("127.64.0.1", 60000)


def test_the_advice_says_what_to_do() -> None:
    told = {
        code: advice(OSError(code, "words of the system"), "127.64.0.1", 80)
        for code in (errno.EACCES, errno.EADDRNOTAVAIL, errno.EADDRINUSE, errno.EIO)
    }
    assert "sysctl net.ipv4.ip_unprivileged_port_start=0" in told[errno.EACCES]
    assert "sudo ifconfig lo0 alias 127.64.0.1" in told[errno.EADDRNOTAVAIL]
    assert told[errno.EADDRINUSE] == "port 80 of 127.64.0.1 is in use by another program"
    assert told[errno.EIO] == "port 80 of 127.64.0.1 cannot be used: words of the system"
