"""What ``why`` says about DNS, which it must not import, against what the DNS engine answers."""

import catalogue_cases
import pytest
from catalogue_clusters import build, clock, small

from seamark.dns.config import ForwardConfig, ZoneConfig
from seamark.dns.resolve import asking
from seamark.kinds.resource import NAMESPACES
from seamark.why.case import Case
from seamark.why.checks.names import answer
from seamark.why.observe import observe


@pytest.mark.parametrize("path", small(), ids=lambda path: path.stem)
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
    _, _, told = answer(Case(world, service)).partition(" → ")
    async with asking(cluster, ZoneConfig(), ForwardConfig(routes=())) as ask:
        ipv4, ipv6, alias = [
            await ask(f"{name}.{namespace}.svc.cluster.local.", kind) for kind in ("A", "AAAA", "CNAME")
        ]
    if told.startswith("NXDOMAIN"):
        assert {each.rcode for each in (ipv4, ipv6, alias)} == {"NXDOMAIN"}
    elif told.startswith("CNAME"):
        assert told == f"CNAME {alias.records[0].split()[-1]}"
    else:
        addresses = sorted(record.split()[-1] for record in (*ipv4.records, *ipv6.records))  # each answer turns them
        assert told.partition(" (")[0] == " and ".join(addresses)
