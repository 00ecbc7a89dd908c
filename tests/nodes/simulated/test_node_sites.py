"""Settings, and where nodes are."""

import re
from ipaddress import ip_network

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.nodes.simulated import node_objects
from seamark.nodes.simulated.settings import NodeSettings
from seamark.nodes.simulated.sites import NoRoom, Sites
from seamark.rules.objects.node import Node


def test_the_defaults_are_good():
    for count in (3, 0, 256):
        assert NodeSettings(count=count).count == count


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"count": -1}, "-1 is not a number of nodes"),
        ({"count": 257}, "pod range 10.244.0.0/14 has room for 256 nodes of 1000 pods, not for 257"),
        (
            {"count": 65, "pod_ranges": ("10.244.0.0/16",)},
            "pod range 10.244.0.0/16 has room for 64 nodes of 1000 pods, not for 65",
        ),
        ({"prefix": "Node"}, "prefix 'Node'"),
        ({"zones": ("a b",)}, "'a b'"),
        ({"cpu": "much"}, "cpu 'much'"),
        ({"memory": "0"}, "memory must be more than nothing"),
        ({"pods": 0}, "pods must be greater than 0"),
        ({"stop_after": -1.0}, "stop_after must not be negative"),
        ({"pod_ranges": ("10.244.0.1/16",)}, "10.244.0.1/16 has host bits set"),
        ({"pod_ranges": ()}, "pod ranges: one, or one of each IP family, is needed"),
        ({"pod_ranges": ("10.0.0.0/14", "10.8.0.0/14")}, "one of each IP family"),
        ({"node_ranges": ("172.18.0.0/16",)}, "pod ranges of a family without a node range"),
        ({"node_ranges": ("172.18.0.0/30", "fd00::/64")}, "node range 172.18.0.0/30 has room for 2 nodes, not for 3"),
    ],
)
def test_bad_settings_are_explained(wrong, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        NodeSettings(**wrong)


def test_names_of_ours():
    settings = NodeSettings(count=2)
    assert settings.names == ("node-1", "node-2")
    numbers = {
        name: settings.number(name)
        for name in ("node-1", "node-17", "node-0", "node-01", "node-a", "node", "my-node-1")
    }
    assert numbers == {
        "node-1": 1,
        "node-17": 17,
        "node-0": None,
        "node-01": None,
        "node-a": None,
        "node": None,
        "my-node-1": None,
    }
    assert [settings.zone(n) for n in range(1, 6)] == ["zone-a", "zone-b", "zone-c", "zone-a", "zone-b"]


def made(settings, name, site):
    return msgspec.convert(node_objects.new(settings, name, site, now=0.0), Node)


def test_each_node_has_its_own_part():
    settings = NodeSettings(count=3, pods=200)
    sites = Sites(settings, [])
    assert [sites.take(name) for name in settings.names] == [
        node_objects.Site(
            (f"10.244.{n - 1}.0/24", "fd00:10:244::/64" if n == 1 else f"fd00:10:244:{n - 1}::/64"),
            (f"172.18.0.{n + 1}", f"fd00:172:18::{n + 1}"),
        )
        for n in (1, 2, 3)
    ]


def test_parts_of_others_are_left_to_them():
    settings = NodeSettings(pods=200)
    foreign = msgspec.convert(
        {
            "metadata": {"name": "foreign"},
            "spec": {"podCIDRs": ["10.244.0.0/23", "fd00:10:244:1::/80"]},
            "status": {
                "addresses": [{"type": "InternalIP", "address": "172.18.0.2"}, {"type": "Hostname", "address": "x"}]
            },
        },
        Node,
    )
    site = Sites(settings, [foreign]).take("node-1")
    assert site.pod_cidrs == ("10.244.2.0/24", "fd00:10:244::/64")
    assert site.addresses == ("172.18.0.3", "fd00:172:18::2")


def test_when_everything_is_taken():
    settings = NodeSettings(count=1, pods=200, pod_ranges=("10.0.0.0/23",), node_ranges=("172.18.0.0/24",))
    sites = Sites(settings, [])
    assert [sites.take("node-1").pod_cidrs for _ in range(2)] == [("10.0.0.0/24",), ("10.0.1.0/24",)]
    with pytest.raises(NoRoom, match=r"the Pod range 10\.0\.0\.0/23 has no part left"):
        sites.take("node-3")


@given(st.permutations(range(1, 13)), st.lists(st.integers(1, 900), min_size=12, max_size=12))
def test_whatever_the_order_and_the_size_no_parts_overlap(order, sizes):
    """Settings may change from one start to the next; Nodes that are there keep what they have."""
    nodes = []
    for number, pods in zip(order, sizes, strict=True):
        settings = NodeSettings(pods=pods)
        name = f"node-{number}"
        nodes.append(made(settings, name, Sites(settings, nodes).take(name)))
    networks = [ip_network(cidr) for node in nodes for cidr in node.spec.pod_cidrs]
    for i, one in enumerate(networks):
        assert not any(one.version == other.version and one.overlaps(other) for other in networks[:i])
    addresses = [a.address for node in nodes for a in node.status.addresses]
    assert len(set(addresses)) == len(addresses)


def test_what_is_missing_from_a_node_that_is_there():
    settings = NodeSettings()
    bare = msgspec.convert(
        {
            "metadata": {"name": "mine", "labels": {"topology.kubernetes.io/zone": "elsewhere"}},
            "status": {"capacity": {"example.com/dongle": "4"}, "allocatable": {"example.com/dongle": "4"}},
        },
        Node,
    )
    changes, status = node_objects.registration(settings, bare, Sites(settings, []))
    assert "topology.kubernetes.io/zone" not in changes["metadata"]["labels"], "what a user set stays"
    assert changes["metadata"]["labels"]["kubernetes.io/hostname"] == "mine"
    assert changes["spec"]["podCIDRs"] == ["10.244.0.0/22", "fd00:10:244::/64"]
    assert set(status) == {"addresses", "capacity", "allocatable", "nodeInfo", "daemonEndpoints"}
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
    whole = made(settings, "node-1", Sites(settings, []).take("node-1"))
    assert node_objects.registration(settings, whole, Sites(settings, [whole])) == ({}, {})
    larger = NodeSettings(cpu="128")
    _, status = node_objects.registration(larger, whole, Sites(larger, [whole]))
    assert set(status) == {"capacity", "allocatable"}


def test_the_system_of_a_machine_that_runs_pods():
    settings, system = NodeSettings(), node_objects.System("6.12.1", "Debian GNU/Linux 13", "arm64")
    place = Sites(settings, []).take("node-1")
    told = node_objects.new(settings, "node-1", place, now=0.0, system=system)
    info = told["status"]["nodeInfo"]
    assert (info["kernelVersion"], info["osImage"], info["architecture"]) == ("6.12.1", "Debian GNU/Linux 13", "arm64")
    assert told["metadata"]["labels"]["kubernetes.io/arch"] == "arm64"
    simulated = made(settings, "node-1", place)
    _, status = node_objects.registration(settings, simulated, Sites(settings, [simulated]), system)
    assert status["nodeInfo"] == info


def test_conditions_and_taints_of_the_living_and_the_dead():
    settings = NodeSettings()
    node = made(settings, "node-1", Sites(settings, []).take("node-1"))
    assert node.ready
    assert node_objects.healthy(node.status.conditions, now=99.0) == node.status.conditions
    lost = node_objects.lost(node.status.conditions, now=60.0)
    assert {(c.status, c.reason, c.last_transition_time) for c in lost} == {
        ("Unknown", "NodeStatusUnknown", "1970-01-01T00:01:00Z")
    }
    assert node_objects.lost(lost, now=99.0) == lost
    dead = node_objects.taints(node, alive=False, now=60.0)
    assert [(t.key, t.effect) for t in dead] == [
        ("node.kubernetes.io/unreachable", effect) for effect in ("NoSchedule", "NoExecute")
    ]
    mine = {"key": "mine", "effect": "NoSchedule"}
    for key in ("not-ready", "unreachable", "unschedulable"):
        tainted = msgspec.convert(
            {
                "metadata": {"name": "n"},
                "spec": {"taints": [mine, {"key": f"node.kubernetes.io/{key}", "effect": "NoSchedule"}]},
            },
            Node,
        )
        assert [t.key for t in node_objects.taints(tainted, alive=True, now=0.0)] == ["mine"]


def test_heartbeats_of_very_many_nodes_are_stretched():
    few = NodeSettings()
    assert few.paced() is few
    many = NodeSettings(count=5000, pods=110, pod_ranges=("10.240.0.0/12",), node_ranges=("172.18.0.0/16",)).paced()
    assert (many.heartbeat, many.lease, many.grace) == (50.0, 200, 250.0)
