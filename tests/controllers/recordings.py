"""The recorded scenarios, and how to play them into a cluster."""

import json

import pytest
from memory_cluster import RESOURCES

from conformance_files import CONFORMANCE, tool
from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS

PLURALS = {resource.plural: resource for resource in RESOURCES.values()}
NS = "scenario"

replay = tool("replay")


def load(name, *, without=()):
    document = json.loads((CONFORMANCE / "controllers" / f"{name}.json").read_text())
    return [
        pytest.param(document["nodes"], case, id=case["name"])
        for case in document["cases"]
        if case["name"] not in without
    ]


def steps(case):
    return replay.substitute(case["steps"], NS)


async def play(cluster, step):
    if "create" in step:
        await cluster.create(RESOURCES[step["create"]["kind"]], step["create"], namespace=NS)
    elif "status" in step:
        plural, name = step["status"].split("/")
        await cluster.patch(PLURALS[plural], name, {"status": step["body"]}, namespace=NS)
    elif "patch" in step:
        plural, name = step["patch"].split("/")
        await cluster.patch(PLURALS[plural], name, step["body"], namespace=NS)
    elif "delete" in step:
        plural, name = step["delete"].split("/")
        await cluster.delete(PLURALS[plural], name, namespace=NS, grace_seconds=step.get("grace"))
    elif "delete_slices" in step:
        await cluster.delete_all(ENDPOINT_SLICES, namespace=NS, labels=step["delete_slices"])
    elif "patch_slices" in step:
        found = await cluster.list(ENDPOINT_SLICES, namespace=NS, labels=step["patch_slices"])
        for obj in found.items:
            await cluster.patch(ENDPOINT_SLICES, obj["metadata"]["name"], step["body"], namespace=NS)
    else:
        raise AssertionError(f"unknown step {step}")


def observe(cluster):
    state = {
        "endpoints": sorted(
            (replay.clean_endpoints(e, NS) for e in cluster.objects(ENDPOINTS, NS)), key=lambda e: e["name"]
        ),
        "endpointslices": replay.clean_slices(cluster.objects(ENDPOINT_SLICES, NS), NS),
    }
    return json.loads(json.dumps(state, sort_keys=True).replace(NS, "$NS"))


def check(case, states):
    for position, (want, got) in enumerate(zip(case["expect"], states, strict=True)):
        assert replay.difference(want, got, f"mark {position}") == []
