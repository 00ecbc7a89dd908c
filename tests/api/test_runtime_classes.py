"""Pods that name a RuntimeClass: what they take over from it, and what is refused."""

import pytest

PODS = "/api/v1/namespaces/default/pods"
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
CLASS = {
    "metadata": {"name": "sandboxed"},
    "handler": "gvisor",
    "overhead": {"podFixed": {"cpu": "10m", "memory": "1Mi"}},
    "scheduling": {
        "nodeSelector": {"sandbox": "yes"},
        "tolerations": [{"key": "sandbox", "operator": "Exists", "effect": "NoSchedule"}],
    },
}


def pod(**spec):
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


async def test_a_pod_takes_over_what_its_class_says(api):
    await api.post(CLASSES, CLASS)
    spec = (await api.post(PODS, pod(runtimeClassName="sandboxed", nodeSelector={"disk": "ssd"})))["spec"]
    assert spec["overhead"] == {"cpu": "10m", "memory": "1Mi"}
    assert spec["nodeSelector"] == {"disk": "ssd", "sandbox": "yes"}
    assert CLASS["scheduling"]["tolerations"][0] in spec["tolerations"]


async def test_a_class_that_says_nothing_changes_nothing(api):
    await api.post(CLASSES, {"metadata": {"name": "bare"}, "handler": "runc"})
    spec = (await api.post(PODS, pod(runtimeClassName="bare")))["spec"]
    assert "overhead" not in spec
    assert "nodeSelector" not in spec


async def test_tolerations_that_the_class_covers_are_left_out(api):
    wide = {"operator": "Exists"}
    await api.post(CLASSES, {"metadata": {"name": "any"}, "handler": "h", "scheduling": {"tolerations": [wide]}})
    own = [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "tolerationSeconds": 5}]
    spec = (await api.post(PODS, pod(runtimeClassName="any", tolerations=own)))["spec"]
    assert spec["tolerations"] == [wide]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"runtimeClassName": "absent"}, 'pod rejected: RuntimeClass "absent" not found'),
        (
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            {"runtimeClassName": "sandboxed", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"runtimeClassName": "sandboxed", "nodeSelector": {"sandbox": "no"}},
            "conflict: runtimeClass.scheduling.nodeSelector[sandbox] = yes; pod.spec.nodeSelector[sandbox] = no",
        ),
    ],
)
async def test_what_is_refused(api, spec, reason):
    await api.post(CLASSES, CLASS)
    answer = await api.ask("POST", PODS, pod(**spec))
    assert (answer.status, answer.json["message"]) == (403, f'pods "p" is forbidden: {reason}')


async def test_the_same_overhead_in_other_words_is_accepted(api):
    await api.post(CLASSES, CLASS)
    same = pod(runtimeClassName="sandboxed", overhead={"cpu": "0.01", "memory": "1024Ki"})
    assert (await api.ask("POST", PODS, same)).status == 201
