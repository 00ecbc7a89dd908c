"""What of a Pod may change, through which door, and what its status refuses."""

from __future__ import annotations

from typing import Any

import pytest
from kind_rules import NOW, change, create, sentences
from merge_patch import merged
from neighbours import Neighbours

from seamark.errors import ApiError, BadRequest, Conflict, Invalid, Object
from seamark.kinds.pod.binding import EVICT, bind
from seamark.kinds.pod.pod import POD

ONLY = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)


def made(**spec: Any) -> Object:
    containers = [{"name": "c", "image": "example/app:1"}]
    return create(POD, {"metadata": {"name": "p"}, "spec": {"containers": containers, **spec}})


def patched(old: Object, patch: Object, subresource: str = "") -> Object:
    return change(POD, old, merged(old, patch), subresource)


def refusals(old: Object, patch: Object, subresource: str = "") -> list[str]:
    with pytest.raises(Invalid) as refused:
        patched(old, patch, subresource)
    return sentences(refused.value)


# --- the Pod itself ----------------------------------------------------------------------------------------


def test_an_image_may_change_and_counts() -> None:
    old = made()
    new = patched(old, {"spec": {"containers": [{**old["spec"]["containers"][0], "image": "example/app:2"}]}})
    assert (old["metadata"]["generation"], new["metadata"]["generation"]) == (1, 2)


def test_labels_do_not_count() -> None:
    assert patched(made(), {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 1


def test_a_put_without_what_was_filled_in_changes_nothing() -> None:
    old = made()
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "example/app:1"}]}}
    assert change(POD, old, body) == old


def test_the_status_is_not_taken_from_the_pod_itself() -> None:
    assert patched(made(), {"status": {"phase": "Failed"}})["status"]["phase"] == "Pending"


@pytest.mark.parametrize(
    ("patch", "lines"),
    [
        ({"restartPolicy": "Never"}, '- restartPolicy: "Always"\n+ restartPolicy: "Never"\n'),
        ({"nodeName": "n"}, '+ nodeName: "n"\n'),
        ({"hostname": "h"}, '+ hostname: "h"\n'),
        (
            {"terminationGracePeriodSeconds": 5},
            "- terminationGracePeriodSeconds: 30\n+ terminationGracePeriodSeconds: 5\n",
        ),
    ],
)
def test_the_rest_of_the_spec_stays(patch: Object, lines: str) -> None:
    assert refusals(made(), {"spec": patch}) == [ONLY + lines]


def test_containers_neither_come_nor_go() -> None:
    old = made()
    two = [*old["spec"]["containers"], {**old["spec"]["containers"][0], "name": "d"}]
    expected = ["spec.containers: Forbidden: pod updates may not add or remove containers"]
    assert refusals(old, {"spec": {"containers": two}}) == expected


def test_a_negative_grace_period_may_become_one_second() -> None:
    old = made(terminationGracePeriodSeconds=-5)
    assert patched(old, {"spec": {"terminationGracePeriodSeconds": 1}})["spec"]["terminationGracePeriodSeconds"] == 1


def test_a_deadline_may_come_and_shrink() -> None:
    old = made()
    new = patched(old, {"spec": {"activeDeadlineSeconds": 10}})
    assert patched(new, {"spec": {"activeDeadlineSeconds": 5}})["spec"]["activeDeadlineSeconds"] == 5
    path = "spec.activeDeadlineSeconds"
    assert refusals(new, {"spec": {"activeDeadlineSeconds": 20}}) == [
        f"{path}: Invalid value: 20: must be less than or equal to previous value"
    ]
    assert refusals(new, {"spec": {"activeDeadlineSeconds": None}}) == [
        f"{path}: Invalid value: null: must not update from a positive integer to nil value"
    ]


def test_tolerations_may_only_be_added() -> None:
    old = made()
    more = [*old["spec"]["tolerations"], {"key": "a", "operator": "Exists"}]
    assert patched(old, {"spec": {"tolerations": more}})["spec"]["tolerations"] == more
    longer = [{**toleration, "tolerationSeconds": 9} for toleration in old["spec"]["tolerations"]]
    assert patched(old, {"spec": {"tolerations": longer}})["spec"]["tolerations"] == longer
    own = made(tolerations=[{"key": "a", "operator": "Exists"}])
    assert refusals(own, {"spec": {"tolerations": [{"key": "b", "operator": "Exists"}]}}) == [
        "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
    ]


def test_gates_may_only_be_lifted_and_allow_narrowing() -> None:
    gated = made(schedulingGates=[{"name": "example.com/a"}], nodeSelector={"x": "y"})
    assert "schedulingGates" not in patched(gated, {"spec": {"schedulingGates": None}})["spec"]
    two = [{"name": "example.com/a"}, {"name": "example.com/b"}]
    assert refusals(gated, {"spec": {"schedulingGates": two}}) == [
        "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate "
        "'example.com/b'"
    ]
    assert patched(gated, {"spec": {"nodeSelector": {"z": "w"}}})["spec"]["nodeSelector"] == {"x": "y", "z": "w"}
    assert refusals(gated, {"spec": {"nodeSelector": {"x": "other"}}}) == [
        'spec.nodeSelector: Invalid value: {"x":"other"}: only additions to spec.nodeSelector are allowed (no '
        "mutations or deletions)"
    ]
    assert refusals(made(nodeSelector={"x": "y"}), {"spec": {"nodeSelector": {"z": "w"}}})[0].startswith(ONLY)


# --- other doors -------------------------------------------------------------------------------------------


def test_ephemeral_containers_are_added_through_their_own_door() -> None:
    old = made()
    new = patched(
        old,
        {"spec": {"restartPolicy": "Never", "ephemeralContainers": [{"name": "e", "image": "x"}]}},
        "ephemeralcontainers",
    )
    assert new["spec"]["restartPolicy"] == "Always", "only the containers are taken"
    assert new["spec"]["ephemeralContainers"][0]["imagePullPolicy"] == "Always"
    assert new["metadata"]["generation"] == 2
    assert refusals(new, {"spec": {"ephemeralContainers": None}}, "ephemeralcontainers") == [
        'spec.ephemeralContainers: Forbidden: existing ephemeral containers "e" may not be removed\n'
    ]
    bad = [{"name": "e", "image": "x", "ports": [{"containerPort": 1}], "targetContainerName": "nobody"}]
    assert refusals(old, {"spec": {"ephemeralContainers": bad}}, "ephemeralcontainers") == [
        'spec.ephemeralContainers[0].targetContainerName: Not found: "nobody"',
        "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
    ]


def sized(**resources: Any) -> Object:
    return create(
        POD,
        {
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": "example/app:1", "resources": resources}]},
        },
    )


def test_resize_takes_resources_only() -> None:
    old = sized(requests={"cpu": "1"})
    container = {**old["spec"]["containers"][0], "image": "other", "resources": {"requests": {"cpu": "2"}}}
    new = patched(old, {"spec": {"containers": [container]}}, "resize")
    assert new["spec"]["containers"][0]["image"] == "example/app:1"
    assert new["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert new["metadata"]["generation"] == 2


@pytest.mark.parametrize("subresource", ["resize", "ephemeralcontainers"])
def test_subresources_leave_metadata_alone(subresource: str) -> None:
    old = merged(made(), {"metadata": {"labels": {"a": "b"}, "finalizers": ["x/y"]}})
    edit = {"labels": {"a": "c"}, "finalizers": None, "annotations": {"d": "e"}}
    new = patched(old, {"metadata": edit}, subresource)
    assert new["metadata"] == old["metadata"]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}},
            'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
        ),
        (
            {"limits": {"memory": "1Gi"}, "requests": {"memory": "512Mi"}},
            "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
        ),
        (
            {"limits": {"memory": "1Gi"}, "requests": {"cpu": "1", "memory": "512Mi", "ephemeral-storage": "1Gi"}},
            "spec: Forbidden: only cpu and memory resources are mutable",
        ),
    ],
)
def test_resizes_refused(resources: Object, expected: str) -> None:
    old = sized(limits={"memory": "1Gi"}, requests={"cpu": "1", "memory": "512Mi"})
    containers = [{**old["spec"]["containers"][0], "resources": resources}]
    assert refusals(old, {"spec": {"containers": containers}}, "resize") == [expected]


def test_a_memory_limit_may_be_lowered() -> None:
    old = sized(limits={"memory": "1Gi"}, requests={"cpu": "1", "memory": "512Mi"})
    lower = {"limits": {"memory": "768Mi"}, "requests": {"cpu": "1", "memory": "512Mi"}}
    new = patched(old, {"spec": {"containers": [{**old["spec"]["containers"][0], "resources": lower}]}}, "resize")
    assert new["spec"]["containers"][0]["resources"] == lower


def test_a_resize_leaves_the_containers_as_they_are() -> None:
    old = made()
    first = old["spec"]["containers"][0]
    assert refusals(old, {"spec": {"containers": [first, {**first, "name": "d"}]}}, "resize") == [
        "spec.containers: Forbidden: containers may not be added or removed on resize"
    ]
    assert refusals(old, {"spec": {"containers": [{**first, "name": "d"}]}}, "resize") == [
        "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"
    ]


def test_init_containers_may_be_resized() -> None:
    init = {"name": "i", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    old = made(initContainers=[init])
    more = {"spec": {"initContainers": [{**old["spec"]["initContainers"][0], "resources": {"requests": {"cpu": "2"}}}]}}
    new = patched(old, more, "resize")
    assert new["spec"]["initContainers"][0]["resources"] == {"requests": {"cpu": "2"}}
    less = {"spec": {"initContainers": [{**old["spec"]["initContainers"][0], "resources": {"limits": {"x.y/z": "1"}}}]}}
    assert refusals(old, less, "resize") == [
        'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
        "spec.initContainers[0].resources.requests: Forbidden: resource requests cannot be removed",
        "spec.initContainers[0]: Forbidden: only cpu and memory resources for init or sidecar containers are mutable",
    ]


def test_the_resources_of_the_whole_pod_may_change_but_not_go() -> None:
    old = made(resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}})
    new = patched(old, {"spec": {"resources": {"requests": {"cpu": "2"}}}}, "resize")
    assert new["spec"]["resources"]["requests"] == {"cpu": "2"}
    assert refusals(old, {"spec": {"resources": None}}, "resize") == [
        'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
        "spec.resources: Forbidden: pod-level resources cannot be removed",
    ]
    assert refusals(old, {"spec": {"resources": {"limits": None}}}, "resize") == [
        "spec.resources.limits: Forbidden: pod-level resource limits cannot be removed"
    ]


# --- status ------------------------------------------------------------------------------------------------


def rule(operator: str, code: int, action: str = "Restart") -> Object:
    return {"action": action, "exitCodes": {"operator": operator, "values": [code]}}


def test_the_status_door_takes_status_labels_and_nothing_else() -> None:
    old = made()
    old["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"}]
    patch = {
        "metadata": {"labels": {"a": "b"}, "ownerReferences": None},
        "spec": {"nodeName": "n"},
        "status": {"phase": "Running"},
    }
    new = patched(old, patch, "status")
    assert new["spec"] == old["spec"]
    assert new["metadata"]["labels"] == {"a": "b"}
    assert new["metadata"]["ownerReferences"] == old["metadata"]["ownerReferences"]
    assert new["status"] == {"phase": "Running", "qosClass": "BestEffort"}


@pytest.mark.parametrize(
    ("status", "addresses"),
    [
        ({"podIP": "10.0.0.1"}, ("10.0.0.1", ["10.0.0.1"])),
        ({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]}, ("10.0.0.1", ["10.0.0.1", "fd00::1"])),
        ({"podIP": "10.0.0.2", "podIPs": [{"ip": "10.0.0.1"}]}, ("10.0.0.2", ["10.0.0.2"])),
    ],
)
def test_addresses_agree(status: Object, addresses: tuple[str, list[str]]) -> None:
    new = patched(made(), {"status": status}, "status")["status"]
    assert (new["podIP"], [entry["ip"] for entry in new["podIPs"]]) == addresses


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        ({"podIP": "x"}, ["status.podIPs[0]"]),
        ({"podIP": "10.0.0.01"}, ["status.podIPs[0]"]),
        ({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]}, ["status.podIPs"]),
        ({"hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.2"}]}, ["status.hostIPs[0].ip"]),
        ({"nominatedNodeName": "Bad_Node"}, ["status.nominatedNodeName"]),
        ({"qosClass": "Guaranteed"}, ["status.qosClass"]),
        ({"conditions": [{"type": "not a name", "status": "True"}]}, ["status.conditions[0].Type"]),
        ({"conditions": [{"type": "Ready", "status": "True", "observedGeneration": -1}]},
         ["status.conditions[0].observedGeneration"]),
        ({"observedGeneration": -1}, ["status.observedGeneration"]),
        ({"resourceClaimStatuses": [{"name": "none"}]}, ["status.resourceClaimStatuses[0].name"]),
    ],
)  # fmt: skip
def test_statuses_refused(status: Object, fields: list[str]) -> None:
    with pytest.raises(Invalid) as refused:
        patched(made(), {"status": status}, "status")
    assert [cause.field for cause in refused.value.causes] == fields


def test_messages_quote_what_go_holds() -> None:
    two = [{"ip": "10.0.0.1"}, {"ip": "10.0.0.1"}]
    assert refusals(made(), {"status": {"podIPs": two}}, "status") == [
        'status.podIPs: Invalid value: [{"IP":"10.0.0.1"},{"IP":"10.0.0.1"}]: may specify no more than one IP for each '
        "IP family",
    ]


def test_odd_addresses_are_warned_about() -> None:
    new = patched(made(), {"status": {"podIP": "fd00:0::1"}}, "status")
    (warning,) = POD.status_warnings(new)
    assert warning.startswith("status.podIPs[0].ip: ")
    assert POD.status_warnings(patched(made(), {"status": {"podIP": "10.0.0.1"}}, "status")) == []


def test_what_ended_stays_ended() -> None:
    ended = {"name": "c", "image": "x", "imageID": "", "state": {"terminated": {"exitCode": 0}}}
    running = {"name": "c", "image": "x", "imageID": "", "state": {"running": {}}}
    once = patched(made(restartPolicy="Never"), {"status": {"containerStatuses": [ended]}}, "status")
    assert refusals(once, {"status": {"containerStatuses": [running]}}, "status") == [
        "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"
    ]
    always = patched(made(), {"status": {"containerStatuses": [ended]}}, "status")
    assert patched(always, {"status": {"containerStatuses": [running]}}, "status")


@pytest.mark.parametrize(
    ("own", "code", "again"),
    [
        ({"restartPolicy": "Always"}, 0, True),
        ({"restartPolicy": "OnFailure"}, 0, False),
        ({"restartPolicy": "OnFailure"}, 1, True),
        ({"restartPolicy": "Never", "restartPolicyRules": [rule("In", 42)]}, 42, True),
        ({"restartPolicy": "Never", "restartPolicyRules": [rule("In", 42)]}, 1, False),
        ({"restartPolicy": "Never", "restartPolicyRules": [rule("NotIn", 42)]}, 1, True),
        ({"restartPolicy": "Never", "restartPolicyRules": [rule("In", 9, "RestartAllContainers")]}, 1, True),
    ],
)
def test_a_container_may_have_a_restart_policy_of_its_own(own: Object, code: int, again: bool) -> None:
    container = {"name": "c", "image": "example/app:1", **own}
    old = create(POD, {"metadata": {"name": "p"}, "spec": {"containers": [container], "restartPolicy": "Never"}})
    status = {"name": "c", "image": "x", "imageID": "", "state": {"terminated": {"exitCode": code}}}
    ended = patched(old, {"status": {"containerStatuses": [status]}}, "status")
    running = {"status": {"containerStatuses": [{**status, "state": {"running": {}}}]}}
    if again:
        assert patched(ended, running, "status")
    else:
        assert len(refusals(ended, running, "status")) == 1


def test_a_bound_pod_is_not_nominated() -> None:
    assert refusals(made(nodeName="node-a"), {"status": {"nominatedNodeName": "node-b"}}, "status") == [
        "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"
    ]


def test_observed_generations_are_not_taken_back() -> None:
    seen = {"observedGeneration": 3, "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 2}]}
    old = patched(made(), {"status": seen}, "status")
    body = merged(old, {"status": {"observedGeneration": None, "conditions": [{"type": "Ready", "status": "False"}]}})
    new = change(POD, old, body, "status")["status"]
    assert (new["observedGeneration"], new["conditions"][0]["observedGeneration"]) == (3, 2)


# --- binding, eviction, deletion ---------------------------------------------------------------------------


def binding(**more: Any) -> Object:
    return {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "node-a"}, **more}


def test_a_binding_gives_the_pod_its_node() -> None:
    old = made()
    bound = bind(old, binding(metadata={"name": "p", "annotations": {"a": "b"}, "labels": {"c": "d"}}), NOW)
    assert bound["spec"]["nodeName"] == "node-a"
    assert (bound["metadata"]["annotations"], bound["metadata"]["labels"]) == ({"a": "b"}, {"c": "d"})
    assert bound["status"]["conditions"] == [
        {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": NOW}
    ]
    assert "nodeName" not in old["spec"]
    assert "conditions" not in old["status"]


def test_a_bound_pod_was_scheduled_when_it_was() -> None:
    old = made()
    earlier = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }
    old["status"]["conditions"] = [earlier]
    assert bind(old, binding(), NOW)["status"]["conditions"] == [earlier]
    old["status"]["conditions"] = [{**earlier, "status": "False"}]
    assert bind(old, binding(), NOW)["status"]["conditions"][0]["lastTransitionTime"] == NOW


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        ({"spec": {"nodeName": "n"}}, 'pod p is already assigned to node "n"'),
        ({"metadata": {"deletionTimestamp": NOW}}, "pod p is being deleted, cannot be assigned to a host"),
        ({"spec": {"schedulingGates": [{"name": "a"}]}}, "pod p has non-empty .spec.schedulingGates"),
    ],
)
def test_pods_that_cannot_be_bound(edit: Object, reason: str) -> None:
    with pytest.raises(Conflict) as refused:
        bind(merged(made(), edit), binding(), NOW)
    assert refused.value.message == f'Operation cannot be fulfilled on pods/binding "p": {reason}'
    assert refused.value.details == {"name": "p", "kind": "pods/binding"}


@pytest.mark.parametrize(("field", "word"), [("uid", "UID"), ("resourceVersion", "ResourceVersion")])
def test_a_binding_may_be_for_one_pod_or_version_only(field: str, word: str) -> None:
    old = merged(made(), {"metadata": {"namespace": "ns", field: "is"}, "spec": {"nodeName": "n"}})
    with pytest.raises(Conflict) as refused:
        bind(old, binding(metadata={"name": "p", field: "asked"}), NOW)
    assert refused.value.message == (
        'Operation cannot be fulfilled on pods "p": StorageError: invalid object, Code: 4, Key: /registry/pods/ns/p, '
        f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {word} in precondition: asked, {word} in object "
        "meta: is"
    )
    assert refused.value.details == {"name": "p", "kind": "pods"}


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"kind": "Node"}, "target.name: Required value"),
        (
            {"kind": "Rack"},
            '[target.kind: Unsupported value: "Rack": supported values: "Node", "<empty>", target.name: Required '
            "value]",
        ),
    ],
)
def test_bad_bindings_are_answered_with_a_bare_500(target: Object, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        bind(made(), binding(target=target), NOW)
    assert (refused.value.code, refused.value.reason, refused.value.message) == (500, "", message)


def test_a_binding_names_its_pod() -> None:
    with pytest.raises(BadRequest, match="name in URL does not match name in Binding object"):
        bind(made(), binding(metadata={}), NOW)


def test_an_eviction_names_its_pod() -> None:
    options = {"gracePeriodSeconds": 3}
    plan = EVICT.plan("p", {"metadata": {"name": "p"}, "deleteOptions": options}, now=NOW, others=Neighbours())
    assert plan.delete == options
    assert plan.edit(made())["status"]["conditions"][-1]["reason"] == "EvictionByEvictionAPI"
    with pytest.raises(BadRequest, match="name in URL does not match name in Eviction object"):
        EVICT.plan("p", {"metadata": {"name": "q"}}, now=NOW, others=Neighbours())


@pytest.mark.parametrize(
    ("spec", "phase", "asked", "seconds"),
    [
        ({}, "Pending", None, 0),
        ({"nodeName": "n"}, "Running", None, 30),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 7}, "Running", None, 7),
        ({"nodeName": "n"}, "Running", 5, 5),
        ({"nodeName": "n"}, "Running", 0, 0),
        ({"nodeName": "n"}, "Running", -1, 1),
        ({"nodeName": "n", "terminationGracePeriodSeconds": -1}, "Running", None, 1),
        ({"nodeName": "n"}, "Succeeded", None, 0),
        ({"nodeName": "n"}, "Failed", 60, 0),
    ],
)
def test_grace(spec: Object, phase: str, asked: int | None, seconds: int) -> None:
    pod = made(**spec)
    pod["status"]["phase"] = phase
    assert POD.grace_seconds(pod, asked) == seconds
