"""The probes controller on a real API server, with answers that the test gives, in virtual time."""

import asyncio
import contextlib

import pytest
from own_cluster import own_cluster

from seamark.access.informers import Informers
from seamark.controllers.discovery.discovery import add_discovery
from seamark.controllers.probes.probes_controller import add_probes
from seamark.controllers.settings import ProbeSettings
from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, EVENTS, SERVICES
from seamark.rules.probing import Result
from seamark.runtime.manager import Manager

PROBED = {"seamark.dev/probe": "tcp", "seamark.dev/probe-interval": "10s", "seamark.dev/probe-failure-threshold": "2"}


class World:
    """Machines that answer or not, and what was asked of them."""

    def __init__(self, own):
        self.own = own
        self.cluster = own.cluster
        self.down = set()
        self.asked = []
        self.at_once = self.most = 0
        self.hold = None  # an event that answers wait for

    async def check(self, probe, target):
        self.asked.append(str(target))
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        if self.hold is not None:
            await self.hold.wait()
        self.at_once -= 1
        up = target.address not in self.down
        return Result(up, f"connecting to {target}: {'connected' if up else 'Connection refused'}")

    async def make_slice(self, *addresses, name="web", annotations=PROBED, **conditions):
        return await self.cluster.create(
            ENDPOINT_SLICES,
            {
                "metadata": {
                    "name": name,
                    "labels": {"kubernetes.io/service-name": "web"},
                    "annotations": annotations,
                },
                "addressType": "IPv4",
                "endpoints": [{"addresses": [each], "conditions": conditions} for each in addresses],
                "ports": [{"name": "", "port": 80}],
            },
            namespace="default",
        )

    async def slice(self, name="web"):
        return await self.cluster.get(ENDPOINT_SLICES, name, namespace="default")

    async def ready(self, name="web"):
        return {each["addresses"][0]: each["conditions"].get("ready") for each in (await self.slice(name))["endpoints"]}

    async def told(self, name="web"):
        events = (await self.cluster.list(EVENTS)).items
        return [f"{e['reason']}: {e['message']}" for e in events if e["involvedObject"]["name"] == name]

    async def pass_(self, seconds):
        await self.own.clock.advance(seconds, self.own.quiet)


@contextlib.asynccontextmanager
async def probing(mirrored=False, **settings):
    async with own_cluster() as own:
        world = World(own)
        async with probing_again(world, mirrored=mirrored, **settings):
            yield world


@contextlib.asynccontextmanager
async def probing_again(world, mirrored=False, **settings):
    own = world.own
    manager = Manager(Informers(own.api.cluster("probes"), clock=own.clock), clock=own.clock)
    if mirrored:
        add_discovery(manager, own.api.cluster, which=["endpointslicemirroring"])
    add_probes(
        manager,
        own.api.cluster("probes"),
        ProbeSettings(**settings),
        check=world.check,
        random=lambda: 0.5,
    )
    async with own.managed(manager):
        yield


async def test_members_are_judged_by_their_first_answer_then_by_thresholds():
    async with probing() as world:
        world.down = {"10.0.0.2"}
        await world.make_slice("10.0.0.1", "10.0.0.2")
        await world.own.quiet()
        assert await world.ready() == {"10.0.0.1": True, "10.0.0.2": False}
        assert await world.told() == [
            "ProbeFailed: 10.0.0.2:80 is not ready: connecting to 10.0.0.2:80: Connection refused"
        ]

        world.down = {"10.0.0.1"}
        await world.pass_(10)
        assert await world.ready() == {"10.0.0.1": True, "10.0.0.2": True}
        await world.pass_(10)
        assert await world.ready() == {"10.0.0.1": False, "10.0.0.2": True}
        assert [each.partition(":")[0] for each in await world.told()].count("ProbeSucceeded") == 1


async def test_a_round_is_one_write_and_no_change_is_none():
    async with probing() as world:
        await world.make_slice(*(f"10.0.1.{n}" for n in range(1, 101)), ready=True)
        await world.own.quiet()
        before = world.own.api.cache.revision
        await world.pass_(100)
        assert world.own.api.cache.revision == before
        assert len(world.asked) == 11 * 100

        world.down = {f"10.0.1.{n}" for n in range(1, 51)}
        versions = [(await world.slice())["metadata"]["resourceVersion"]]
        for _ in range(4):
            await world.pass_(10)
            versions.append((await world.slice())["metadata"]["resourceVersion"])
        assert len(set(versions)) == 2
        assert list((await world.ready()).values()).count(False) == 50


async def test_a_new_member_does_not_wait_for_the_next_round():
    async with probing() as world:
        made = await world.make_slice("10.0.0.1", ready=True)
        await world.pass_(3)
        world.down = {"10.0.0.2"}
        made = await world.slice()
        made["endpoints"].append({"addresses": ["10.0.0.2"], "conditions": {}})
        await world.cluster.update(ENDPOINT_SLICES, made, namespace="default")
        await world.own.quiet()
        assert await world.ready() == {"10.0.0.1": True, "10.0.0.2": False}
        assert world.asked == ["10.0.0.1:80", "10.0.0.2:80"]


async def test_a_users_hand_does_not_overrule_the_probe():
    async with probing() as world:
        world.down = {"10.0.0.1"}
        await world.make_slice("10.0.0.1")
        await world.own.quiet()
        change = [{"op": "add", "path": "/endpoints/0/conditions", "value": {"ready": True}}]
        await world.cluster.patch(ENDPOINT_SLICES, "web", change, namespace="default", type="json")
        await world.own.quiet()
        assert await world.ready() == {"10.0.0.1": False}
        assert len(world.asked) == 1


async def test_without_the_annotation_probing_ends_and_the_conditions_stay():
    async with probing() as world:
        world.down = {"10.0.0.1"}
        await world.make_slice("10.0.0.1")
        await world.own.quiet()
        nothing = {"metadata": {"annotations": {"seamark.dev/probe": None}}}
        await world.cluster.patch(ENDPOINT_SLICES, "web", nothing, namespace="default")
        await world.pass_(100)
        assert len(world.asked) == 1
        assert await world.ready() == {"10.0.0.1": False}
        await world.cluster.delete(ENDPOINT_SLICES, "web", namespace="default")
        await world.own.quiet()


@pytest.mark.parametrize(
    ("annotations", "says"),
    [
        ({"seamark.dev/probe": "smoke"}, "'smoke' is not a probe"),
        ({"seamark.dev/probe": "tcp://:admin"}, "port 'admin' is not among the ports"),
        ({"seamark.dev/probe": "exec true"}, "exec probes are switched off"),
    ],
)
async def test_what_cannot_be_probed_is_left_alone_and_told_once(annotations, says):
    async with probing() as world:
        await world.make_slice("10.0.0.1", annotations=annotations)
        await world.pass_(60)
        [told] = await world.told()
        assert told.startswith("ProbeInvalid: ")
        assert says in told
        assert world.asked == []
        assert await world.ready() == {"10.0.0.1": None}

        await world.cluster.patch(
            ENDPOINT_SLICES, "web", {"metadata": {"annotations": {"seamark.dev/probe": "tcp"}}}, namespace="default"
        )
        await world.own.quiet()
        assert await world.ready() == {"10.0.0.1": True}


async def test_commands_run_where_they_are_allowed():
    async with probing(commands=True) as world:
        await world.make_slice("10.0.0.1", annotations={"seamark.dev/probe": "exec true"})
        await world.own.quiet()
        assert await world.ready() == {"10.0.0.1": True}


async def test_no_more_checks_at_once_than_allowed():
    async with probing(concurrency=7) as world:
        world.hold = asyncio.Event()
        for number in range(5):
            await world.make_slice(*(f"10.{number}.0.{n}" for n in range(1, 11)), name=f"web-{number}")
        while len(world.asked) < 7:
            await asyncio.sleep(0)
        world.hold.set()
        await world.own.quiet()
        assert (world.most, len(world.asked)) == (7, 50)


async def test_a_member_that_stays_away_is_reported_again_before_the_event_expires():
    async with probing() as world:
        world.down = {"10.0.0.1"}
        await world.make_slice("10.0.0.1")
        await world.pass_(1250)
        [event] = (await world.cluster.list(EVENTS)).items
        assert (event["count"], event["reason"]) == (3, "ProbeFailed")


async def test_a_restart_goes_on_from_what_is_written():
    async with own_cluster() as own:
        world = World(own)
        await world.make_slice("10.0.0.1", "10.0.0.2", ready=True)
        version = (await world.slice())["metadata"]["resourceVersion"]
        world.down = {"10.0.0.1"}
        async with probing_again(world):
            await world.own.quiet()
        async with probing_again(world):
            await world.own.quiet()
            assert (await world.slice())["metadata"]["resourceVersion"] == version  # one failure each, of two needed
            await world.pass_(10)
            assert await world.ready() == {"10.0.0.1": False, "10.0.0.2": True}


async def test_endpoints_move_and_their_mirror_follows():
    async with probing(mirrored=True) as world:
        world.down = {"10.0.0.2"}
        spec = {"ports": [{"port": 80}]}
        await world.cluster.create(SERVICES, {"metadata": {"name": "db"}, "spec": spec}, namespace="default")
        subsets = [{"addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}], "ports": [{"port": 80}]}]
        endpoints = {"metadata": {"name": "db", "annotations": PROBED}, "subsets": subsets}
        await world.cluster.create(ENDPOINTS, endpoints, namespace="default")
        await world.pass_(20)
        [subset] = (await world.cluster.get(ENDPOINTS, "db", namespace="default"))["subsets"]
        assert subset["addresses"] == [{"ip": "10.0.0.1"}]
        assert subset["notReadyAddresses"] == [{"ip": "10.0.0.2"}]
        [mirror] = (await world.cluster.list(ENDPOINT_SLICES, labels="kubernetes.io/service-name=db")).items
        assert await world.ready(mirror["metadata"]["name"]) == {"10.0.0.1": True, "10.0.0.2": False}
        assert sorted(set(world.asked)) == ["10.0.0.1:80", "10.0.0.2:80"]
        assert len(world.asked) == 6  # three rounds of two; the mirror is not probed beside them
