"""Why a Pod does not serve: whatever its status says, one reason for each that does not, and none for the others."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from seamark.rules.membership import Reason, Standing, judge
from seamark.rules.objects.node import Node
from seamark.why.checks.patient import Patient
from seamark.why.checks.pods import trouble
from seamark.why.views import Pod, Service

NOW = 1_790_000_000.0
SERVICE = msgspec.convert(
    {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 80}], "clusterIP": "10.96.0.1"},
    },
    Service,
)

reasons = st.sampled_from(
    [
        "",
        "ContainerCreating",
        "PodInitializing",
        "ImagePullBackOff",
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "X",
    ]
)
waiting = st.builds(lambda reason: {"waiting": {"reason": reason, "message": "said"}}, reasons)
ended = st.builds(
    lambda code, reason: {"terminated": {"exitCode": code, "reason": reason}},
    st.integers(0, 2),
    st.sampled_from(["Error", "OOMKilled", "Completed", ""]),
)
runs = st.just({"running": {"startedAt": "2026-01-01T00:00:00Z"}})
states = st.one_of(waiting, ended, runs, st.just({}))
probe = st.sampled_from([None, {"httpGet": {"path": "/", "port": 80}}, {"exec": {"command": ["true"]}}, {}])


@st.composite
def statuses(draw, name):
    return {
        "name": name,
        "ready": draw(st.booleans()),
        "started": draw(st.sampled_from([None, True, False])),
        "restartCount": draw(st.integers(0, 3)),
        "state": draw(states),
        "lastState": draw(st.one_of(ended, st.just({}))),
    }


@st.composite
def pods(draw):
    ready = draw(st.sampled_from(["True", "False", "Unknown", None]))
    conditions = [{"type": "Ready", "status": ready, "reason": draw(reasons)}] if ready else []
    conditions += draw(
        st.lists(
            st.sampled_from(
                [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"},
                    {"type": "gate", "status": "False"},
                    {"type": "gate", "status": "True"},
                ]
            ),
            max_size=2,
        )
    )
    container = {"name": "app", "readinessProbe": draw(probe), "startupProbe": draw(probe)}
    made = {
        "metadata": {"name": "web-1", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {
            "nodeName": draw(st.sampled_from(["n1", ""])),
            "containers": [{key: value for key, value in container.items() if value is not None}],
            "readinessGates": draw(st.sampled_from([[], [{"conditionType": "gate"}]])),
        },
        "status": {
            "phase": draw(st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown", ""])),
            "podIPs": draw(st.sampled_from([[], [{"ip": "10.1.0.1"}]])),
            "conditions": conditions,
            "containerStatuses": draw(st.lists(statuses("app"), max_size=1)),
            "initContainerStatuses": draw(st.lists(statuses("init"), max_size=1)),
        },
    }
    if draw(st.booleans()):
        made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return msgspec.convert(made, Pod)


nodes = st.sampled_from(
    [
        None,
        msgspec.convert(
            {"metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}, Node
        ),
        msgspec.convert(
            {"metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}, Node
        ),
    ]
)


@given(pods(), nodes, st.sampled_from([None, NOW]))
def test_exactly_those_that_do_not_serve_have_a_reason(pod, node, now):
    verdict = judge(SERVICE, pod, node)
    found = trouble(Patient(pod, node, now))
    assert (found is None) == (verdict.standing is Standing.READY), verdict.reasons
    if found is not None:
        assert found.detail
        assert found.fix
        assert "None" not in found.detail
        assert verdict.reason is not Reason.LABEL_MISMATCH
