"""The ClusterRole in ``deploy/controllers`` is what the controllers call: nothing is missing, and nothing is more."""

import asyncio
from pathlib import Path

import pytest
import yaml
from faulty_cluster import FaultyCluster
from memory_cluster import MemoryCluster
from own_cluster import managed
from recordings import load, play, steps
from running import running
from scenery import NS, flip, hand_made, node, pod, put, service

from recording_cluster import RecordingCluster
from seamark.access.informers import Informers
from seamark.cli.running.controllers import parser
from seamark.cli.settings import config_of
from seamark.controllers.discovery.process import ControllerProcess
from seamark.controllers.probes.probes_controller import add_probes
from seamark.controllers.settings import ElectionSettings, ProbeSettings
from seamark.errors import Conflict, Forbidden
from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, LEASES, NODES, PODS, SERVICES
from seamark.rules.probing import Result
from seamark.runtime.manager import Manager
from virtual_time import VirtualClock

DEPLOY = Path(__file__).parents[3] / "deploy" / "controllers"

# No controller calls these: an admission plugin asks for them when a slice with a blocking owner is written.
ADMISSION = {("update", "", "services/finalizers"), ("update", "", "endpoints/finalizers")}


def documents(name):
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def granted(kind):
    (role,) = [document for document in documents("rbac.yaml") if document["kind"] == kind]
    return {
        (verb, group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


class Trouble:
    """What goes wrong in the course of a long life: conflicts and refusals, each a few times."""

    def __init__(self):
        self.left = {("update", ENDPOINTS): [Conflict("outrun")], ("update", ENDPOINT_SLICES): [Conflict("outrun")]}

    def __call__(self, verb, resource, name):
        errors = self.left.get((verb, resource))
        return errors.pop() if errors else None


async def live_through_everything(recorder, faulty, cluster):
    """One call of every sort the controllers can make: they write, fail, complain twice, clean up."""
    async with running(cluster, through=recorder) as controllers:
        await put(cluster, node(), service(), pod("web-1"), service("ext", selector=None), hand_made())
        await controllers.settle()
        await flip(cluster, "web-1", False)
        await controllers.settle()
        faulty.fault.left["create", ENDPOINTS] = [Forbidden("not you"), Forbidden("not you")]
        await put(cluster, service("refused"))
        await controllers.settle()
        await cluster.patch(ENDPOINTS, "ext", {"subsets": None}, namespace=NS)
        await cluster.delete(SERVICES, "web", namespace=NS)
        await controllers.settle()
    await be_probed(recorder, cluster)


async def be_probed(recorder, cluster):
    """Hand-made members that turn out not to be well."""
    probed = {"metadata": {"annotations": {"seamark.dev/probe": "tcp", "seamark.dev/probe-failure-threshold": "1"}}}
    await put(cluster, hand_made("machines"))
    await cluster.patch(ENDPOINTS, "machines", probed, namespace=NS)
    by_hand = {
        "metadata": {"name": "by-hand", **probed["metadata"]},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.9.9.9"], "conditions": {}}],
        "ports": [{"port": 80}],
    }
    await cluster.create(ENDPOINT_SLICES, by_hand, namespace=NS)
    clock = VirtualClock()
    manager = Manager(Informers(recorder, clock=clock), clock=clock)

    async def unwell(probe, target):
        return Result(False, "connection refused")

    add_probes(manager, recorder, ProbeSettings(), check=unwell)
    async with managed(manager):
        await clock.advance(30)


async def test_the_cluster_role_is_what_the_controllers_call():
    cluster = MemoryCluster()
    faulty = FaultyCluster(cluster, Trouble())
    recorder = RecordingCluster(faulty)
    await live_through_everything(recorder, faulty, cluster)
    assert recorder.calls | ADMISSION == granted("ClusterRole")


@pytest.mark.parametrize(("nodes", "case"), load("random")[:10] + load("hand"))
async def test_recorded_scenarios_need_no_more(nodes, case):
    cluster = MemoryCluster()
    recorder = RecordingCluster(cluster)
    for each in nodes:
        await cluster.create(NODES, each)
    async with running(cluster, through=recorder) as controllers:
        for step in steps(case):
            if step == "settle" or "settle" in step:
                await controllers.settle()
            else:
                await play(cluster, step)
    assert recorder.calls <= granted("ClusterRole")


async def test_the_role_of_the_election_is_what_the_election_calls():
    cluster = MemoryCluster()
    recorder = RecordingCluster(cluster)
    settings = ElectionSettings(namespace=NS, lease_duration=600, renew_deadline=500, retry_period=0.05)
    process = ControllerProcess(recorder, election=settings)
    working = asyncio.create_task(process.run())
    await process.settled.wait()
    while ("update", LEASES.group, LEASES.plural) not in recorder.calls:
        await asyncio.sleep(0.01)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    leases = {call for call in recorder.calls if call[2] == "leases"}
    assert leases == granted("Role")
    assert recorder.calls - leases <= granted("ClusterRole")
    assert {("list", "", PODS.plural), ("create", "", "events")} <= recorder.calls


def test_the_deployment_competes_for_the_lease_the_role_is_about():
    (deployment,) = documents("deployment.yaml")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    verb, *arguments = container["args"]
    election = config_of(parser().parse_args(arguments), "controllers").election
    (role,) = [document for document in documents("rbac.yaml") if document["kind"] == "Role"]
    named = {name for rule in role["rules"] for name in rule.get("resourceNames", ())}
    assert verb == "controllers"
    assert named == {election.name}
    assert yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())["namespace"] == election.namespace
