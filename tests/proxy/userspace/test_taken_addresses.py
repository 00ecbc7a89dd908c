"""The machine's addresses, and which commands take those of Services."""

import pytest

from seamark.proxy.engine import Update
from seamark.proxy.userspace import addresses
from seamark.proxy.userspace.addresses import TakenAddresses, may_take_addresses, own_addresses
from seamark.proxy.userspace.engine import UserspaceEngine
from seamark.rules.routing.surroundings import Surroundings, ThisNode


@pytest.fixture
def said(monkeypatch):
    """What ``ip`` is told instead of carried out."""
    told = []

    async def ip(family, lines):
        told.extend(f"{family} {line}" for line in lines)

    monkeypatch.setattr(addresses, "_ip", ip)
    return told


def test_loopback_is_an_address_of_this_machine():
    assert "127.0.0.1" in own_addresses()


def test_addresses_are_read_from_the_kernels_tables(monkeypatch, tmp_path):
    (tmp_path / "fib").write_text(
        "Local:\n  |-- 10.0.0.1\n     /32 host LOCAL\n  |-- 10.0.0.255\n     /32 link BROADCAST\n"
    )
    (tmp_path / "v6").write_text("fd000000000000000000000000000001 02 40 00 80     eth0\n")
    monkeypatch.setattr(addresses, "_FIB", tmp_path / "fib")
    monkeypatch.setattr(addresses, "_IPV6", tmp_path / "v6")
    assert own_addresses() == ("10.0.0.1", "fd00::1")
    monkeypatch.setattr(addresses, "_FIB", tmp_path / "absent")
    monkeypatch.setattr(addresses, "_IPV6", tmp_path / "absent")
    assert own_addresses() == ()


@pytest.mark.parametrize(("bits", "may"), [("0000000000001000", True), ("0000000000000fff", False)])
def test_taking_addresses_needs_the_right_to(monkeypatch, tmp_path, bits, may):
    (tmp_path / "status").write_text(f"Name:\tx\nCapEff:\t{bits}\n")
    monkeypatch.setattr(addresses, "_STATUS", tmp_path / "status")
    monkeypatch.setattr(addresses.shutil, "which", lambda name: f"/sbin/{name}")
    assert may_take_addresses() is may
    monkeypatch.setattr(addresses.shutil, "which", lambda name: None)
    assert may_take_addresses() is False


async def test_only_what_changes_is_changed(said):
    taken = TakenAddresses()
    await taken.start()
    assert said == ["-4 route flush table local proto 83", "-6 route flush table local proto 83"]
    said.clear()
    await taken.change({"10.96.0.1", "fd00:96::1", "127.0.0.1"})
    assert said == [
        "-4 route replace local 10.96.0.1 dev lo proto 83",
        "-6 route replace local fd00:96::1 dev lo proto 83",
    ]
    said.clear()
    await taken.change({"10.96.0.2", "fd00:96::1"})
    assert said == ["-4 route replace local 10.96.0.2 dev lo proto 83", "-4 route del local 10.96.0.1 dev lo proto 83"]
    said.clear()
    await taken.close()
    assert said == ["-4 route del local 10.96.0.2 dev lo proto 83", "-6 route del local fd00:96::1 dev lo proto 83"]


async def test_an_engine_with_rights_answers_for_all_services_also_without_endpoints(said, monkeypatch):
    from route_worlds import service, table

    monkeypatch.setattr("seamark.proxy.userspace.engine.may_take_addresses", lambda: True)
    engine = UserspaceEngine()
    await engine.start()
    said.clear()
    routes = table(service(externalIPs=["198.51.100.7"])).routes("default/web")
    around = Surroundings(ThisNode("node-a"))
    await engine.apply(Update({"default/web": routes}, around, everything=True))
    assert [line.split()[4] for line in said] == ["10.96.0.1", "198.51.100.7"]
    said.clear()
    await engine.apply(Update({"default/web": routes}, around))
    assert said == []
    await engine.apply(Update({"default/web": None}, around))
    assert [line.split()[2] for line in said] == ["del", "del"]
    await engine.close()
