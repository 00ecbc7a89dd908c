"""What ``why`` knows of its siblings' rules without importing them: the same as they do, by their own functions."""

import catalogue_cases
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_why_catalogue import PATHS, build, now
from worlds import node

from seamark.dns.config import ForwardConfig, ZoneConfig
from seamark.dns.resolve import asking
from seamark.kinds.resource import NAMESPACES
from seamark.kinds.wellknown import CONTROL_PLANE_LABELS
from seamark.rules import hints
from seamark.why.case import Case
from seamark.why.checks import zoning
from seamark.why.checks.names import answer
from seamark.why.observe import observe

nodes = st.builds(
    lambda number, zone, cpu, ready, role: node(
        f"n{number}", zone=zone, cpu=cpu, ready=ready, labels={CONTROL_PLANE_LABELS[0]: ""} if role else {}
    ),
    number=st.integers(0, 9),
    zone=st.sampled_from(["", "a", "b", "c"]),
    cpu=st.sampled_from(["", "1", "4", "500m", "20"]),
    ready=st.booleans(),
    role=st.sampled_from([False, False, True]),
)


@given(st.lists(nodes, max_size=6), st.integers(1, 12))
def test_hints_are_withheld_for_the_same_reasons(made, count):
    shares = hints.zone_shares(made)
    counted = [each for each in made if zoning._counts(each)]
    incomplete = [each for each in counted if not each.zone or not zoning.cpus(each)]
    ours = zoning.zone_shares(counted)
    assert (shares is None) == bool(incomplete or len(ours) < 2)
    if shares is not None:
        assert ours == pytest.approx(shares)
        refused = isinstance(hints.needs(shares, count), hints.Refusal)
        assert refused == (count < len(ours) or zoning.least_needed(ours, count) > count)


def test_zones_may_be_overloaded_as_much_as_the_controller_lets_them():
    assert pytest.approx(1 + hints.OVERLOAD) == zoning.OVERLOAD


def small(path):
    return "$repeat" not in path.read_text()


@pytest.mark.parametrize("path", list(filter(small, PATHS)), ids=lambda path: path.stem)
async def test_names_answer_as_the_dns_engine_answers(path):
    """The line about DNS in a report is what the engine would answer."""
    case = catalogue_cases.load(path)
    cluster = await build(case)
    known = {each["metadata"]["name"] for each in cluster.objects(NAMESPACES)}
    for space in {"shop", "back"} - known:
        await cluster.create(NAMESPACES, {"metadata": {"name": space}})
    namespace, name = case.key
    world = await observe(cluster, "", clock=now)
    service = world.services.get(case.key)
    if service is None:
        return
    told = answer(Case(world, service))
    async with asking(cluster, ZoneConfig(), ForwardConfig(routes=())) as ask:
        answers = [await ask(f"{name}.{namespace}.svc.cluster.local.", kind) for kind in ("A", "AAAA", "CNAME")]
    found = [record.split()[-1] for each in answers[:2] for record in each.records]
    if "NXDOMAIN" in told:
        assert {each.rcode for each in answers} == {"NXDOMAIN"}
    elif "CNAME" in told:
        assert any("CNAME" in record for each in answers for record in each.records)
    else:
        assert {each.rcode for each in answers} == {"NOERROR"}
        assert all(address in told for address in found[:1])
