"""What ``why`` says about DNS, which it must not import, against what the DNS engine answers."""

import catalogue_cases
import pytest
from test_why_catalogue import PATHS, build, clock

from seamark.dns.config import ForwardConfig, ZoneConfig
from seamark.dns.resolve import asking
from seamark.kinds.resource import NAMESPACES
from seamark.why.case import Case
from seamark.why.checks.names import answer
from seamark.why.observe import observe


def small(path):
    return "$repeat" not in path.read_text()


@pytest.mark.parametrize("path", list(filter(small, PATHS)), ids=lambda path: path.stem)
async def test_names_answer_as_the_dns_engine_answers(path):
    """The line about DNS in a report is what the DNS server would answer."""
    case = catalogue_cases.load(path)
    cluster = await build(case)
    known = {each["metadata"]["name"] for each in cluster.objects(NAMESPACES)}
    for space in {"shop", "back"} - known:
        await cluster.create(NAMESPACES, {"metadata": {"name": space}})
    namespace, name = case.key
    world = await observe(cluster, "", clock=clock())
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
