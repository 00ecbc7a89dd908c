"""Objects as long as the API takes them: no rule of the controllers compares every entry with every other.

One Service, Pod or Endpoints holds tens of thousands of ports or addresses.  The square of that would hold up the event
loop for minutes, and take all memory.
"""

import msgspec
import pytest
from effort import FEW, LINEAR, MANY, grows
from worlds import node, pod, service

from seamark.kinds.wellknown import MIRRORED_ADDRESSES, MIRRORED_BYTES
from seamark.rules import mirroring, subsets
from seamark.rules.endpoints import EndpointsState, same_subsets
from seamark.rules.membership import judge
from seamark.rules.objects.endpoints import EndpointAddress, EndpointPort, Endpoints, EndpointSubset
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.metadata import Metadata
from seamark.rules.objects.service import ServicePort

EXTERNAL = service("ext", selector={})


def addresses(count, *, start=0, family="IPv4"):
    prefix = "10.0" if family == "IPv4" else "fd00:"
    dot = "." if family == "IPv4" else ":"
    return tuple(EndpointAddress(ip=f"{prefix}{dot}{i // 250}{dot}{i % 250}") for i in range(start, start + count))


def ports(count):
    return tuple(EndpointPort(f"p{i}", i + 1) for i in range(count))


def endpoints(*listed, annotations=None):
    return Endpoints(Metadata(name="ext", namespace="default", uid="u", annotations=annotations or {}), listed)


def separate(count, family="IPv4"):
    """As many subsets as addresses, each with a port of its own."""
    return tuple(
        EndpointSubset((address,), (), (port,))
        for address, port in zip(addresses(count, family=family), ports(count), strict=True)
    )


def of_plan(plan):
    return tuple(
        msgspec.structs.replace(each, metadata=msgspec.structs.replace(each.metadata, name=f"s{i:05}"))
        for i, each in enumerate(plan.changes.create)
    )


@pytest.mark.parametrize("declared", ["all", "none"])
def test_named_ports_are_looked_up(declared):
    def prepared(count):
        wanted = [{"name": f"p{i}", "port": i + 1, "targetPort": f"n{i}", "protocol": "TCP"} for i in range(count)]
        named = "n" if declared == "all" else "x"
        offered = [{"name": f"{named}{i}", "containerPort": i + 1, "protocol": "TCP"} for i in range(count)]
        many, one = service(ports=wanted), pod(ports=offered)
        return lambda: judge(many, one, node())

    assert grows(prepared) < LINEAR


class Hashed(str):
    """A text that counts how often something looks it up."""

    count = 0

    def __hash__(self):
        Hashed.count += 1
        return str.__hash__(self)


def test_ports_of_pods_are_not_looked_up_all_at_once_for_each_of_them():
    def hashed(count):
        wanted = tuple(ServicePort(port=i + 1, name=Hashed(f"p{i}"), target_port=i + 1) for i in range(count))
        many = service()
        state = EndpointsState(msgspec.structs.replace(many, spec=msgspec.structs.replace(many.spec, ports=wanted)))
        state.put("a", pod())
        Hashed.count = 0
        state.plan(None)
        return Hashed.count

    assert hashed(MANY) < LINEAR * hashed(FEW)


def test_a_subset_is_not_multiplied_out():
    def prepared(count):
        one = EndpointSubset(addresses(count), (), ports(count))
        return lambda: subsets.repack([one])

    assert grows(prepared) < LINEAR


def test_subsets_with_the_same_ports_are_put_together_first():
    def prepared(count):
        same = [EndpointSubset((address,), (), ports(count)) for address in addresses(count)]
        return lambda: subsets.repack(same)

    # The object itself has so many ports already.
    assert grows(prepared) < 64


def test_a_layout_has_a_size_however_short_the_object(monkeypatch):
    """Each of the ports has the many addresses, and one of its own."""
    monkeypatch.setattr(subsets, "LARGEST", 1000)
    shared = EndpointSubset(addresses(200), (), ports(200))
    own = [
        EndpointSubset((address,), (), (port,))
        for address, port in zip(addresses(200, start=500), ports(200), strict=True)
    ]
    layout = subsets.laid_out([shared, *own])
    assert sum(len(each.addresses) for each in layout.subsets) <= 1000
    assert len(layout.subsets) == 4
    assert layout.left_out == 196 * 201
    assert not same_subsets((shared, *own), (shared,))


def test_mirrors_that_change_their_family_are_not_searched():
    def prepared(count):
        before = endpoints(*separate(count))
        slices = of_plan(mirroring.plan(EXTERNAL, before, ()))
        after = endpoints(*separate(count, "IPv6"))
        return lambda: mirroring.plan(EXTERNAL, after, slices)

    assert grows(prepared) < LINEAR


def test_slices_of_the_same_family_are_used_again():
    slices = of_plan(mirroring.plan(EXTERNAL, endpoints(*separate(3)), ()))
    moved = [msgspec.structs.replace(each, ports=(EndpointPort("q", 7),)) for each in separate(1)]
    plan = mirroring.plan(EXTERNAL, endpoints(*moved, *separate(1, "IPv6")), slices)
    assert [each.metadata.name for each in plan.changes.update] == ["s00000"]
    assert [each.address_type for each in plan.changes.create] == ["IPv6"]
    assert [each.metadata.name for each in plan.changes.delete] == ["s00001", "s00002"]


def test_copies_of_long_annotations_have_a_size_together():
    """Every slice gets all of them; half a megabyte of Endpoints was a gigabyte of slices."""
    plan = mirroring.plan(EXTERNAL, endpoints(*separate(1000), annotations={"long": "x" * 200_000}), ())
    made = sum(len(msgspec.json.encode(each)) for each in plan.changes.create)
    assert 0.5 * MIRRORED_BYTES < made < 1.1 * MIRRORED_BYTES
    assert plan.skipped == 1000 - len(plan.changes.create)
    [notice] = plan.notes
    assert (notice.type, notice.reason) == ("Warning", "TooManyAddressesToMirror")
    assert notice.message == (
        "EndpointSlices that mirror one Endpoints can take 32 MiB in all, with the copies of its labels and"
        f" annotations. {plan.skipped} addresses were skipped"
    )
    assert all(isinstance(each, EndpointSlice) and each.metadata.annotations for each in plan.changes.create)


def test_what_fits_is_mirrored_as_before():
    plan = mirroring.plan(EXTERNAL, endpoints(*separate(1000), annotations={"short": "x" * 2000}), ())
    assert (len(plan.changes.create), plan.skipped, plan.notes) == (1000, 0, ())
    full = EndpointSubset(addresses(MIRRORED_ADDRESSES), (), ports(2))
    assert mirroring.plan(EXTERNAL, endpoints(full), ()).skipped == 0
