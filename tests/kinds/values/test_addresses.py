"""Addresses and CIDRs, read as Go reads them."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.kinds.values.addresses import (
    both_families,
    canonical,
    canonical_cidr_mistakes,
    canonical_ip_mistakes,
    cidr_mistakes,
    cidr_warnings,
    endpoint_ip_mistakes,
    family,
    flawless,
    ip_mistakes,
    ip_warnings,
    network_family,
    parse,
    plain,
    refuse_ip,
)

NOT_AN_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
NOT_A_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("010.000.0.01", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::FFFF:a00:1", "10.0.0.1"),
        ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
        ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
        ("64:ff9b::192.0.2.1", "64:ff9b::c000:201"),
        ("00001::", "1::"),
        ("::", "::"),
    ],
)
def test_what_go_reads_and_prints(text: str, printed: str) -> None:
    assert canonical(text) == printed


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "x",
            "10.0.0",
            "10.0.0.256",
            "10.0.0.1.1",
            "10.0.0.1 ",
            "-1.0.0.0",
            "1.2.3.4:80",
            "10.0.0.0/8",
            "١.1.1.1",
        ),
        *(":", ":::", "1::2::3", "1:2:3:4:5:6:7::8", "1:2:3:4:5:6:7:8:9", "fe80::1%eth0", "[::1]", "12345::"),
        *("::10.0.0", "10.0.0.1::", "9" * 5000 + ".1.1.1", "0" * 100 + "1.1.1.1"),
    ],
)
def test_what_is_no_address(text: str) -> None:
    assert parse(text) is None
    assert ip_mistakes(text) == (NOT_AN_IP,)
    assert canonical(text) == text
    assert family(text) is None


def test_legacy_fields_refuse_what_programs_read_differently() -> None:
    assert ip_mistakes("10.0.0.010") == ("must not have leading 0s",)
    assert ip_mistakes("::ffff:10.0.0.1") == ("must not be an IPv4-mapped IPv6 address",)
    assert ip_mistakes("::ffff:010.0.0.1") == ("must not have leading 0s",)
    assert ip_mistakes("FD00::1") == ()


def test_what_was_there_before_is_accepted() -> None:
    assert refuse_ip("spec.x", "010.0.0.1", ["010.0.0.1"]) == []
    (error,) = refuse_ip("spec.x", "010.0.0.1", ["10.0.0.1"])
    assert (error.field, error.message) == ("spec.x", 'Invalid value: "010.0.0.1": must not have leading 0s')


def test_newer_fields_want_the_canonical_form() -> None:
    assert canonical_ip_mistakes("fd00::1") == ()
    assert canonical_ip_mistakes("FD00::1") == ('must be in canonical form ("fd00::1")',)
    assert canonical_ip_mistakes("010.0.0.1") == ("must not have leading 0s",)
    assert canonical_ip_mistakes("x") == (NOT_AN_IP,)


@pytest.mark.parametrize(
    ("text", "mistake", "strict_mistake"),
    [
        ("10.0.0.0/8", "", ""),
        ("0.0.0.0/0", "", ""),
        ("10.0.0.1/32", "", ""),
        ("10.0.0.1/8", "must not have bits set beyond the prefix length", None),
        ("10.0.0.0/08", "must not have leading 0s in IP or prefix length", None),
        ("010.0.0.0/8", "must not have leading 0s in IP or prefix length", None),
        ("::ffff:10.0.0.0/104", "must not have an IPv4-mapped IPv6 address", None),
        ("FD00::/64", "", 'must be in canonical form ("fd00::/64")'),
        ("10.0.0.0", NOT_A_CIDR, None),
        ("10.0.0.0/", NOT_A_CIDR, None),
        ("10.0.0.0/33", NOT_A_CIDR, None),
        ("10.0.0.0/+8", NOT_A_CIDR, None),
        ("fd00::/129", NOT_A_CIDR, None),
        ("x/8", NOT_A_CIDR, None),
        ("10.0.0.0/" + "9" * 5000, NOT_A_CIDR, None),
    ],
)
def test_cidrs(text: str, mistake: str, strict_mistake: str | None) -> None:
    assert cidr_mistakes(text) == ((mistake,) if mistake else ())
    strict = mistake if strict_mistake is None else strict_mistake
    assert canonical_cidr_mistakes(text) == ((strict,) if strict else ())


def test_families() -> None:
    assert [family(text) for text in ("10.0.0.1", "::1", "::ffff:10.0.0.1")] == ["IPv4", "IPv6", "IPv4"]
    assert [network_family(text) for text in ("10.0.0.0/8", "fd00::/8", "x")] == ["IPv4", "IPv6", None]
    assert network_family("::ffff:10.0.0.0/104") == "IPv4"
    assert network_family("::ffff:10.0.0.0/64") == "IPv6"
    assert both_families(["10.0.0.1", "fd00::1"])
    assert both_families(["10.0.0.0/8", "fd00::/8"])
    assert not both_families(["10.0.0.1", "10.0.0.2"])
    assert not both_families(["10.0.0.1", "x"])


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("0.0.0.0", "unspecified (0.0.0.0)"),
        ("::", "unspecified (::)"),
        ("127.8.9.1", "loopback"),
        ("::1", "loopback"),
        ("169.254.1.1", "link-local range"),
        ("fe80::1", "link-local range"),
        ("febf::1", "link-local range"),
        ("224.0.0.251", "link-local multicast"),
        ("ff02::1", "link-local multicast"),
        ("ff12::1", "link-local multicast"),
    ],
)
def test_where_no_traffic_can_go(text: str, where: str) -> None:
    (mistake,) = endpoint_ip_mistakes(text)
    assert where in mistake


@pytest.mark.parametrize("text", ["10.0.0.1", "8.8.8.8", "224.0.1.1", "239.1.1.1", "fd00::1", "fec0::1", "ff05::1"])
def test_where_traffic_can_go(text: str) -> None:
    assert endpoint_ip_mistakes(text) == ()


def test_warnings_about_addresses() -> None:
    assert ip_warnings("p", "10.0.0.1") == ip_warnings("p", "fd00::1") == ip_warnings("p", "x") == []
    assert ip_warnings("p", "010.0.0.1") == [
        'p: non-standard IP address "010.0.0.1" will be considered invalid in a future Kubernetes release: '
        'use "10.0.0.1"'
    ]
    assert ip_warnings("p", "FD00::1") == [
        'p: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")'
    ]


def test_warnings_about_cidrs() -> None:
    assert cidr_warnings("p", "10.0.0.0/8") == cidr_warnings("p", " 10.0.0.0/8") == []
    assert cidr_warnings("p", "10.0.0.1/8") == [
        'p: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)'
    ]
    assert cidr_warnings("p", "10.0.0.0/08") == [
        'p: non-standard CIDR value "10.0.0.0/08" will be considered invalid in a future Kubernetes release: '
        'use "10.0.0.0/8"'
    ]
    assert cidr_warnings("p", "FD00::/8") == [
        'p: IPv6 CIDR value "FD00::/8" should be in RFC 5952 canonical format ("fd00::/8")'
    ]


@given(st.ip_addresses(v=4))
def test_every_ipv4_address_is_canonical_and_survives_padding(address: IPv4Address) -> None:
    text = str(address)
    assert canonical_ip_mistakes(text) == ()
    assert canonical(".".join(octet.zfill(4) for octet in text.split("."))) == text
    assert canonical(f"::ffff:{text}") == text


@given(st.ip_addresses(v=6))
def test_every_spelling_of_an_ipv6_address_means_the_same(address: IPv6Address) -> None:
    parsed = parse(address.exploded.upper())
    assert parsed is not None
    if address in IPv6Network("::ffff:0:0/96"):
        assert parsed.mapped
    else:
        assert parsed.address == address
        assert canonical_ip_mistakes(str(address)) == ()


@given(st.text(alphabet="0123456789abcdefF:./% ", max_size=24))
def test_whatever_is_an_address_to_python_is_one_to_us(text: str) -> None:
    parsed = parse(text)
    try:
        standard = ip_address(text)
    except ValueError:
        assert parsed is None or parsed.padded
        return
    # Python knows zones, Go's net package does not.
    assert (parsed is None) == ("%" in text)
    assert parsed is None or parsed.address in (standard, getattr(standard, "ipv4_mapped", None))


@given(
    st.one_of(
        st.ip_addresses().map(str),
        st.ip_addresses(v=6).map(lambda address: address.exploded),
        st.ip_addresses(network="::/80").map(str),
        st.integers(0, 2**32 - 1).map(lambda low: f"::ffff:{IPv4Address(low)}"),
        st.text(alphabet="0123456789abcdefF:. \0é", max_size=20),
    )
)
def test_the_quick_look_at_an_address_says_what_the_careful_reading_says(text):
    read = parse(text)
    printed = str(read.address) if read is not None else None
    if (found := plain(text)) is not None:
        assert (found, printed) == (f"IPv{read.address.version}", text)
    elif printed == text:
        assert text.startswith("::")  # these are left to the careful reader


unfit_networks = ("127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/24", "fe80::/9", "ff00::/8", "::/126", "0.0.0.0/30")


@given(st.one_of(st.ip_addresses(), *(st.ip_addresses(network=each) for each in unfit_networks)).map(str))
def test_an_address_is_flawless_if_no_check_has_anything_to_say(text):
    good = not canonical_ip_mistakes(text) and not endpoint_ip_mistakes(text)
    assert flawless(text) == (family(text) if good else None)
