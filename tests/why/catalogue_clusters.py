"""The set-ups of the catalogue as clusters in memory, on which the controllers have worked."""

import copy
import json

import catalogue_cases
from memory_cluster import MemoryCluster
from running import running

from seamark.api.fields.patch import json_patch
from seamark.kinds.resource import NAMESPACES
from seamark.kinds.values import times
from seamark.why.look import look_at_service
from virtual_time import HastyClock

RESOURCES = {each.kind.lower(): each for each in catalogue_cases.RESOURCES.values()}
NOW = times.parse("2026-01-05T00:00:00Z")


def clock(case=None):
    """A clock whose sleeps end at once: nothing changes meanwhile."""
    return HastyClock(times.parse(case.now) if case is not None and case.now else NOW)


async def look(case):
    """The report that a case asks for, on a cluster of its own."""
    if case.offline:
        return catalogue_cases.look_offline(case)
    return await catalogue_cases.look(await build(case), case, clock=clock(case))


async def carry_out(cluster, command):
    """Run a proposed kubectl command on a cluster in memory."""
    verb, *words = command.words
    if verb == "create":
        manifest = copy.deepcopy(command.manifest)
        await cluster.create(catalogue_cases.RESOURCES[manifest["kind"]], manifest)
        return
    resource = RESOURCES[words[0]]
    namespace = words[words.index("-n") + 1] if "-n" in words else ""
    if "-l" in words:
        await cluster.delete_all(resource, namespace=namespace, labels=words[words.index("-l") + 1])
    elif verb == "delete":
        await cluster.delete(resource, words[1], namespace=namespace, grace_seconds=0)
    elif verb == "label":
        labels = [word for word in words[2:] if "=" in word or word.endswith("-")]
        patch = {
            key.rstrip("-"): value if equals else None for key, equals, value in (w.partition("=") for w in labels)
        }
        await cluster.patch(resource, words[1], {"metadata": {"labels": patch}}, namespace=namespace)
    elif verb == "scale":
        patch = {"spec": {"replicas": int(words[-1].partition("=")[2])}}
        await cluster.patch(resource, words[1], patch, namespace=namespace)
    elif "--type=json" in words:
        old = await cluster.get(resource, words[1], namespace=namespace)
        await cluster.update(resource, json_patch(json.loads(words[-1]), old), namespace=namespace)
    else:
        assert verb == "patch", command
        await cluster.patch(resource, words[1], json.loads(words[-1]), namespace=namespace)


async def repaired(case, cluster, commands, key):
    """The report after the commands, once the controllers have settled again."""
    async with running(cluster) as controllers:
        for command in commands:
            await carry_out(cluster, command)
        await controllers.settle()
    if case.client and key == case.key:
        return await catalogue_cases.look(cluster, case, clock=clock(case))
    return await look_at_service(cluster, key, clock=clock(case))


async def build(case):
    """The cluster of a case, after the controllers have done their work on it."""
    cluster = MemoryCluster()
    written = {obj["metadata"]["name"] for obj in case.objects if obj["kind"] == "Namespace"}
    for name in {case.key[0], *(obj["metadata"].get("namespace") for obj in case.objects)} - {None, *written}:
        await cluster.create(NAMESPACES, {"metadata": {"name": name}, "status": {"phase": "Active"}})
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
