"""The incremental state of a Service's slices against a fresh computation, and both against the verdicts."""

import random

import msgspec
import pytest
from batch_plans import slices_plan
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import NODES, Slices, node, pod, pods, service, services

from seamark.rules import hints
from seamark.rules.membership import judge, selects
from seamark.rules.objects.endpointslice import Endpoint
from seamark.rules.slices.objects import identity, port_key
from seamark.rules.slices.state import SlicesState, Topology

SHARES = hints.ZoneCpus(NODES.values()).shares
LIMIT = 4

operations = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), pods()),
        st.tuples(st.just("pod"), pods()),
        st.tuples(st.just("pod"), pods()),
        st.tuples(st.just("crowd"), st.integers(1, 12)),
        st.tuples(st.just("gone"), st.integers(0, 11).map(lambda i: f"p{i}")),
        st.tuples(st.just("write"), st.integers(0, 3)),
        st.tuples(st.just("write"), st.just(1000)),
        st.tuples(
            st.just("edit"),
            st.tuples(st.integers(0, 5), st.sampled_from(["empty", "repeat", "stray", "label", "copy", "ports"])),
        ),
        st.tuples(st.just("delete"), st.integers(0, 5)),
        st.tuples(st.just("service"), services()),
    ),
    max_size=25,
)

crowds = st.sampled_from([0, 3, 10, 12])


class World:
    """What there is, next to a state that is told of every change."""

    def __init__(self, first, crowd):
        self.service = first
        self.pods = {}
        self.slices = Slices()
        self.state = SlicesState(first, limit=LIMIT)
        self.do(("crowd", crowd))
        self.do(("write", 1000))

    def fresh(self, *, seed=0):
        """The plan by a fresh computation, everything fed in a random order."""
        everything, slices = list(self.pods.values()), list(self.slices)
        random.Random(seed).shuffle(everything)
        random.Random(seed).shuffle(slices)
        chosen = [p for p in everything if selects(self.service, p)]
        return slices_plan(
            self.service, chosen, slices, nodes=NODES, limit=LIMIT, topology=Topology(SHARES), trigger_time="t"
        )

    def plan(self):
        return self.state.plan(topology=Topology(SHARES), trigger_time="t")

    def tell_pod(self, name):
        found = self.pods.get(name)
        if found is not None and not selects(self.service, found):
            found = None
        self.state.put(name, found, NODES.get(found.spec.node_name) if found else None)

    def tell_slice(self, name):
        found = self.slices.by_name.get(name)
        if found is None:
            self.state.forget(name)
        else:
            self.state.observe(found)

    def do(self, operation):
        what, how = operation
        if what == "pod":
            self.pods[how.metadata.name] = how
            self.tell_pod(how.metadata.name)
        elif what == "crowd":
            for i in range(how):
                self.do(("pod", pod(f"p{i}", ips=(f"10.1.0.{i + 1}", f"fd00::{i + 1:x}"))))
        elif what == "gone":
            self.pods.pop(how, None)
            self.tell_pod(how)
        elif what == "write":
            for name in list(self.slices.carry_out(self.plan().changes, at_most=how)):
                self.tell_slice(name)
        elif what == "service":
            self.service = how
            if not self.state.renew(how):
                self.state = SlicesState(how, limit=LIMIT)
                for name in self.slices.by_name:
                    self.tell_slice(name)
                for name in self.pods:
                    self.tell_pod(name)
        elif self.slices.by_name:
            names = sorted(self.slices.by_name)
            name = names[(how if what == "delete" else how[0]) % len(names)]
            if what == "delete":
                self.slices.delete(name)
            else:
                other = self.slices.by_name[names[(how[0] + 1) % len(names)]]
                self.slices.update(tampered(self.slices.by_name[name], how[1], other))
            self.tell_slice(name)


def tampered(endpoint_slice, how, other):
    endpoints = endpoint_slice.endpoints or ()
    if how == "ports":
        return msgspec.structs.replace(endpoint_slice, ports=())
    if how == "label":
        meta = endpoint_slice.metadata
        changed = msgspec.structs.replace(meta, labels={**meta.labels, "mine": "yes"})
        return msgspec.structs.replace(endpoint_slice, metadata=changed)
    more = {
        "empty": (),
        "repeat": endpoints * 2,
        "copy": other.endpoints,
        "stray": (*endpoints, Endpoint(addresses=("10.9.9.9",))),
    }
    return msgspec.structs.replace(endpoint_slice, endpoints=more[how])


def wanted(world):
    """Every endpoint there should be, straight from the verdicts: family, ports and identity."""
    found = []
    for each in world.pods.values():
        verdict = judge(world.service, each, NODES.get(each.spec.node_name))
        if not verdict.in_slices:
            continue
        for family in world.service.families:
            if addresses := verdict.addresses(family):
                which = (tuple(sorted(addresses)), verdict.hostname, "default", each.metadata.name)
                conditions = (verdict.ready, verdict.serving, verdict.terminating)
                found.append((family, tuple(sorted(verdict.ports)), which, conditions))
    return sorted(found)


def held(world):
    found = []
    for each in world.slices:
        ports = port_key(each.ports)
        for endpoint in each.endpoints:
            c = endpoint.conditions
            found.append((each.address_type, ports, identity(endpoint), (c.ready, c.serving, c.terminating)))
    return sorted(found)


@given(services(), crowds, operations, st.integers(0, 1000))
@settings(max_examples=150, deadline=None)
def test_the_state_equals_a_fresh_computation_after_any_sequence(first, crowd, sequence, seed):
    world = World(first, crowd)
    for operation in sequence:
        world.do(operation)
    assert world.plan() == world.fresh(seed=seed)


@given(services(), crowds, operations)
@settings(max_examples=100, deadline=None)
def test_the_outcome_is_what_the_verdicts_say_and_a_second_run_writes_nothing(first, crowd, sequence):
    world = World(first, crowd)
    for operation in sequence:
        world.do(operation)
    for _ in range(3):
        world.do(("write", 1000))
    assert not world.plan().changes
    assert not world.fresh().changes
    assert held(world) == wanted(world)
    assert all(len(each.endpoints) <= LIMIT for each in world.slices)
    families = {each.address_type for each in world.slices}
    assert families == set(world.service.families)  # a placeholder where there is no endpoint


@given(services(), crowds, operations)
@settings(max_examples=150, deadline=None)
def test_slices_the_plan_does_not_write_are_right_already(first, crowd, sequence):
    """Nothing more is written than needed: every written slice differs from what was there."""
    world = World(first, crowd)
    for operation in sequence:
        world.do(operation)
    changes = world.plan().changes
    for changed in changes.update:
        before = world.slices.by_name[changed.metadata.name]
        assert (before.endpoints, before.ports, before.metadata.labels) != (
            changed.endpoints,
            changed.ports,
            changed.metadata.labels,
        )
    names = [each.metadata.name for each in (*changes.update, *changes.delete)]
    assert len(names) == len(set(names))


# --- one by one ------------------------------------------------------------------------------------


def fill(count, *, limit=100, **more):
    state, slices = SlicesState(service(**more), limit=limit), Slices()
    for i in range(count):
        state.put(f"p{i}", pod(f"p{i}", ips=(f"10.1.{i // 250}.{i % 250 + 1}",)), NODES["node-a"])
    write(state, slices)
    return state, slices


def write(state, slices):
    changes = state.plan().changes
    for name in list(slices.carry_out(changes)):
        found = slices.by_name.get(name)
        if found is None:
            state.forget(name)
        else:
            state.observe(found)
    return changes


def sizes(slices):
    return sorted(len(each.endpoints) for each in slices)


def test_a_service_without_pods_gets_a_placeholder():
    state, slices = SlicesState(service(labels={"a": "b"})), Slices()
    [made] = write(state, slices).create
    assert (made.endpoints, made.ports, made.address_type) == ((), (), "IPv4")
    assert made.metadata.generate_name == "web-"
    assert made.metadata.labels == {
        "a": "b",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    [owner] = made.metadata.owner_references
    assert (owner.kind, owner.uid, owner.controller, owner.block_owner_deletion) == ("Service", "svc-1", True, True)
    assert not state.plan().changes


def test_the_placeholder_becomes_the_first_slice_and_the_last_slice_the_placeholder():
    state, slices = SlicesState(service()), Slices()
    write(state, slices)
    state.put("a", pod("a"), NODES["node-a"])
    changes = write(state, slices)
    assert (len(changes.create), len(changes.update), len(changes.delete)) == (0, 1, 0)
    state.put("a", None, None)
    changes = write(state, slices)
    assert (len(changes.create), len(changes.update), len(changes.delete)) == (0, 1, 0)
    assert sizes(slices) == [0]


def test_slices_fill_to_the_limit():
    _, slices = fill(250)
    assert sizes(slices) == [50, 100, 100]


def test_a_new_endpoint_goes_to_the_fullest_slice_with_room():
    state, slices = fill(250)
    for each in list(slices):
        if len(each.endpoints) == 100:
            for endpoint in each.endpoints[:3]:
                state.put(endpoint.target_ref.name, None, None)
            break
    write(state, slices)
    assert sizes(slices) == [50, 97, 100]
    state.put("new", pod("new", ips=("10.2.0.1",)), NODES["node-a"])
    changes = write(state, slices)
    assert sizes(slices) == [50, 98, 100]
    assert (len(changes.create), len(changes.update)) == (0, 1)


def test_one_flip_writes_one_slice():
    state, slices = fill(1000)
    state.put("p7", pod("p7", ips=("10.1.0.8",), ready=False), NODES["node-a"])
    changes = write(state, slices)
    assert (len(changes.create), len(changes.update), len(changes.delete)) == (0, 1, 0)


def test_what_changes_nothing_writes_nothing():
    state, _ = fill(10)
    state.put("p7", pod("p7", ips=("10.1.0.8",), since="2027-01-01T00:00:00Z"), NODES["node-a"])
    assert not state.plan().changes


def test_an_endpoint_in_two_slices_is_taken_out_of_one():
    state, slices = fill(6, limit=3)
    one, two = sorted(slices, key=lambda s: s.metadata.name)
    state.observe(slices.update(msgspec.structs.replace(two, endpoints=(*one.endpoints[:1], *two.endpoints[1:]))))
    write(state, slices)
    assert sizes(slices) == [3, 3]
    assert len({identity(e) for each in slices for e in each.endpoints}) == 6
    assert not state.plan().changes


def test_slices_of_an_earlier_service_of_the_same_name_go():
    _, slices = fill(3)
    state = SlicesState(service(uid="svc-2"))
    for each in slices:
        state.observe(each)
    state.put("p0", pod("p0"), NODES["node-a"])
    changes = state.plan().changes
    assert (len(changes.create), len(changes.update), len(changes.delete)) == (1, 0, 1)


def test_a_service_being_deleted_gets_no_new_slices():
    web = service()
    going = msgspec.structs.replace(
        web, metadata=msgspec.structs.replace(web.metadata, deletion_timestamp="2026-01-03T00:00:00Z")
    )
    state = SlicesState(going)
    state.put("a", pod("a"), NODES["node-a"])
    assert not state.plan().changes


def test_a_slice_being_deleted_does_not_count():
    state, slices = fill(1)
    [each] = slices
    going = msgspec.structs.replace(each.metadata, deletion_timestamp="now", resource_version="later")
    state.observe(msgspec.structs.replace(each, metadata=going))
    assert len(state.plan().changes.create) == 1


def test_a_missing_node_leaves_the_pod_out_and_says_so():
    state = SlicesState(service())
    state.put("a", pod("a", node="ghost"), None)
    state.put("b", pod("b", ips=("10.1.0.2",)), NODES["node-a"])
    plan = state.plan()
    assert plan.nodeless == (("a", "ghost"),)
    [made] = plan.changes.create
    assert [e.target_ref.name for e in made.endpoints] == ["b"]
    state.put("a", pod("a", node="ghost"), node("ghost"))
    assert state.plan().nodeless == ()


def test_reserved_labels_of_the_service_are_not_handed_down():
    state, slices = fill(1)
    [each] = slices
    changed = service(labels={"kubernetes.io/service-name": "other", "service.kubernetes.io/headless": ""})
    assert state.renew(changed)
    assert not state.plan().changes
    assert state.renew(service(labels={"kubernetes.io/service-name": "other", "team": "a"}))
    [update] = state.plan().changes.update
    assert update.metadata.labels == {**each.metadata.labels, "team": "a"}


def test_an_update_keeps_what_others_put_into_the_metadata():
    state, slices = fill(2)
    [each] = slices
    theirs = msgspec.structs.replace(
        each.metadata, annotations={"note": "x"}, finalizers=("example.com/f",), resource_version="theirs"
    )
    state.observe(msgspec.structs.replace(each, metadata=theirs))
    state.put("p0", None, None)
    [update] = state.plan(trigger_time="2026-01-02T00:00:00Z").changes.update
    assert update.metadata.finalizers == ("example.com/f",)
    assert update.metadata.resource_version == "theirs"
    assert update.metadata.annotations == {
        "note": "x",
        "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-02T00:00:00Z",
    }


@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_any_limit_holds(limit):
    _, slices = fill(30, limit=limit)
    assert max(sizes(slices)) <= limit
    assert sum(sizes(slices)) == 30


def test_families_not_wanted_any_more_go():
    state = SlicesState(service(ipFamilies=["IPv4", "IPv6"]))
    slices = Slices()
    state.put("a", pod("a", ips=("10.1.0.1", "fd00::1")), NODES["node-a"])
    write(state, slices)
    assert sorted(each.address_type for each in slices) == ["IPv4", "IPv6"]
    state = SlicesState(service())
    for each in slices:
        state.observe(each)
    state.put("a", pod("a", ips=("10.1.0.1", "fd00::1")), NODES["node-a"])
    changes = write(state, slices)
    assert [gone.address_type for gone in changes.delete] == ["IPv6"]
    assert not changes.update
