"""StatefulSets: which Pod comes and goes next, and whole lives in any order of events."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workload_objects import pod, stateful_set, template

from seamark.controllers.workloads.statefulset import Creation, Revisions, count, new_pod, ordinal, plan
from seamark.kinds.values import times

NOW = 1_000_000.0
SAME = Revisions("web-a", "web-a")
UPDATE = Revisions("web-a", "web-b")


def member(place, revision="web-a", **what):
    name = f"web-{place}"
    labels = {"app": "web", "statefulset.kubernetes.io/pod-name": name, "controller-revision-hash": revision}
    return pod(name, labels=labels, **what)


def names(pods):
    return [p.metadata.name for p in pods]


def planned(of, pods, revisions=SAME, now=NOW):
    change = plan(of, pods, revisions, now=now)
    return [c.ordinal for c in change.create], names(change.delete)


PARALLEL = {"podManagementPolicy": "Parallel"}


@pytest.mark.parametrize(
    ("spec", "pods", "create", "delete"),
    [
        ({}, [], [0], []),
        ({}, [member(0)], [1], []),
        ({}, [member(0, ready=False)], [], []),  # wait for the one before
        ({}, [member(0, phase="Pending")], [], []),
        ({}, [member(0, terminating=True)], [], []),
        ({}, [member(0), member(2)], [1], []),
        ({}, [member(1), member(2)], [0], []),
        ({}, [member(0), member(1), member(2)], [], []),
        ({}, [member(0), member(1, phase="Failed"), member(2)], [], ["web-1"]),
        ({}, [member(0), member(1, phase="Succeeded", terminating=True), member(2)], [], []),
        ({"minReadySeconds": 10}, [member(0, since=NOW - 5)], [], []),
        ({"minReadySeconds": 10}, [member(0, since=NOW - 10)], [1], []),
        ({"ordinals": {"start": 5}}, [], [5], []),
        ({"ordinals": {"start": 1}}, [member(0), member(1), member(2), member(3)], [], ["web-0"]),
        # Scaling down: the last first, one at a time, and only while the others work.
        ({"replicas": 1}, [member(0), member(1), member(2)], [], ["web-2"]),
        ({"replicas": 1}, [member(0), member(1), member(2, terminating=True)], [], []),
        ({"replicas": 1}, [member(0), member(1, ready=False), member(2)], [], ["web-2"]),
        ({"replicas": 1}, [member(0), member(1, ready=False), member(2, ready=False)], [], []),
        ({"replicas": 1}, [member(0), member(1), member(2, ready=False)], [], ["web-2"]),
        ({"replicas": 1}, [member(0, ready=False), member(1), member(2)], [], []),
        ({"replicas": 0}, [member(0, ready=False)], [], ["web-0"]),
        # In parallel no Pod waits for another.
        (PARALLEL, [], [0, 1, 2], []),
        (PARALLEL, [member(1, ready=False)], [0, 2], []),
        (PARALLEL | {"replicas": 1}, [member(0, ready=False), member(1), member(2)], [], ["web-2", "web-1"]),
        (PARALLEL, [member(0, phase="Failed"), member(1)], [2], ["web-0"]),
    ],
)
def test_one_step(spec, pods, create, delete):
    assert planned(stateful_set(**spec), pods) == (create, delete)


def rolling(partition=0, unavailable=1):
    return {
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"partition": partition, "maxUnavailable": unavailable},
        }
    }


def trio(*revisions, **what):
    return [member(place, revision, **what) for place, revision in enumerate(revisions)]


@pytest.mark.parametrize(
    ("spec", "pods", "delete"),
    [
        (rolling(), trio("web-a", "web-a", "web-a"), ["web-2"]),
        (rolling(), trio("web-a", "web-a", "web-b"), ["web-1"]),
        (rolling(), trio("web-b", "web-b", "web-b"), []),
        (rolling(partition=2), trio("web-a", "web-a", "web-b"), []),
        (rolling(partition=5), trio("web-a", "web-a", "web-a"), []),
        (rolling(unavailable=2), trio("web-a", "web-a", "web-a"), ["web-2", "web-1"]),
        (rolling(unavailable="50%"), trio("web-a", "web-a", "web-a"), ["web-2"]),
        (rolling(unavailable="10%"), trio("web-a", "web-a", "web-a"), ["web-2"]),  # at least one
        (rolling(), [*trio("web-a", "web-a"), member(2, "web-b", ready=False)], []),
        ({"updateStrategy": {"type": "OnDelete"}}, trio("web-a", "web-a", "web-a"), []),
        # What does not work is in no other Pod's way when they need no order.
        (PARALLEL | rolling(), [member(0, ready=False), member(1), member(2)], ["web-0"]),
        (PARALLEL | rolling(), [member(0), member(1), member(2)], ["web-2"]),
        (PARALLEL | rolling(), [member(0), member(1), member(2, "web-b", ready=False)], []),
        (PARALLEL | rolling(unavailable=2), [member(0), member(1), member(2, "web-b", ready=False)], ["web-1"]),
    ],
)
def test_updates_go_from_the_last_to_the_first(spec, pods, delete):
    assert planned(stateful_set(**spec), pods, UPDATE) == ([], delete)


@pytest.mark.parametrize(
    ("spec", "place", "revision"),
    [
        (rolling(partition=1), 0, "web-a"),
        (rolling(partition=1), 1, "web-b"),
        (rolling(), 0, "web-b"),
        ({"updateStrategy": {"type": "OnDelete"}}, 0, "web-b"),
        ({"updateStrategy": {"type": "RollingUpdate"}, "status": {"currentReplicas": 1}}, 0, "web-a"),
        ({"updateStrategy": {"type": "RollingUpdate"}, "status": {"currentReplicas": 0}}, 0, "web-b"),
        (rolling(partition=1) | {"ordinals": {"start": 4}}, 4, "web-a"),
        (rolling(partition=1) | {"ordinals": {"start": 4}}, 5, "web-b"),
    ],
)
def test_a_lost_pod_comes_back_as_its_place_demands(spec, place, revision):
    of = stateful_set(**spec)
    others = [member(other) for other in of.places if other < place]
    change = plan(of, others, UPDATE, now=NOW)
    assert change.create == [Creation(place, revision)]


def test_an_adopted_pod_gets_its_name_as_a_label():
    stranger = pod("web-0", labels={"app": "web"})
    assert names(plan(stateful_set(replicas=1), [stranger], SAME, now=NOW).relabel) == ["web-0"]


@pytest.mark.parametrize(
    ("name", "place"), [("web-0", 0), ("web-12", 12), ("web", None), ("web-x", None), ("db-0", None), ("web-1-0", None)]
)
def test_only_names_of_the_set_have_a_place_in_it(name, place):
    assert ordinal("web", name) == place


def test_status_counts_and_completes():
    of = stateful_set(metadata={"generation": 4})
    pods = [member(0), member(1, "web-b", ready=False), member(2, "web-b", terminating=True)]
    found = count(of, pods, UPDATE, collisions=0, now=NOW)
    assert msgspec.to_builtins(found) == {
        "observedGeneration": 4,
        "replicas": 3,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "currentReplicas": 1,
        "updatedReplicas": 1,
        "currentRevision": "web-a",
        "updateRevision": "web-b",
        "collisionCount": 0,
    }
    done = count(of, trio("web-b", "web-b", "web-b"), UPDATE, collisions=0, now=NOW)
    assert (done.current_revision, done.current_replicas, done.updated_replicas) == ("web-b", 3, 3)


def test_a_pod_has_a_name_and_a_host_name_that_stay():
    claims = [{"metadata": {"name": "data"}, "spec": {}}]
    of = stateful_set(volumeClaimTemplates=claims)
    given = template()
    given["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
    made = new_pod(of, given, Creation(2, "web-b"))
    assert made["metadata"]["name"] == "web-2"
    assert made["metadata"]["generateName"] == "web-"
    assert made["metadata"]["labels"] == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "web-2",
        "apps.kubernetes.io/pod-index": "2",
        "controller-revision-hash": "web-b",
    }
    assert (made["spec"]["hostname"], made["spec"]["subdomain"]) == ("web-2", "web")
    assert made["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-2"}},
        {"name": "tmp", "emptyDir": {}},
    ]
    assert "subdomain" not in new_pod(stateful_set(serviceName=""), given, Creation(0, "web-b"))["spec"]
    assert "hostname" not in given["spec"], "the template is not ours to change"


# --- whole lives ---------------------------------------------------------------------------------


class Life:
    """A StatefulSet and its Pods; the controller acts when told to."""

    def __init__(self, **spec):
        self.of = stateful_set(**spec)
        self.pods = {}
        self.update = "web-r1"
        self.now = NOW

    @property
    def revisions(self):
        return Revisions(self.of.status.current_revision or self.update, self.update)

    def step(self):
        pods = list(self.pods.values())
        change = plan(self.of, pods, self.revisions, now=self.now)
        for creation in change.create:
            assert creation.ordinal not in self.pods, "made twice"
            self.pods[creation.ordinal] = member(creation.ordinal, creation.revision, phase="Pending")
        for gone in change.delete:
            meta = msgspec.structs.replace(gone.metadata, deletion_timestamp=times.text(self.now))
            self.pods[ordinal("web", gone.metadata.name)] = msgspec.structs.replace(gone, metadata=meta)
        status = count(self.of, list(self.pods.values()), self.revisions, collisions=0, now=self.now)
        changed = bool(change.create or change.delete or change.relabel) or status != self.of.status
        self.of = msgspec.structs.replace(self.of, status=status)
        return changed

    def set_phase(self, place, **what):
        if place in self.pods:
            before = self.pods[place]
            status = member(place, **what).status
            self.pods[place] = msgspec.structs.replace(before, status=status)

    def remove(self, place):
        if place in self.pods and self.pods[place].terminating:
            del self.pods[place]

    def edit(self, **spec):
        changed = msgspec.convert(spec, type(self.of.spec))
        fields = {name: getattr(changed, name) for name in spec}
        self.of = msgspec.structs.replace(self.of, spec=msgspec.structs.replace(self.of.spec, **fields))

    def settle(self):
        for _ in range(300):
            moved = self.step()
            for place, found in list(self.pods.items()):
                if found.terminating:
                    self.remove(place)
                    moved = True
                elif not found.finished and not found.ready:
                    self.set_phase(place, ready=True)
                    moved = True
            if not moved:
                return
        raise AssertionError("it never settles")

    @property
    def up(self):
        return [place for place, p in self.pods.items() if p.running_and_ready and not p.terminating]


actions = st.lists(
    st.tuples(
        st.sampled_from(["step", "ready", "unready", "failed", "gone", "kill", "template", "scale", "partition"]),
        st.integers(0, 5),
    ),
    max_size=50,
)


def take(life, action, number):
    match action:
        case "step":
            life.step()
        case "ready" | "unready":
            life.set_phase(number, ready=action == "ready")
        case "failed":
            life.set_phase(number, phase="Failed")
        case "gone":
            life.remove(number)
        case "kill" if number in life.pods:
            meta = msgspec.structs.replace(life.pods[number].metadata, deletion_timestamp=times.text(life.now))
            life.pods[number] = msgspec.structs.replace(life.pods[number], metadata=meta)
        case "template":
            life.update = f"web-r{number % 3 + 1}"
        case "scale":
            life.edit(replicas=number)
        case "partition":
            strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": number % 3, "maxUnavailable": 1}}
            life.edit(update_strategy=msgspec.convert(strategy, type(life.of.spec.update_strategy)))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["OrderedReady", "Parallel"]), st.integers(0, 4), actions)
def test_whatever_happens_it_ends_well_and_then_rests(policy, replicas, sequence):
    life = Life(podManagementPolicy=policy, replicas=replicas)
    for action, number in sequence:
        take(life, action, number)
    life.settle()
    assert sorted(life.up) == list(life.of.places) == sorted(life.pods)
    for place, found in life.pods.items():
        if place >= life.of.partition:
            assert found.metadata.labels["controller-revision-hash"] == life.update
    assert not life.step()


gentle = st.lists(st.tuples(st.sampled_from(["step", "ready", "gone", "template"]), st.integers(0, 5)), max_size=60)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["OrderedReady", "Parallel"]), st.integers(1, 5), st.integers(1, 3), gentle)
def test_an_update_never_takes_more_than_it_may(policy, replicas, unavailable, sequence):
    life = Life(podManagementPolicy=policy, replicas=replicas, **rolling(unavailable=unavailable))
    life.settle()
    for action, number in sequence:
        take(life, action, number)
        assert len(life.up) >= replicas - unavailable


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 5), st.lists(st.tuples(st.sampled_from(["step", "ready"]), st.integers(0, 5)), max_size=40))
def test_in_order_nobody_comes_before_those_ahead_of_it_are_ready(replicas, sequence):
    life = Life(replicas=replicas)
    for action, number in sequence:
        before = set(life.pods)
        ready = set(life.up)
        take(life, action, number)
        for place in set(life.pods) - before:
            assert set(range(place)) <= ready
