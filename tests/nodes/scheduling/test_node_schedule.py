"""The scheduler: which node a Pod gets, and the message if there is none."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pictures import HOST, ZONE, node, picture, pod

from seamark.kinds.wellknown import UNSCHEDULABLE_TAINT
from seamark.nodes.scheduling import requests
from seamark.nodes.scheduling.occupancy import Occupancy, occupant
from seamark.nodes.scheduling.schedule import ENOUGH, Question, choose

THREE = (node("n-1", "a"), node("n-2", "b"), node("n-3", "c"))


def fill(occupancy, pods):
    """Schedule these Pods one after another; returns the number per node."""
    counts = Counter()
    for one in pods:
        decision = choose(one, occupancy)
        counts[decision.node or decision.message] += 1
        if decision.node:
            occupancy.put(occupant(one, decision.node))
    return counts


# --- nodes that do not fit -----------------------------------------------------------------------------------


def test_no_nodes():
    decision = choose(pod(), Occupancy())
    assert (decision.node, decision.message) == ("", "no nodes available to schedule pods")


@pytest.mark.parametrize(
    ("wrong", "asked", "said", "space"),
    [
        ({"unschedulable": True}, {}, "node(s) were unschedulable", False),
        ({"ready": False}, {}, "node(s) were not ready", False),
        ({}, {"nodeSelector": {"disk": "ssd"}}, "node(s) didn't match Pod's node affinity/selector", False),
        (
            {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
            {},
            "node(s) had untolerated taint {gpu: yes}",
            False,
        ),
        ({"cpu": "1"}, {"cpu": "1100m"}, "Insufficient cpu", True),
        ({"pods": "0"}, {}, "Too many pods", True),
        (
            {},
            {"containers": [{"name": "a", "resources": {"requests": {"example.com/dongle": "1"}}}]},
            "Insufficient example.com/dongle",
            True,
        ),
    ],
)
def test_what_is_said(wrong, asked, said, space):
    decision = choose(pod(**asked), picture([node("n-1", **wrong), node("n-2", **wrong)]))
    assert decision.message == f"0/2 nodes are available: 2 {said}."
    assert decision.hopes_for_space == space
    if wrong:
        assert choose(pod(**asked), picture([node("n-1", **wrong), node("good", cpu="8")])).node == "good"


def test_several_reasons_are_counted_and_sorted():
    nodes = [node("n-1", cpu="1", memory="1Gi"), node("n-2", unschedulable=True), node("n-3", cpu="1")]
    wanted = [{"name": "a", "resources": {"requests": {"cpu": "2", "memory": "2Gi"}}}]
    assert choose(pod(containers=wanted), picture(nodes)).message == (
        "0/3 nodes are available: 1 Insufficient memory, 1 node(s) were unschedulable, 2 Insufficient cpu."
    )


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ({"key": "size", "operator": "In", "values": ["5", "7"]}, {"n-2"}),
        ({"key": "size", "operator": "NotIn", "values": ["5"]}, {"n-1", "n-3"}),
        ({"key": "size", "operator": "Exists"}, {"n-2", "n-3"}),
        ({"key": "size", "operator": "DoesNotExist"}, {"n-1"}),
        ({"key": "size", "operator": "Gt", "values": ["5"]}, {"n-3"}),
        ({"key": "size", "operator": "Lt", "values": ["9"]}, {"n-2"}),
        ({"key": "size", "operator": "Gt", "values": ["many"]}, set()),
    ],
)
def test_required_node_affinity(expression, fits):
    nodes = [node("n-1"), node("n-2", labels={"size": "5"}), node("n-3", labels={"size": "9"})]
    terms = [{"matchExpressions": [expression]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    assert {n.name for n in nodes if choose(pod(affinity=affinity), picture([n])).node} == fits


def test_node_affinity_by_name_as_daemonsets_have_it():
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n-2"]}]
    terms = [{}, {"matchFields": fields}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    assert choose(pod(affinity=affinity), picture(THREE)).node == "n-2"


def test_init_containers_and_sidecars_count_as_they_run():
    containers = [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]
    init = [
        {"name": "first", "resources": {"requests": {"cpu": "3"}}},
        {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}},
        {"name": "second", "resources": {"requests": {"cpu": "1500m"}}},
    ]
    asked = requests.requested(pod(containers=containers, initContainers=init, overhead={"cpu": "250m"}))
    # 2 + 1.5 while the second runs, more than 3 for the first and 1 + 2 afterwards.
    assert asked == {"cpu": 3750, "pods": 1000}


def test_host_ports_collide():
    def asking(port, ip="", protocol="TCP", name="new"):
        ports = [{"hostPort": port, "hostIP": ip, "protocol": protocol}]
        return pod(name, containers=[{"name": "a", "ports": ports}])

    one = picture([node("n-1")], n_1=[asking(80, "10.0.0.1", name="there")])
    assert "didn't have free ports" in choose(asking(80), one).message
    assert "didn't have free ports" in choose(asking(80, "10.0.0.1"), one).message
    assert "didn't have free ports" in choose(asking(80, "0.0.0.0"), one).message
    assert choose(asking(80, "10.0.0.2"), one).node == "n-1"
    assert choose(asking(80, protocol="UDP"), one).node == "n-1"
    assert choose(asking(81), one).node == "n-1"
    one.remove("default/there")
    assert choose(asking(80), one).node == "n-1"


# --- taints and tolerations ----------------------------------------------------------------------------------


def test_a_cordoned_node_can_be_tolerated():
    cordoned = node("n-1", unschedulable=True, taints=[{"key": UNSCHEDULABLE_TAINT, "effect": "NoSchedule"}])
    tolerating = pod(tolerations=[{"key": UNSCHEDULABLE_TAINT, "operator": "Exists"}])
    assert choose(tolerating, picture([cordoned])).node == "n-1"
    assert not choose(pod(), picture([cordoned])).node


# --- which is best -------------------------------------------------------------------------------------------


def test_pods_of_a_controller_are_spread_over_zones_then_nodes():
    nodes = [node("a-1", "a"), node("a-2", "a"), node("b-1", "b")]
    counts = fill(picture(nodes), [pod(f"p-{n}", owner="web") for n in range(12)])
    assert counts == {"a-1": 3, "a-2": 3, "b-1": 6}


def test_pods_without_a_controller_are_spread_by_their_labels_even_when_they_have_learned_their_zone():
    occupancy = picture(THREE)
    for n in range(9):
        one = pod(f"p-{n}", labels={"app": "web"})
        chosen = choose(one, occupancy).node
        zone = occupancy.rooms[chosen].node.metadata.labels[ZONE]
        occupancy.put(occupant(pod(f"p-{n}", labels={"app": "web", ZONE: zone}), chosen))
    assert Counter(room.used["pods"] for room in occupancy.rooms.values()) == {3000: 3}


def test_the_least_full_node_is_taken():
    nodes = [node("n-1", cpu="4"), node("n-2", cpu="8")]
    occupancy = picture(nodes, n_1=[pod("x", cpu="2")], n_2=[pod("y", cpu="3")])
    assert choose(pod(cpu="1"), occupancy).node == "n-2"


def test_preferences_come_first():
    prefer = "preferredDuringSchedulingIgnoredDuringExecution"
    nodes = [node("n-1"), node("n-2", labels={"disk": "ssd"})]
    likes = [{"weight": 5, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}]
    crowded = picture(nodes, n_2=[pod(str(n), owner="web", cpu="300m") for n in range(9)])
    assert choose(pod(owner="web", affinity={"nodeAffinity": {prefer: likes}}), crowded).node == "n-2"
    discouraged = [node("n-1", taints=[{"key": "x", "effect": "PreferNoSchedule"}]), node("n-2")]
    assert choose(pod(), picture(discouraged, n_2=[pod(str(n)) for n in range(9)])).node == "n-2"
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "db"}}}
    near = {"podAffinity": {prefer: [{"weight": 10, "podAffinityTerm": term}]}}
    far = {"podAntiAffinity": {prefer: [{"weight": 10, "podAffinityTerm": term}]}}
    with_database = picture(THREE, n_3=[pod("db", labels={"app": "db"})])
    assert choose(pod(affinity=near), with_database).node == "n-3"
    assert choose(pod(affinity=far), with_database).node != "n-3"


def test_equal_nodes_are_chosen_between_by_the_seed_alone():
    pods = [pod(f"p-{n}") for n in range(40)]
    chosen = [[choose(one, picture(THREE), seed=seed).node for one in pods] for seed in (1, 1, 2)]
    assert chosen[0] == chosen[1] != chosen[2]
    assert set(chosen[0]) == {"n-1", "n-2", "n-3"}


# --- affinity and anti-affinity between Pods -----------------------------------------------------------------

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def apart(topology=HOST, **term):
    term = {"topologyKey": topology, "labelSelector": {"matchLabels": {"app": "web"}}, **term}
    return {"podAntiAffinity": {REQUIRED: [term]}}


def test_required_anti_affinity_puts_one_on_each_node():
    pods = [pod(f"p-{n}", labels={"app": "web"}, affinity=apart()) for n in range(4)]
    counts = fill(picture(THREE), pods)
    assert counts == {
        "n-1": 1,
        "n-2": 1,
        "n-3": 1,
        "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.": 1,
    }


def test_those_already_there_keep_others_away():
    hermit = pod("hermit", affinity=apart(topology=ZONE))
    nodes = [node("n-1", "a"), node("n-2", "a"), node("n-3", "b")]
    occupancy = picture(nodes, n_1=[hermit])
    assert choose(pod(labels={"app": "web"}), occupancy).node == "n-3"
    alone = picture(nodes[:2], n_1=[hermit])
    assert choose(pod(labels={"app": "web"}), alone).message == (
        "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules."
    )
    alone.remove("default/hermit")
    assert choose(pod(labels={"app": "web"}), alone).node


def test_namespaces_of_terms():
    there = pod("there", labels={"app": "web"}, namespace="blue")
    occupancy = picture([node("n-1")], n_1=[there])
    occupancy.put_namespace("blue", {"team": "sea"})
    occupancy.put_namespace("default", {})
    assert choose(pod(affinity=apart()), occupancy).node, "its own namespace only"
    assert not choose(pod(affinity=apart(namespaces=["blue"])), occupancy).node
    assert not choose(pod(affinity=apart(namespaceSelector={})), occupancy).node
    assert not choose(pod(affinity=apart(namespaceSelector={"matchLabels": {"team": "sea"}})), occupancy).node
    assert choose(pod(affinity=apart(namespaceSelector={"matchLabels": {"team": "land"}})), occupancy).node
    occupancy.put_namespace("blue", {"team": "land"})
    assert not choose(pod(affinity=apart(namespaceSelector={"matchLabels": {"team": "land"}})), occupancy).node


def test_required_affinity_goes_where_the_others_are():
    together = {"podAffinity": {REQUIRED: [{"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}]}}
    nodes = [node("n-1", "a"), node("n-2", "b"), node("n-3", "b"), node("n-4")]
    occupancy = picture(nodes)
    lonely = choose(pod(affinity=together), occupancy)
    assert lonely.message == "0/4 nodes are available: 4 node(s) didn't match pod affinity rules."
    assert lonely.hopes_for_space
    counts = fill(occupancy, [pod(f"p-{n}", labels={"app": "web"}, affinity=together) for n in range(6)])
    assert len({node.removeprefix("n-") in "23" for node in counts}) == 1, "all in the zone of the first"
    assert choose(pod(affinity=together), occupancy).node in counts


# --- topology spread constraints -----------------------------------------------------------------------------


def spreading(when="DoNotSchedule", skew=1, topology=ZONE, **more):
    return [
        {
            "maxSkew": skew,
            "topologyKey": topology,
            "whenUnsatisfiable": when,
            "labelSelector": {"matchLabels": {"app": "web"}},
            **more,
        }
    ]


def web(name, **more):
    return pod(name, labels={"app": "web"}, **more)


def test_spread_constraints_hold_the_skew():
    nodes = [node("n-1", "a", pods="3"), node("n-2", "b"), node("n-3")]
    counts = fill(picture(nodes), [web(f"p-{n}", topologySpreadConstraints=spreading()) for n in range(9)])
    assert (counts["n-1"], counts["n-2"]) == (3, 4)
    (message,) = (key for key in counts if key.startswith("0/3"))
    assert message == (
        "0/3 nodes are available: 1 Too many pods, 1 node(s) didn't match pod topology spread constraints, "
        "1 node(s) didn't match pod topology spread constraints (missing required label)."
    )


def test_terminating_pods_do_not_count_for_spreading():
    occupancy = picture(THREE[:2], n_1=[web(f"old-{n}", deleting=True) for n in range(5)])
    counts = fill(occupancy, [web(f"p-{n}", topologySpreadConstraints=spreading()) for n in range(4)])
    assert counts == {"n-1": 2, "n-2": 2}


def test_schedule_anyway_is_a_wish():
    occupancy = picture(THREE, n_1=[web("x")], n_2=[web("y")])
    wish = spreading("ScheduleAnyway")
    assert choose(web("new", topologySpreadConstraints=wish, cpu="1"), occupancy).node == "n-3"
    full = picture([THREE[0], THREE[1], node("n-3", "c", pods="0")], n_1=[web("x"), web("z")], n_2=[web("y")])
    assert choose(web("new", topologySpreadConstraints=wish), full).node == "n-2"


def test_minimum_domains_and_policies():
    two = THREE[:2]
    placed = {"n_1": [web("x")], "n_2": [web("y")]}
    assert choose(web("new", topologySpreadConstraints=spreading()), picture(two, **placed)).node
    assert not choose(web("new", topologySpreadConstraints=spreading(minDomains=3)), picture(two, **placed)).node
    tainted = [*two, node("n-3", "c", taints=[{"key": "t", "effect": "NoSchedule"}])]
    asked = web("new", topologySpreadConstraints=spreading())
    assert not choose(asked, picture(tainted, **placed)).node, "a place it cannot go to still counts"
    honouring = web("new", topologySpreadConstraints=spreading(nodeTaintsPolicy="Honor"))
    assert choose(honouring, picture(tainted, **placed)).node
    outside = [*two, node("n-3", "c")]
    selecting = {"nodeSelector": {"here": "yes"}}
    labelled = [node(n.name, n.metadata.labels[ZONE], labels={"here": "yes"}) for n in two]
    within = web("new", topologySpreadConstraints=spreading(), **selecting)
    assert choose(within, picture([*labelled, outside[2]], **placed)).node
    ignoring = web("new", topologySpreadConstraints=spreading(nodeAffinityPolicy="Ignore"), **selecting)
    assert not choose(ignoring, picture([*labelled, outside[2]], **placed)).node


# --- properties ----------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["put", "remove"]), st.integers(0, 3), st.booleans()),
        max_size=40,
    )
)
def test_counting_change_by_change_is_counting_anew(changes):
    """After any changes, the counts equal those of a fresh computation."""
    term = apart(topology=ZONE)
    asked = web("asked", topologySpreadConstraints=spreading(), affinity=term)
    kept = picture(THREE)
    there = {}
    for name, what, number, hermit in changes:
        choose(asked, kept)  # creates the counts, so that they are updated afterwards
        if what == "put":
            one = web(name, cpu=f"{number * 100}m", **({"affinity": term} if hermit else {}))
            there[name] = (one, f"n-{number % 3 + 1}")
            kept.put(occupant(*there[name]))
        else:
            assert kept.remove(f"default/{name}") == (there.pop(name, None) is not None)
    fresh = picture(THREE)
    for one, where in there.values():
        fresh.put(occupant(one, where))
    assert choose(asked, kept) == choose(asked, fresh)
    assert choose(pod(), kept) == choose(pod(), fresh)
    for name, room in kept.rooms.items():
        assert {k: v for k, v in room.used.items() if v} == {k: v for k, v in fresh.rooms[name].used.items() if v}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["100m", "500m", "1", "2500m"]), max_size=30))
def test_nodes_are_never_overfilled(sizes):
    occupancy = picture([node("n-1", cpu="4", pods="7"), node("n-2", cpu="2", pods="20")])
    fill(occupancy, [pod(f"p-{n}", cpu=size) for n, size in enumerate(sizes)])
    for room in occupancy.rooms.values():
        assert all(much <= room.allocatable[name] for name, much in room.used.items())


def test_a_node_that_comes_later_knows_who_is_on_it_already():
    occupancy = picture([])
    occupancy.put(occupant(pod("early", cpu="3"), "n-1"))
    occupancy.put_node(node("n-1"))
    assert choose(pod(cpu="2"), occupancy).message == "0/1 nodes are available: 1 Insufficient cpu."


# --- large clusters ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "zone", [lambda n: "abc"[n % 3], lambda n: "abc"[n // 200]], ids=["in turn", "one after other"]
)
def test_in_a_large_cluster_the_best_of_enough_nodes_is_taken(monkeypatch, zone):
    occupancy = picture([node(f"n-{number}", zone(number)) for number in range(600)])
    asked = []
    monkeypatch.setattr(Question, "refuses", lambda self, room: asked.append(room.name) or ())
    counts = fill(occupancy, [pod(f"p-{number}", owner="set") for number in range(90)])
    assert len(asked) == 90 * ENOUGH
    assert len(set(asked)) > 500  # each Pod looks at others
    assert set(counts.values()) == {1}
    assert Counter(occupancy.rooms[name].zone for name in counts) == {"a": 30, "b": 30, "c": 30}


def test_the_one_node_that_fits_is_found_in_a_large_cluster():
    nodes = [node(f"n-{number}", labels={"disk": "fast"} if number == 77 else {}) for number in range(600)]
    assert choose(pod(nodeSelector={"disk": "fast"}), picture(nodes)).node == "n-77"
    assert "0/600 nodes are available" in choose(pod(nodeSelector={"disk": "none"}), picture(nodes)).message
