"""The life of a Pod, one look at a time."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seamark.kinds.values import times
from seamark.nodes.simulated.pods import life, orders
from seamark.nodes.simulated.pods.steps import PodAddresses, Rules, recover
from seamark.rules.objects.pod import ContainerState, Pod, Running, Waiting

T0 = 1_800_000_000.0
IPS = PodAddresses(("172.18.0.2", "fd00:172:18::2"), ("10.244.0.2", "fd00:10:244::2"))
RULES = Rules(stop_after=0.5, backoff=10.0, backoff_cap=300.0)


def make(annotations=None, deletion=None, **spec):
    spec.setdefault("containers", [{"name": "a", "image": "app:1"}])
    meta = {
        "name": "web",
        "namespace": "default",
        "uid": "u",
        "generation": 1,
        "annotations": {f"seamark.dev/{k}": v for k, v in (annotations or {}).items()},
    }
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": times.text(T0)}
    status = {"phase": "Pending", "qosClass": "BestEffort", "conditions": [scheduled]}
    pod = msgspec.convert({"metadata": meta, "spec": {"nodeName": "node-1", **spec}, "status": status}, Pod)
    return delete(pod, *deletion) if deletion else pod


def delete(pod, at, grace):
    meta = msgspec.structs.replace(
        pod.metadata,
        deletion_timestamp=times.text(at + grace),
        deletion_grace_period_seconds=grace,
        generation=pod.metadata.generation + 1,
    )
    return msgspec.structs.replace(pod, metadata=meta)


class Watched:
    """A Pod that is looked at whenever it asks for it, and between."""

    def __init__(self, pod, ips=IPS, forgetful=False, rules=RULES):
        self.pod = pod
        self.rules = rules
        self.ips = ips
        self.now = T0
        self.forgetful = forgetful
        self.moments = None
        self.notes = []
        self.writes = 0
        self.removed = False
        self.again = None
        self.look()

    def look(self):
        parsed, _ = orders.parse(self.pod.metadata.annotations)
        moments = self.moments or recover(self.pod, self.now)
        step = life.next_status(self.pod, now=self.now, ips=self.ips, moments=moments, orders=parsed, rules=self.rules)
        self.notes += step.notes
        self.moments = None if self.forgetful else step.moments
        if step.status != self.pod.status:
            self.writes += 1
            # Through the wire and back, as it will be.
            status = msgspec.json.decode(msgspec.json.encode(step.status), type=type(step.status))
            self.pod = msgspec.structs.replace(self.pod, status=status)
        self.again, self.removed = step.again, step.remove
        assert self.again is None or self.again > self.now

    def pass_(self, seconds):
        until = self.now + seconds
        while self.again is not None and self.again <= until:
            self.now = self.again
            self.look()
        self.now = until
        self.look()

    @property
    def shown(self):
        condition = self.pod.condition("Ready")
        return f"{self.pod.status.phase} {condition.status if condition else None}"

    @property
    def container(self):
        return self.pod.status.container_statuses[0]

    def condition(self, type):
        found = self.pod.condition(type)
        return found and (found.status, found.reason, found.message)


def test_without_orders_a_pod_is_ready_at_once_by_one_write():
    pod = Watched(make())
    assert pod.shown == "Running True"
    assert pod.again is None
    status = pod.pod.status
    assert [c.type for c in status.conditions] == [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ]
    assert {c.status for c in status.conditions} == {"True"}
    assert (status.pod_ip, [a.ip for a in status.pod_ips]) == ("10.244.0.2", list(IPS.pod_ips))
    assert (status.host_ip, [a.ip for a in status.host_ips]) == ("172.18.0.2", list(IPS.host_ips))
    assert (status.start_time, status.observed_generation) == (times.text(T0), 1)
    assert pod.container.state == ContainerState(running=Running(times.text(T0)))
    assert (pod.container.ready, pod.container.started, pod.container.restart_count) == (True, True, 0)
    assert pod.container.container_id.startswith("seamark://")
    pod.pass_(3600)
    assert pod.writes == 1


def test_slow_to_start():
    pod = Watched(make({"start-after": "3s"}))
    assert pod.shown == "Pending False"
    assert pod.container.state == ContainerState(Waiting("ContainerCreating"))
    assert pod.pod.status.pod_ips == ()
    assert pod.pod.status.host_ip == "172.18.0.2"
    assert pod.condition("PodReadyToStartContainers") == ("False", "", "")
    assert pod.condition("Ready") == ("False", "ContainersNotReady", "containers with unready status: [a]")
    pod.pass_(2.9)
    assert pod.shown == "Pending False"
    pod.pass_(0.1)
    assert pod.shown == "Running True"
    assert pod.writes == 2


def test_slow_to_become_ready():
    pod = Watched(make({"start-after": "1s", "ready-after": "5s"}, containers=[{"name": "a"}, {"name": "b"}]))
    pod.pass_(5.9)
    assert pod.shown == "Running False"
    assert pod.condition("ContainersReady") == ("False", "ContainersNotReady", "containers with unready status: [a b]")
    before = pod.pod.condition("Ready").last_transition_time
    pod.pass_(0.1)
    assert pod.shown == "Running True"
    assert before == times.text(T0)
    assert pod.pod.condition("Ready").last_transition_time == times.text(T0 + 6)


def test_never_ready_and_ready_again_when_the_order_is_taken_back():
    pod = Watched(make({"ready": "never"}))
    assert (pod.shown, pod.again) == ("Running False", None)
    pod.pod = msgspec.structs.replace(pod.pod, metadata=make().metadata)
    pod.look()
    assert pod.shown == "Running True"
    pod.pod = msgspec.structs.replace(pod.pod, metadata=make({"ready": "never"}).metadata)
    pod.look()
    assert pod.shown == "Running False"


def test_flapping():
    pod = Watched(make({"flap": "5s", "ready-after": "2s"}))
    seen = []
    for _ in range(12):
        seen.append(pod.shown == "Running True")
        pod.pass_(2)
    # Ready from 2 to 7, not from 7 to 12, ready from 12 to 17 and so on; looked at every two seconds.
    assert seen == [2 <= t < 7 or 12 <= t < 17 or 22 <= t < 27 for t in range(0, 24, 2)]


@given(st.floats(0.001, 1000.0), st.integers(1, 50))
def test_every_turn_of_flapping_is_one_write(period, turns):
    pod = Watched(make({"flap": f"{period:.3f}s"}))
    for turn in range(1, turns):
        before = pod.shown
        assert pod.again is not None
        pod.now = pod.again
        pod.look()
        assert pod.shown != before, f"turn {turn}"


def test_failing_again_and_again():
    pod = Watched(make({"fail-after": "10s", "exit-code": "3"}))
    pod.pass_(9.9)
    assert pod.shown == "Running True"
    pod.pass_(0.1)
    # The first restart comes at once.
    assert (pod.shown, pod.container.restart_count) == ("Running True", 1)
    ended = pod.container.last_state.terminated
    assert (ended.exit_code, ended.reason, ended.finished_at) == (3, "Error", times.text(T0 + 10))
    delays = []
    for _ in range(7):
        pod.pass_(10)
        waiting = pod.container.state.waiting
        assert (waiting.reason, pod.shown) == ("CrashLoopBackOff", "Running False")
        began = pod.now
        pod.now = pod.again
        pod.look()
        delays.append(pod.now - began)
        assert pod.container.state.running is not None
    assert delays == [10, 20, 40, 80, 160, 300, 300]
    assert pod.container.restart_count == 8
    assert {note.reason for note in pod.notes} == {"BackOff"}
    assert len(pod.notes) == 7


def test_a_long_run_is_forgiven():
    pod = Watched(make({"fail-after": "700s"}))
    for restarts in range(1, 5):
        pod.pass_(700)
        assert (pod.shown, pod.container.restart_count) == ("Running True", restarts)


@pytest.mark.parametrize(
    ("policy", "order", "phase", "reason"),
    [
        ("Never", {"fail-after": "2s"}, "Failed", "PodFailed"),
        ("Never", {"complete-after": "2s"}, "Succeeded", "PodCompleted"),
        ("OnFailure", {"complete-after": "2s"}, "Succeeded", "PodCompleted"),
    ],
)
def test_running_to_completion(policy, order, phase, reason):
    pod = Watched(make(order, restartPolicy=policy))
    assert pod.shown == "Running True"
    pod.pass_(2)
    assert pod.shown == f"{phase} False"
    assert pod.condition("Ready") == ("False", reason, "")
    assert pod.condition("PodReadyToStartContainers") == ("False", "", "")
    assert pod.container.state.terminated.reason == ("Error" if phase == "Failed" else "Completed")
    assert pod.pod.status.pod_ip == "10.244.0.2"
    writes = pod.writes
    pod.pass_(1000)
    assert (pod.writes, pod.again) == (writes, None)


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_work_that_ends_does_so_by_default(policy):
    pod = Watched(make(restartPolicy=policy))
    assert pod.shown == "Running True"
    pod.pass_(1)
    assert pod.shown == "Succeeded False"
    endless = Watched(make({"complete-after": "never"}, restartPolicy=policy))
    endless.pass_(1000)
    assert endless.shown == "Running True"


def test_a_pod_that_is_active_for_too_long_fails():
    pod = Watched(make(activeDeadlineSeconds=5))
    pod.pass_(4.9)
    assert (pod.shown, pod.again) == ("Running True", T0 + 5)
    pod.pass_(0.1)
    status = pod.pod.status
    assert (pod.shown, status.reason) == ("Failed False", "DeadlineExceeded")
    assert status.message == "Pod was active on the node longer than the specified deadline"
    assert pod.container.state.terminated.exit_code == 137
    assert [note.reason for note in pod.notes] == ["DeadlineExceeded"]
    early = Watched(make(activeDeadlineSeconds=5, restartPolicy="Never"))
    early.pass_(10)
    assert (early.shown, early.pod.status.reason) == ("Succeeded False", "")


@pytest.mark.parametrize(
    ("command", "before", "after"),
    [
        (["sleep", "30"], "Running True", "Succeeded False"),
        (["sh", "-c", "sleep 30; exit 3"], "Running True", "Failed False"),
        (["sleep", "infinity"], "Running True", "Running True"),
        (["/bin/false"], "Failed False", "Failed False"),
    ],
)
def test_work_ends_as_its_command_tells(command, before, after):
    pod = Watched(make(restartPolicy="Never", containers=[{"name": "a", "image": "i", "command": command}]))
    pod.pass_(29)
    assert pod.shown == before
    pod.pass_(1)
    assert pod.shown == after


def test_a_command_that_ends_is_run_again_if_the_policy_is_always():
    pod = Watched(make(containers=[{"name": "a", "image": "i", "command": ["sleep", "30"]}]))
    pod.pass_(31)
    assert (pod.shown, pod.container.restart_count) == ("Running True", 1)


def test_an_order_goes_before_the_command():
    sleeping = [{"name": "a", "image": "i", "command": ["sleep", "30"]}]
    pod = Watched(make({"complete-after": "2s"}, restartPolicy="Never", containers=sleeping))
    pod.pass_(2)
    assert pod.shown == "Succeeded False"


def test_images_that_fail():
    rules = msgspec.structs.replace(RULES, failing_images=("example.com/broken*",))
    broken = [{"name": "c", "image": "example.com/broken:1"}]
    pod = Watched(make(restartPolicy="Never", containers=broken), rules=rules)
    pod.pass_(1)
    assert (pod.shown, pod.container.state.terminated.exit_code) == ("Failed False", 1)
    pod = Watched(make(containers=broken), rules=rules)
    pod.pass_(5)
    assert pod.container.state.waiting.reason == "CrashLoopBackOff"
    assert Watched(make(), rules=rules).shown == "Running True"


def test_on_failure_is_started_again_until_it_succeeds():
    pod = Watched(make({"fail-after": "2s"}, restartPolicy="OnFailure"))
    pod.pass_(4)
    assert pod.container.state.waiting.reason == "CrashLoopBackOff"
    assert pod.pod.status.phase == "Running"
    pod.pod = msgspec.structs.replace(pod.pod, metadata=make({"complete-after": "1s"}).metadata)
    pod.pass_(20)
    assert pod.shown == "Succeeded False"


def test_completing_with_policy_always_is_started_again_too():
    pod = Watched(make({"complete-after": "5s"}))
    pod.pass_(5)
    assert (pod.container.restart_count, pod.container.last_state.terminated.exit_code) == (1, 0)


def test_gates_are_honoured():
    pod = Watched(make(readinessGates=[{"conditionType": "example.com/up"}, {"conditionType": "example.com/in"}]))
    assert pod.condition("ContainersReady") == ("True", "", "")
    assert pod.condition("Ready") == (
        "False",
        "ReadinessGatesNotReady",
        'corresponding condition of pod readiness gate "example.com/up" does not exist., '
        'corresponding condition of pod readiness gate "example.com/in" does not exist.',
    )
    foreign = msgspec.convert(
        [{"type": "example.com/up", "status": "True"}, {"type": "example.com/in", "status": "False"}],
        tuple[type(pod.pod.status.conditions[0]), ...],
    )
    status = msgspec.structs.replace(pod.pod.status, conditions=(*pod.pod.status.conditions, *foreign))
    pod.pod = msgspec.structs.replace(pod.pod, status=status)
    pod.look()
    assert pod.condition("Ready")[2] == 'the status of pod readiness gate "example.com/in" is not "True", but False'
    opened = [
        msgspec.structs.replace(c, status="True") if c.type.startswith("ex") else c for c in pod.pod.status.conditions
    ]
    pod.pod = msgspec.structs.replace(pod.pod, status=msgspec.structs.replace(pod.pod.status, conditions=tuple(opened)))
    pod.look()
    assert pod.shown == "Running True"
    assert {c.type for c in pod.pod.status.conditions} >= {"example.com/up", "example.com/in"}


def with_init(*commands, **spec):
    inits = [{"name": f"init{at}", "command": words.split()} for at, words in enumerate(commands, 1)]
    return make(initContainers=inits, **spec)


def initial(pod):
    """The states of the init containers, in a word each, and how often they were started again."""
    found = []
    for status in pod.pod.status.init_container_statuses:
        state = status.state
        word = state.waiting.reason if state.waiting else state.terminated.reason if state.terminated else "Running"
        found.append((word, status.restart_count))
    return found


@pytest.mark.parametrize("forgetful", [False, True])
def test_an_init_container_that_fails_is_started_again_and_the_others_wait(forgetful):
    pod = Watched(with_init("false", "true"), forgetful=forgetful)
    assert initial(pod) == [("CrashLoopBackOff", 1), ("PodInitializing", 0)]
    assert pod.shown == "Pending False"
    assert pod.container.state == ContainerState(Waiting("PodInitializing"))
    incomplete = "containers with incomplete status: [init1 init2]"
    assert pod.condition("Initialized") == ("False", "ContainersNotInitialized", incomplete)
    assert pod.condition("PodReadyToStartContainers")[0] == "True"
    pod.pass_(10)
    assert initial(pod) == [("CrashLoopBackOff", 2), ("PodInitializing", 0)]
    pod.pass_(20)
    assert initial(pod)[0] == ("CrashLoopBackOff", 3)
    assert {note.reason for note in pod.notes} == {"BackOff"}


def test_an_init_container_that_fails_ends_a_pod_that_is_never_started_again():
    pod = Watched(with_init("true", "false", restartPolicy="Never"))
    assert initial(pod) == [("Completed", 0), ("Error", 0)]
    assert pod.shown == "Failed False"
    assert pod.container.state == ContainerState(Waiting("PodInitializing"))
    incomplete = "containers with incomplete status: [init2]"
    assert pod.condition("Initialized") == ("False", "ContainersNotInitialized", incomplete)
    pod.pass_(1000)
    assert pod.writes == 1


@pytest.mark.parametrize("forgetful", [False, True])
def test_init_containers_that_take_their_time_run_one_after_the_other(forgetful):
    pod = Watched(with_init("sleep 3", "sleep 4"), forgetful=forgetful)
    assert initial(pod) == [("Running", 0), ("PodInitializing", 0)]
    pod.pass_(3)
    assert initial(pod) == [("Completed", 0), ("Running", 0)]
    assert pod.pod.status.init_container_statuses[0].ready
    pod.pass_(3.9)
    assert pod.shown == "Pending False"
    pod.pass_(0.1)
    assert pod.shown == "Running True"
    assert initial(pod) == [("Completed", 0)] * 2
    assert pod.condition("Initialized")[0] == "True"
    assert pod.container.restart_count == 0


def test_an_init_container_that_never_ends_and_a_sidecar_before_it():
    inits = [{"name": "proxy", "restartPolicy": "Always"}, {"name": "stuck", "command": ["sleep", "infinity"]}]
    pod = Watched(make(initContainers=inits))
    assert initial(pod) == [("Running", 0), ("Running", 0)]
    assert pod.condition("Initialized")[2] == "containers with incomplete status: [stuck]"
    pod.pass_(3600)
    assert (pod.shown, pod.again) == ("Pending False", None)


def test_init_containers_and_sidecars():
    spec = {
        "containers": [{"name": "app"}],
        "initContainers": [{"name": "setup"}, {"name": "proxy", "restartPolicy": "Always"}],
    }
    pod = Watched(make({"start-after": "1s", "complete-after": "5s"}, restartPolicy="Never", **spec))
    assert [s.state.waiting.reason for s in pod.pod.status.init_container_statuses] == ["PodInitializing"] * 2
    assert pod.condition("Initialized") == (
        "False",
        "ContainersNotInitialized",
        "containers with incomplete status: [setup proxy]",
    )
    pod.pass_(1)
    setup, proxy = pod.pod.status.init_container_statuses
    assert (setup.state.terminated.reason, setup.ready) == ("Completed", True)
    assert (proxy.state.running is not None, proxy.ready, proxy.started) == (True, True, True)
    assert pod.condition("Initialized") == ("True", "", "")
    pod.pass_(5)
    setup, proxy = pod.pod.status.init_container_statuses
    assert setup.state.terminated.exit_code == proxy.state.terminated.exit_code == 0
    assert (pod.shown, proxy.ready) == ("Succeeded False", False)


def test_another_image_starts_the_container_again():
    pod = Watched(make(containers=[{"name": "a", "image": "app:1"}, {"name": "b", "image": "b:1"}]))
    newer = make(containers=[{"name": "a", "image": "app:2"}, {"name": "b", "image": "b:1"}])
    pod.pod = msgspec.structs.replace(pod.pod, spec=newer.spec)
    pod.pass_(5)
    a, b = pod.pod.status.container_statuses
    assert (a.image, a.restart_count, a.state) == ("app:2", 1, ContainerState(running=Running(times.text(T0 + 5))))
    assert (b.restart_count, pod.shown) == (0, "Running True")


def test_ephemeral_containers_run_once_asked_for():
    pod = Watched(make())
    debug = make(ephemeralContainers=[{"name": "debug", "image": "busybox"}])
    pod.pod = msgspec.structs.replace(pod.pod, spec=debug.spec)
    pod.look()
    (status,) = pod.pod.status.ephemeral_container_statuses
    assert (status.name, status.state.running is not None, status.ready) == ("debug", True, False)


def test_without_an_address_it_waits_and_says_so():
    pod = Watched(make(), ips=PodAddresses(IPS.host_ips, None))
    assert (pod.shown, pod.again) == ("Pending False", None)
    assert [note.reason for note in pod.notes] == ["FailedCreatePodSandBox"]
    pod.ips = IPS
    pod.look()
    assert pod.shown == "Running True"


@pytest.mark.parametrize(("command", "shown"), [("/bin/false", "Running False"), ("/bin/true", "Running True")])
def test_a_readiness_probe_whose_command_tells_how_it_ends(command, shown):
    probe = {"exec": {"command": [command]}, "initialDelaySeconds": 1, "periodSeconds": 1}
    pod = Watched(make(containers=[{"name": "a", "image": "app:1", "readinessProbe": probe}]))
    assert pod.shown == "Running False"
    pod.pass_(30)
    assert (pod.shown, pod.container.restart_count) == (shown, 0)


# --- the end -----------------------------------------------------------------------------------------


def test_a_deleted_pod_serves_until_it_stops_and_is_then_removed():
    pod = Watched(make())
    pod.pod = delete(pod.pod, T0, 30)
    pod.look()
    assert (pod.shown, pod.removed) == ("Running True", False)
    pod.pass_(0.4)
    assert (pod.shown, pod.removed) == ("Running True", False)
    pod.pass_(0.1)
    assert (pod.shown, pod.removed) == ("Succeeded False", True)
    assert (pod.container.state.terminated.exit_code, pod.pod.status.observed_generation) == (0, 2)


@pytest.mark.parametrize(
    ("policy", "phase", "exit_code"),
    [("Always", "Succeeded", 0), ("OnFailure", "Failed", 143), ("Never", "Failed", 143)],
)
def test_work_that_is_deleted_before_it_is_done_has_failed(policy, phase, exit_code):
    pod = Watched(make({"complete-after": "1h"}, restartPolicy=policy))
    pod.pod = delete(pod.pod, pod.now, 30)
    pod.look()
    pod.pass_(1)
    assert (pod.pod.status.phase, pod.container.state.terminated.exit_code) == (phase, exit_code)


@pytest.mark.parametrize(
    ("order", "grace", "after", "exit_code"),
    [("20s", 30, 20, 0), ("20s", 5, 5, 137), ("0s", 30, 0, 0), ("20s", 0, 0, 137), ("5s", 5, 5, 0)],
)
def test_slow_to_stop_but_no_slower_than_its_grace_period(order, grace, after, exit_code):
    pod = Watched(make({"stop-after": order}))
    pod.pod = delete(pod.pod, T0, grace)
    pod.look()
    if after:
        pod.pass_(after - 0.01)
        assert (pod.shown, pod.removed) == ("Running True", False)
        pod.pass_(0.01)
    assert pod.container.state.terminated.exit_code == exit_code
    assert pod.shown == ("Failed False" if exit_code else "Succeeded False")
    # With a grace period of 0 there is nothing left to ask the API server for.
    assert pod.removed == (grace > 0)


def test_a_second_deletion_may_be_more_impatient():
    pod = Watched(make({"stop-after": "20s"}))
    pod.pod = delete(pod.pod, T0, 30)
    pod.look()
    pod.pass_(5)
    pod.pod = delete(pod.pod, T0 + 5, 2)
    pod.look()
    pod.pass_(1.9)
    assert not pod.removed
    pod.pass_(0.1)
    assert (pod.removed, pod.container.state.terminated.exit_code) == (True, 137)
    hurried = Watched(make({"stop-after": "20s"}))
    hurried.pod = delete(hurried.pod, T0, 30)
    hurried.look()
    hurried.pod = delete(hurried.pod, T0, 0)
    hurried.look()
    assert hurried.shown == "Failed False"


@pytest.mark.parametrize("annotations", [{"start-after": "1h"}, {}])
def test_one_that_never_ran_is_removed_at_once(annotations):
    pod = Watched(make(annotations, deletion=(T0, 30)))
    assert (pod.removed, pod.writes) == (True, 0)


def test_one_that_waited_to_be_started_again_ends_as_it_ended():
    pod = Watched(make({"fail-after": "1s"}))
    pod.pass_(2)
    pod.pod = delete(pod.pod, pod.now, 30)
    pod.look()
    assert (pod.shown, pod.removed) == ("Failed False", True)
    assert pod.container.state.terminated.exit_code == 1


# --- laws --------------------------------------------------------------------------------------------

SECONDS = st.sampled_from(["0s", "1s", "3s", "7s", "20s"])
ORDERS = st.fixed_dictionaries(
    {},
    optional={
        "start-after": SECONDS,
        "ready-after": SECONDS,
        "ready": st.just("never"),
        "flap": st.sampled_from(["1s", "4s"]),
        "fail-after": SECONDS,
        "complete-after": SECONDS,
        "stop-after": SECONDS,
    },
)
POLICIES = st.sampled_from(["Always", "OnFailure", "Never"])


@settings(max_examples=80, deadline=None)
@given(ORDERS, POLICIES, st.lists(st.floats(0.0, 30.0), max_size=8))
def test_looking_twice_changes_nothing(annotations, policy, waits):
    pod = Watched(make(annotations, restartPolicy=policy))
    for wait in waits:
        pod.pass_(wait)
        before, writes = pod.pod, pod.writes
        pod.look()
        assert pod.pod == before
        assert pod.writes == writes


@settings(max_examples=80, deadline=None)
@given(ORDERS, POLICIES, st.integers(0, 60), st.integers(0, 60))
def test_whatever_it_was_told_a_deleted_pod_goes_within_its_grace_period(annotations, policy, age, grace):
    pod = Watched(make(annotations, restartPolicy=policy))
    pod.pass_(age)
    if pod.pod.finished:
        return
    pod.pod = delete(pod.pod, pod.now, grace)
    pod.look()
    pod.pass_(grace)
    assert pod.removed or grace == 0
    assert pod.shown != "Running True"


@settings(max_examples=80, deadline=None)
@given(ORDERS, POLICIES, st.lists(st.integers(0, 30), max_size=8))
def test_whoever_forgets_everything_reads_it_back_from_the_status(annotations, policy, waits):
    """All times are whole seconds here, so a status can say them."""
    remembering = Watched(make(annotations, restartPolicy=policy))
    forgetful = Watched(make(annotations, restartPolicy=policy), forgetful=True)
    for wait in waits:
        remembering.pass_(wait)
        forgetful.pass_(wait)
        assert forgetful.pod == remembering.pod
