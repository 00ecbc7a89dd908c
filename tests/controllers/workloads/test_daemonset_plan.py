"""DaemonSets: which nodes, which Pods, and updates in any order of events."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workload_objects import daemon_set, node, pod, template

from seamark.controllers.workloads.daemonset import by_node, count, new_pod, plan, with_tolerations
from seamark.kinds.values import times
from seamark.rules.objects.pod import PodSpec
from seamark.rules.placement import Eligibility, eligibility

NOW = 1_000_000.0
RUN, STAY, LEAVE = Eligibility(True, True), Eligibility(False, True), Eligibility(False, False)


def judge(spec, node):
    return eligibility(msgspec.convert(spec, PodSpec), node)


# --- nodes ---------------------------------------------------------------------------------------


def taint(effect, key):
    return {"key": key, "value": "", "effect": effect}


def test_pods_of_daemon_sets_stay_on_nodes_in_trouble():
    spec = with_tolerations(template())["spec"]
    for key, effect in [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ]:
        assert judge(spec, node("n1", taints=[taint(effect, f"node.kubernetes.io/{key}")])) == RUN
    network = node("n1", taints=[taint("NoSchedule", "node.kubernetes.io/network-unavailable")])
    assert judge(spec, network) == STAY
    given = template()
    given["spec"]["hostNetwork"] = True
    assert judge(with_tolerations(given)["spec"], network) == RUN
    assert with_tolerations(with_tolerations(given)) == with_tolerations(given)


# --- one step ------------------------------------------------------------------------------------


def daemon(name, on, hash="new", **what):
    return pod(name, node=on, labels={"app": "web", "controller-revision-hash": hash}, **what)


def waiting(name, on):
    """Not scheduled yet, but meant for a node."""
    found = daemon(name, "", phase="Pending")
    terms = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [on]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [terms]}}}
    spec = msgspec.convert({"affinity": affinity}, type(found.spec))
    return msgspec.structs.replace(found, spec=spec)


def planned(of, pods, verdicts, **more):
    change = plan(of, by_node(pods), verdicts, "new", now=NOW, **more)
    return change.create, [p.metadata.name for p in (*change.finished, *change.delete)]


A, B, C = "node-a", "node-b", "node-c"


@pytest.mark.parametrize(
    ("verdicts", "pods", "create", "delete"),
    [
        ({A: RUN, B: RUN}, [], [A, B], []),
        ({A: RUN, B: STAY, C: LEAVE}, [], [A], []),
        ({A: RUN}, [daemon("a", A)], [], []),
        ({A: RUN}, [waiting("a", A)], [], []),
        ({A: RUN}, [daemon("a", A, terminating=True)], [], []),  # one at a time
        ({A: STAY}, [daemon("a", A)], [], []),
        ({A: LEAVE}, [daemon("a", A)], [], ["a"]),
        ({A: LEAVE}, [daemon("a", A, terminating=True)], [], []),
        ({A: RUN}, [daemon("old", A, created=1), daemon("young", A, created=2)], [], ["young"]),
        ({A: RUN}, [waiting("unscheduled", A), daemon("scheduled", A, created=9)], [], ["unscheduled"]),
        ({A: RUN}, [daemon("failed", A, phase="Failed")], [], ["failed"]),
        ({A: RUN}, [daemon("done", A, phase="Succeeded")], [], ["done"]),
        ({A: RUN}, [daemon("a", A), waiting("lost", "gone-node")], [], ["lost"]),
        ({A: RUN}, [daemon("a", A), daemon("there", "gone-node")], [], []),  # its node's end is others' business
    ],
)
def test_every_node_gets_one(verdicts, pods, create, delete):
    assert planned(daemon_set(), pods, verdicts) == (create, delete)


def test_a_pod_that_ends_again_and_again_is_left_alone_for_a_while():
    failed = daemon("failed", A, phase="Failed")
    assert planned(daemon_set(), [failed], {A: RUN}, spared={failed.metadata.uid}) == ([], [])


OLD = "old"
ALL = {A: RUN, B: RUN, C: RUN}


@pytest.mark.parametrize(
    ("spec", "pods", "create", "delete"),
    [
        ({}, [daemon("a", A, OLD), daemon("b", B, OLD), daemon("c", C, OLD)], [], ["a"]),
        ({}, [daemon("a", A), daemon("b", B, OLD), daemon("c", C, OLD)], [], ["b"]),
        ({}, [daemon("a", A, ready=False), daemon("b", B, OLD), daemon("c", C, OLD)], [], []),
        # What does not work is no loss.
        ({}, [daemon("a", A, OLD, ready=False), daemon("b", B, OLD), daemon("c", C, OLD)], [], ["a"]),
        ({"unavailable": 2}, [daemon("a", A, OLD), daemon("b", B, OLD), daemon("c", C, OLD)], [], ["a", "b"]),
        ({"unavailable": "50%"}, [daemon("a", A, OLD), daemon("b", B, OLD), daemon("c", C, OLD)], [], ["a", "b"]),
        ({"updateStrategy": {"type": "OnDelete"}}, [daemon("a", A, OLD), daemon("b", B), daemon("c", C)], [], []),
        ({"surge": 1, "unavailable": 0}, [daemon("a", A, OLD), daemon("b", B, OLD), daemon("c", C, OLD)], [A], []),
        (
            {"surge": 1, "unavailable": 0},
            [daemon("a", A, OLD), daemon("a2", A, ready=False), daemon("b", B, OLD), daemon("c", C, OLD)],
            [],
            [],
        ),
        (
            {"surge": 1, "unavailable": 0},
            [daemon("a", A, OLD), daemon("a2", A), daemon("b", B, OLD), daemon("c", C, OLD)],
            [],
            ["a"],
        ),
        (
            {"surge": 1, "unavailable": 0},
            [daemon("a", A, OLD, ready=False), daemon("a2", A, ready=False), daemon("b", B), daemon("c", C)],
            [],
            ["a"],
        ),
        ({"surge": 1, "unavailable": 0}, [daemon("a", A, OLD, ready=False), daemon("b", B), daemon("c", C)], [A], []),
    ],
)
def test_updates(spec, pods, create, delete):
    assert planned(daemon_set(**spec), pods, ALL) == (create, delete)


def test_status():
    of = daemon_set(minReadySeconds=10, metadata={"generation": 3}, status={"observedGeneration": 2})
    pods = by_node([daemon("a", A, since=NOW - 20), daemon("b", B, OLD, since=NOW - 5), daemon("c", C)])
    verdicts = {A: RUN, B: RUN, C: STAY, "node-d": RUN}
    found = count(of, pods, verdicts, "new", settled=True, now=NOW)
    assert msgspec.to_builtins(found) == {
        "currentNumberScheduled": 2,
        "numberMisscheduled": 1,
        "desiredNumberScheduled": 3,
        "numberReady": 2,
        "observedGeneration": 3,
        "updatedNumberScheduled": 1,
        "numberAvailable": 1,
        "numberUnavailable": 2,
    }
    assert count(of, pods, verdicts, "new", settled=False, now=NOW).observed_generation == 2


def test_a_pod_is_bound_to_its_node_whatever_else_it_wants():
    given = with_tolerations(template())
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
    preferred = [{"weight": 1, "preference": zone}]
    given["spec"]["nodeSelector"] = {"x": "y"}
    given["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [zone]},
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        }
    }
    of = daemon_set(metadata={"annotations": {"deprecated.daemonset.template.generation": "7"}})
    made = new_pod(of, given, A, "new")
    assert made["spec"]["affinity"]["nodeAffinity"] == {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [A]}]}]
        },
        "preferredDuringSchedulingIgnoredDuringExecution": preferred,
    }
    assert made["metadata"]["labels"] == {
        "app": "web",
        "controller-revision-hash": "new",
        "pod-template-generation": "7",
    }


# --- whole updates -------------------------------------------------------------------------------


class Life:
    def __init__(self, nodes, **spec):
        self.of = daemon_set(**spec)
        self.verdicts = {f"node-{n}": RUN for n in range(nodes)}
        self.pods = {}
        self.hash = "r1"
        self._made = 0

    def step(self):
        change = plan(self.of, by_node(self.pods.values()), self.verdicts, self.hash, now=NOW)
        for where in change.create:
            self._made += 1
            made = daemon(f"p{self._made:03}", where, self.hash, phase="Pending", created=self._made)
            self.pods[made.metadata.name] = made
        for gone in (*change.finished, *change.delete):
            meta = msgspec.structs.replace(gone.metadata, deletion_timestamp=times.text(NOW))
            self.pods[gone.metadata.name] = msgspec.structs.replace(gone, metadata=meta)
        return bool(change)

    def settle(self):
        for _ in range(300):
            moved = self.step()
            for name, found in list(self.pods.items()):
                if found.terminating:
                    del self.pods[name]
                    moved = True
                elif not found.ready and not found.finished:
                    self.pods[name] = msgspec.structs.replace(found, status=pod(name).status)
                    moved = True
            if not moved:
                return
        raise AssertionError("it never settles")

    def take(self, action, number):
        some = sorted(self.pods)[number % len(self.pods)] if self.pods else None
        match action:
            case "step":
                self.step()
            case "template":
                self.hash = f"r{number % 3 + 1}"
            case "ready" | "unready" if some:
                status = pod(some, ready=action == "ready").status
                self.pods[some] = msgspec.structs.replace(self.pods[some], status=status)
            case "failed" if some:
                self.pods[some] = msgspec.structs.replace(self.pods[some], status=pod(some, phase="Failed").status)
            case "gone" if some and self.pods[some].terminating:
                del self.pods[some]
            case "node":
                self.verdicts[f"node-{number}"] = (RUN, STAY, LEAVE)[number % 3]

    @property
    def up(self):
        return {p.target_node for p in self.pods.values() if p.ready and not p.terminating}


limits = st.sampled_from([(1, 0), (2, 0), ("50%", 0), (0, 1), (0, 2), (0, "100%")])
gentle = st.lists(st.tuples(st.sampled_from(["step", "ready", "gone", "template"]), st.integers(0, 9)), max_size=60)
rough = st.lists(
    st.tuples(st.sampled_from(["step", "ready", "unready", "failed", "gone", "template", "node"]), st.integers(0, 9)),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 6), limits, gentle)
def test_an_update_never_leaves_too_many_nodes_without(nodes, limit, actions):
    unavailable, surge = limit
    life = Life(nodes, unavailable=unavailable, surge=surge)
    life.settle()
    allowed = -(-nodes // 2) if unavailable == "50%" else unavailable
    extra = nodes if surge == "100%" else surge
    for action, number in actions:
        life.take(action, number)
        assert len(life.up) >= nodes - allowed
        active = [p for p in life.pods.values() if p.active]
        assert len(active) <= nodes + extra


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 6), limits, rough)
def test_whatever_happens_it_ends_well_and_then_rests(nodes, limit, actions):
    unavailable, surge = limit
    life = Life(nodes, unavailable=unavailable, surge=surge)
    for action, number in actions:
        life.take(action, number)
    life.settle()
    where = sorted(p.target_node for p in life.pods.values())
    wanted = {name for name, verdict in life.verdicts.items() if verdict.run}
    allowed = {name for name, verdict in life.verdicts.items() if verdict.stay}
    assert len(where) == len(set(where))
    assert wanted <= set(where) <= allowed
    for found in life.pods.values():
        if found.target_node in wanted:
            assert found.metadata.labels["controller-revision-hash"] == life.hash
    assert not life.step()
