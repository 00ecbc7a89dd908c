"""Hints: by traffic distribution, and shared out among zones by the topology annotation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import NODES, Slices, node, pod, service

from seamark.rules import hints
from seamark.rules.objects.endpointslice import Conditions, Endpoint, Hints, HintTarget
from seamark.rules.slices.state import SlicesState, Topology

AUTO = {"service.kubernetes.io/topology-mode": "Auto"}


def endpoint(zone, *, ready=True, hint=None, node_name=None):
    return Endpoint(
        addresses=("10.0.0.1",),
        conditions=Conditions(ready, ready, False),
        zone=zone,
        node_name=node_name,
        hints=Hints(for_zones=(HintTarget(hint),)) if hint else None,
    )


def zones(endpoints):
    return [e.hints and e.hints.for_zones[0].name for e in endpoints]


@pytest.mark.parametrize(
    ("annotations", "distribution", "mode"),
    [
        ({}, None, ""),
        ({}, "PreferClose", "PreferClose"),
        ({}, "PreferSomethingNew", ""),
        (AUTO, "PreferClose", "topology"),
        ({"service.kubernetes.io/topology-aware-hints": "auto"}, None, "topology"),
        ({"service.kubernetes.io/topology-aware-hints": "Disabled", **AUTO}, "PreferSameZone", "PreferSameZone"),
        ({"service.kubernetes.io/topology-mode": "AUTO"}, None, ""),
    ],
)
def test_how_a_service_asks_for_hints(annotations, distribution, mode):
    assert hints.mode(service(annotations=annotations, trafficDistribution=distribution)) == mode


def test_every_endpoint_serves_its_own_zone_or_node():
    near = endpoint("z", node_name="n")
    assert hints.own_hints("PreferClose", near) == Hints(for_zones=(HintTarget("z"),))
    assert hints.own_hints("PreferSameNode", near) == Hints((HintTarget("z"),), (HintTarget("n"),))
    assert hints.own_hints("PreferSameNode", endpoint(None, node_name="n")) == Hints(None, (HintTarget("n"),))
    assert hints.own_hints("PreferSameZone", endpoint(None)) is None
    assert hints.own_hints("PreferSameZone", endpoint("z", ready=False)) is None
    assert hints.own_hints("", near) is None


def test_shares_of_zones():
    nodes = [node("a", zone="x"), node("b", zone="y", cpu="3500m"), node("c", zone="y", cpu="0.5")]
    assert hints.ZoneCpus(nodes).shares == {"x": 0.5, "y": 0.5}


@pytest.mark.parametrize(
    "odd",
    [node("odd", zone=""), node("odd", zone="z", cpu=""), node("odd", zone="z", cpu="nonsense")],
)
def test_one_node_that_does_not_say_enough_spoils_it(odd):
    assert hints.ZoneCpus([*NODES.values(), odd]).shares is None


def test_nodes_that_do_not_count():
    nodes = [*NODES.values(), node("down", zone="", ready=False)]
    nodes.append(node("master", zone="", labels={"node-role.kubernetes.io/control-plane": ""}))
    assert len(hints.ZoneCpus(nodes).shares) == 3
    assert hints.ZoneCpus([node("a"), node("b")]).shares is None  # one zone only


def test_too_few_endpoints():
    refusal = hints.needs({"a": 0.5, "b": 0.5}, 1)
    assert refusal == hints.Refusal(hints.Withheld.TOO_FEW, "(1 endpoints, 2 zones)", needed=2)
    assert refusal.message == "Insufficient number of endpoints (1 endpoints, 2 zones)"


def test_a_zone_so_small_that_its_one_endpoint_overloads_the_others():
    refusal = hints.needs({"a": 0.9, "b": 0.05, "c": 0.05}, 3)
    assert isinstance(refusal, hints.Refusal)
    assert refusal.message.startswith("Unable to allocate minimum required endpoints")


def test_a_surplus_goes_where_the_need_is():
    slices = [[endpoint("a") for _ in range(4)] + [endpoint("b")] * 2]
    outcome = hints.share_out(slices, [True], {"a": 0.5, "b": 0.5})
    assert sorted(zones(outcome.contents[0])) == ["a", "a", "a", "b", "b", "b"]
    assert outcome.given == {"a": 3, "b": 3}


def test_hints_in_order_are_left_alone():
    right = [endpoint("a", hint="a"), endpoint("b", hint="b")]
    outcome = hints.share_out([right], [False], {"a": 0.5, "b": 0.5})
    assert outcome.contents == {}
    wrong = [endpoint("a", hint="gone"), endpoint("b", hint="b")]
    outcome = hints.share_out([wrong], [False], {"a": 0.5, "b": 0.5})
    assert zones(outcome.contents[0]) == ["a", "b"]


def test_an_endpoint_without_a_zone_drops_all():
    refusal = hints.share_out([[endpoint("a"), endpoint(None)]], [True], {"a": 0.5, "b": 0.5})
    assert refusal == hints.Refusal(hints.Withheld.ZONE_UNKNOWN)


def test_not_ready_endpoints_get_none():
    outcome = hints.share_out(
        [[endpoint("a"), endpoint("b"), endpoint("b", ready=False)]], [True], {"a": 0.5, "b": 0.5}
    )
    assert zones(outcome.contents[0]) == ["a", "b", None]


def test_overload():
    even = {"a": 0.5, "b": 0.5}
    assert not hints.overloaded({}, even)
    assert not hints.overloaded({"a": 3, "b": 3}, even)
    assert hints.overloaded({"a": 5, "b": 1}, even)
    assert hints.overloaded({"a": 3}, None)


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(1, 16), min_size=2),
    st.lists(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=12), min_size=1, max_size=3),
)
@settings(max_examples=80, deadline=None)
def test_no_zone_is_overloaded_and_every_ready_endpoint_has_one_zone(cpus, drawn):
    shares = {zone: amount / sum(cpus.values()) for zone, amount in cpus.items()}
    slices = [[endpoint(zone, ready=ready) for zone, ready in each] for each in drawn]
    outcome = hints.share_out(slices, [True] * len(slices), shares)
    if isinstance(outcome, hints.Refusal):
        return
    given_zones = {}
    for position, endpoints in outcome.contents.items():
        assert len(endpoints) == len(slices[position])
        for each in endpoints:
            if each.ready:
                [target] = each.hints.for_zones
                given_zones[target.name] = given_zones.get(target.name, 0) + 1
            else:
                assert each.hints is None
    assert given_zones == {zone: number for zone, number in outcome.given.items() if number}


# --- as part of the plan ---------------------------------------------------------------------------


def spread(state, counts):
    for zone, count in counts.items():
        for i in range(count):
            name = f"{zone}{i}"
            ip = f"10.{ord(zone)}.0.{i + 1}"
            state.put(name, pod(name, ips=(ip,), node=f"node-{zone}"), NODES[f"node-{zone}"])


def carry_out(state, slices, topology):
    plan = state.plan(topology=topology)
    for name in list(slices.carry_out(plan.changes)):
        if name in slices.by_name:
            state.observe(slices.by_name[name])
        else:
            state.forget(name)
    return plan


def test_the_annotation_shares_out_and_tells():
    state, slices = SlicesState(service(annotations=AUTO)), Slices()
    shares = hints.ZoneCpus(NODES.values()).shares
    spread(state, {"a": 4, "b": 1, "c": 1})
    plan = carry_out(state, slices, Topology(shares))
    assert [(n.type, n.reason) for n in plan.notes] == [("Normal", "TopologyAwareHintsEnabled")]
    assert plan.notes[0].message.endswith(", addressType: IPv4")
    assert plan.zones == {"IPv4": {"zone-a": 2, "zone-b": 2, "zone-c": 2}}
    [each] = slices
    assert None not in zones(each.endpoints)
    again = state.plan(topology=Topology(shares, hinted=True))
    assert not again.changes
    assert again.notes == ()


def test_losing_a_zone_takes_the_hints_away_and_tells():
    state, slices = SlicesState(service(annotations=AUTO)), Slices()
    spread(state, {"a": 2, "b": 2, "c": 2})
    carry_out(state, slices, Topology(hints.ZoneCpus(NODES.values()).shares))
    plan = carry_out(state, slices, Topology(None, hinted=True))
    assert [(n.type, n.reason) for n in plan.notes] == [("Warning", "TopologyAwareHintsDisabled")]
    [each] = slices
    assert zones(each.endpoints) == [None] * 6
    assert not state.plan(topology=Topology(None)).changes


def test_taking_the_annotation_back_strips_the_hints():
    state, slices = SlicesState(service(annotations=AUTO)), Slices()
    spread(state, {"a": 2, "b": 2, "c": 2})
    carry_out(state, slices, Topology(hints.ZoneCpus(NODES.values()).shares))
    assert not state.renew(service())  # everything must be judged anew
    fresh = SlicesState(service())
    for each in slices:
        fresh.observe(each)
    spread(fresh, {"a": 2, "b": 2, "c": 2})
    plan = carry_out(fresh, slices, Topology(hinted=True))
    assert [n.reason for n in plan.notes] == ["TopologyAwareHintsDisabled"]
    [each] = slices
    assert zones(each.endpoints) == [None] * 6


def test_zones_that_are_kept_node_by_node_are_those_that_are_counted_at_once():
    kept, nodes = hints.ZoneCpus(), {}
    steps = [("a", node("a", zone="x")), ("b", node("b", zone="y")), ("c", node("c", zone="y")), ("b", None)]
    steps += [("a", node("a", zone="y")), ("d", node("d", zone="")), ("d", None), ("d", node("d", zone="z"))]
    for name, now in steps:
        kept.put(name, now)
        nodes[name] = now
        at_once = hints.ZoneCpus(each for each in nodes.values() if each is not None)
        assert (kept.cpus, kept.unknown, kept.shares) == (at_once.cpus, at_once.unknown, at_once.shares)
    assert kept.shares == {"y": 2 / 3, "z": 1 / 3}
