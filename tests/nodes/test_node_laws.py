"""Whatever happens: no two running Pods share an address, all is well in the end, and then nothing more is written."""

import contextlib

import node_world
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from node_world import ready

from seamark import errors
from seamark.kinds.resource import NODES, PODS
from seamark.nodes.simulated import control

NAMES = st.sampled_from([f"pod-{n}" for n in range(6)])
OURS = st.sampled_from(["node-1", "node-2"])
ORDERS = st.fixed_dictionaries(
    {},
    optional={
        "start-after": st.sampled_from(["1s", "20s"]),
        "ready-after": st.sampled_from(["1s", "20s"]),
        "stop-after": st.sampled_from(["0s", "5s", "90s"]),
        "fail-after": st.just("3s"),
        "flap": st.just("4s"),
    },
)
EVENTS = st.one_of(
    st.tuples(st.just("create"), NAMES, ORDERS, st.sampled_from(["", "node-1", "node-2"])),
    st.tuples(st.just("delete"), NAMES, st.sampled_from([None, None, 0, 2])),
    st.tuples(st.just("orders"), NAMES, ORDERS),
    st.tuples(st.just("stop"), OURS),
    st.tuples(st.just("start"), OURS),
    st.tuples(st.just("cordon"), OURS, st.booleans()),
    st.tuples(st.just("remove node"), OURS),
    st.tuples(st.just("wait"), st.sampled_from([0.05, 1.0, 10.0, 70.0, 400.0])),
    st.tuples(
        st.just("restart"),
    ),
    st.tuples(
        st.just("die and rise later"),
    ),
)
SETTINGS = {"count": 2, "pods": 5, "stop_after": 0.5}
UNRULY = ("seamark.dev/fail-after", "seamark.dev/flap")


async def happen(world, event, faulty):
    match event:
        case ("create", name, orders, node):
            with contextlib.suppress(errors.AlreadyExists):
                await world.make(name, orders, settled=False, **({"nodeName": node} if node else {}))
        case ("delete", name, grace):
            with contextlib.suppress(errors.NotFound):
                await world.cluster.delete(PODS, name, namespace="default", grace_seconds=grace)
        case ("orders", name, orders):
            wanted = {f"seamark.dev/{key}": value for key, value in orders.items()}
            with contextlib.suppress(errors.NotFound):
                await world.cluster.patch(PODS, name, {"metadata": {"annotations": wanted}}, namespace="default")
        case ("stop" | "start" as what, name):
            with contextlib.suppress(errors.NotFound):
                await getattr(control, what)(world.cluster, name)
        case ("cordon", name, yes):
            with contextlib.suppress(errors.NotFound):
                await world.cluster.patch(NODES, name, {"spec": {"unschedulable": yes or None}})
        case ("remove node", name):
            with contextlib.suppress(errors.NotFound):
                await world.cluster.delete(NODES, name)
        case ("wait", seconds):
            await world.pass_(seconds)
        case ("restart",):
            await world.start(**faulty, **SETTINGS)
        case ("die and rise later",):
            await world.end()
            world.clock.now += 33


async def nobody_shares(world):
    taken = [
        address["ip"]
        for pod in await world.all(PODS)
        if pod["status"]["phase"] == "Running"
        for address in pod["status"].get("podIPs") or ()
    ]
    assert len(set(taken)) == len(taken)


async def all_is_well(world):
    """Every node on, every Pod where it belongs and ready unless it was told otherwise or there is no room."""
    for pod in await world.all(PODS):
        told = any(key in UNRULY for key in pod["metadata"].get("annotations") or {})
        node = pod["spec"].get("nodeName")
        assert "deletionTimestamp" not in pod["metadata"], "each Pod that was deleted is gone"
        if node is None:
            assert "0/2 nodes" in node_world.conditions(pod)["PodScheduled"]["message"]
        elif not told and pod["status"].get("podIPs"):
            assert (pod["status"]["phase"], ready(pod)) == ("Running", "True")
        elif not told:
            assert len([p for p in await world.all(PODS) if p["spec"].get("nodeName") == node]) > 5


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(EVENTS, max_size=14), st.sampled_from([0.0, 0.3]), st.integers(0, 999))
async def test_any_sequence_of_events_ends_well(events, faults, seed):
    faulty = {"faults": faults, "seed": seed}
    async with node_world.world() as world:
        await world.start(**faulty, **SETTINGS)
        for event in events:
            await happen(world, event, faulty)
            await world.settle()
            await nobody_shares(world)
        world.flaky.share = 0.0
        if world.simulation is None or len(await world.all(NODES)) < 2:
            # A node that was removed comes back with a new start only.
            await world.start(**SETTINGS)
        for name in ("node-1", "node-2"):
            await control.start(world.cluster, name)
            await world.cluster.patch(NODES, name, {"spec": {"unschedulable": None}})
        await world.pass_(150)
        await nobody_shares(world)
        await all_is_well(world)
        for pod in await world.all(PODS):
            if any(key in UNRULY for key in pod["metadata"].get("annotations") or {}):
                await world.remove(pod["metadata"]["name"], grace_seconds=0)
        await world.pass_(100)
        before = world.revision
        await world.end()
        world.clock.now += 1
        await world.start(**SETTINGS)
        assert world.revision == before + 2, "running twice writes nothing but two heartbeats"
