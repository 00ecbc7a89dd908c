"""The set-ups of the catalogue as clusters in memory, on which the controllers have worked."""

import catalogue_cases
from memory_cluster import MemoryCluster
from running import running

from seamark.kinds.values import times
from virtual_time import HastyClock

NOW = times.parse("2026-01-05T00:00:00Z")


def clock():
    """A clock whose sleeps end at once: nothing changes meanwhile."""
    return HastyClock(NOW)


async def build(case):
    """The cluster of a case, after the controllers have done their work on it."""
    cluster = MemoryCluster()
    for number, obj in enumerate(case.objects, 1):
        if obj["kind"] == "Service" and obj["spec"].get("type") != "ExternalName":
            # The cluster in memory gives every Service the same address.
            family = obj["spec"].get("ipFamilies", ["IPv4"])[0]
            obj["spec"].setdefault("clusterIP", f"10.96.1.{number}" if family == "IPv4" else f"fd00:96::{number}")
        await cluster.create(catalogue_cases.RESOURCES[obj["kind"]], obj)
    if not case.controllers:
        return cluster
    async with running(cluster) as controllers:
        await controllers.settle()
        for step in case.then:
            what = step["patch"]
            where = catalogue_cases.RESOURCES[what["kind"]]
            await cluster.patch(where, what["name"], what["patch"], namespace=what["namespace"])
            await controllers.settle()
    return cluster


def small():
    """The set-ups that do not repeat an object a thousand times."""
    return [path for path in catalogue_cases.everything() if "$repeat" not in path.read_text()]
