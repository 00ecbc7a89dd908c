"""Rollouts of Deployments: decisions one by one, and whole rollouts in any order of events."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rollout_model import Model
from workload_objects import deployment, replica_set

from seamark.controllers.workloads import rollout_sizes
from seamark.controllers.workloads.deployment import revised_annotations
from seamark.controllers.workloads.rollout import plan, split
from seamark.controllers.workloads.rollout_status import complete
from seamark.kinds.values import times
from seamark.rules.objects.conditions import condition_of

NOW = 1_000_000.0
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"


def planned(of, sets=(), *, lingering=False, now=NOW):
    return plan(of, list(sets), lingering=lingering, now=now)


def sizes(found):
    return {resize.before.metadata.name: resize.after.spec.replicas for resize in found.resize}


def condition(found, type):
    got = condition_of(found.status.conditions, type)
    return got and (got.status, got.reason, got.message)


# --- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, "25%", "25%", (3, 2)),
        (3, "25%", "25%", (1, 0)),
        (1, "25%", "25%", (1, 0)),
        (4, 2, 1, (2, 1)),
        (2, 0, "1%", (0, 1)),  # both would be nothing: one has to go
        (1, "0%", "25%", (0, 1)),
        (3, 0, 10, (0, 3)),  # no more than there are
        (0, "25%", "25%", (0, 0)),
        (100, "1%", "0%", (1, 0)),
    ],
)
def test_percentages_round_surge_up_and_unavailable_down(replicas, surge, unavailable, expected):
    found = deployment(replicas=replicas, surge=surge, unavailable=unavailable)
    assert (found.surge, found.unavailable) == expected


# --- the first ReplicaSet --------------------------------------------------------------------------


def test_a_new_deployment_gets_a_replica_set():
    of = deployment(
        replicas=3, metadata={"annotations": {"team": "a", "kubectl.kubernetes.io/last-applied-configuration": "x"}}
    )
    found = planned(of)
    made = found.create
    unique = made["metadata"]["labels"]["pod-template-hash"]
    assert made["metadata"]["name"] == f"web-{unique}"
    assert made["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "web",
            "uid": "uid-web",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert made["metadata"]["annotations"] == {"team": "a", REVISION: "1", DESIRED: "3", MAXIMUM: "4"}
    assert made["spec"]["replicas"] == 3
    assert made["spec"]["selector"] == {"matchLabels": {"app": "web", "pod-template-hash": unique}}
    assert made["spec"]["template"]["metadata"]["labels"] == {"app": "web", "pod-template-hash": unique}
    assert set(unique) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert found.revision == "1"
    assert condition(found, "Progressing") == (
        "True",
        "NewReplicaSetCreated",
        f'Created new replica set "web-{unique}"',
    )
    assert condition(found, "Available") == (
        "False",
        "MinimumReplicasUnavailable",
        "Deployment does not have minimum availability.",
    )
    assert found.status.observed_generation == 1


def test_the_name_depends_on_the_template_and_on_collisions_only():
    first = planned(deployment()).create["metadata"]["name"]
    assert planned(deployment(replicas=7, paused=False)).create["metadata"]["name"] == first
    assert planned(deployment(image="app:2")).create["metadata"]["name"] != first
    assert planned(deployment(status={"collisionCount": 1})).create["metadata"]["name"] != first


def test_a_deployment_without_replicas_is_complete_at_once():
    found = planned(deployment(replicas=0))
    assert found.create["spec"]["replicas"] == 0
    assert condition(found, "Progressing")[:2] == ("True", "NewReplicaSetAvailable")
    assert condition(found, "Available")[:2] == ("True", "MinimumReplicasAvailable")


# --- steps of a rolling update ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "new", "old", "expected"),
    [
        # (size, available) of the new and the old ReplicaSet → sizes that change
        ({"replicas": 10, "surge": 3, "unavailable": 2}, (0, 0), (10, 10), {"new": 3}),
        ({"replicas": 10, "surge": 3, "unavailable": 2}, (3, 0), (10, 10), {"old": 8}),
        ({"replicas": 10, "surge": 3, "unavailable": 2}, (3, 0), (8, 10), {"new": 5}),
        ({"replicas": 10, "surge": 3, "unavailable": 2}, (5, 0), (8, 8), {}),
        ({"replicas": 10, "surge": 3, "unavailable": 2}, (5, 2), (8, 8), {"old": 6}),
        # Old Pods that do not work go first, however many are needed.
        ({"replicas": 10, "surge": 3, "unavailable": 2}, (3, 0), (10, 5), {"old": 8}),
        ({"replicas": 10, "surge": 0, "unavailable": 10}, (0, 0), (10, 10), {"old": 0}),
        ({"replicas": 2, "surge": 1, "unavailable": 0}, (1, 0), (2, 2), {}),
        ({"replicas": 2, "surge": 1, "unavailable": 0}, (1, 1), (2, 2), {"old": 1}),
        ({"replicas": 2, "surge": 1, "unavailable": 0}, (2, 2), (1, 1), {"old": 0}),
        # Too large a new one is cut to size at once.
        ({"replicas": 2, "surge": 1, "unavailable": 0}, (5, 5), (0, 0), {"new": 2}),
        # A report from before the old one was told to shrink does not make Pods spare twice.
        ({"replicas": 10, "surge": 3, "unavailable": 2}, (3, 3), (8, 10), {"new": 5}),
        ({"replicas": 10, "surge": 0, "unavailable": 2}, (2, 2), (8, 10), {"old": 6}),
        ({"replicas": 3, "surge": 1, "unavailable": 0}, (1, 3), (3, 3), {"old": 2}),
    ],
)  # fmt: skip
def test_one_step(spec, new, old, expected):
    of = deployment(image="app:2", **spec)
    made = replica_set("new", image="app:2", replicas=new[0], available=new[1])
    there = replica_set("old", image="app:1", replicas=old[0], available=old[1])
    assert rollout_sizes.rolling(of, made, [there]) == expected


def test_the_oldest_of_the_old_shrink_first():
    of = deployment(image="app:3", replicas=4, surge=2, unavailable=0)
    new = replica_set("c", image="app:3", replicas=3, available=2)
    older = replica_set("b", image="app:1", replicas=1, metadata={"creationTimestamp": "2026-01-01T00:00:00Z"})
    younger = replica_set("a", image="app:2", replicas=2, metadata={"creationTimestamp": "2026-01-02T00:00:00Z"})
    assert rollout_sizes.rolling(of, new, [younger, older]) == {"b": 0}


def test_recreate_waits_until_the_last_old_pod_is_gone():
    of = deployment(image="app:2", strategy={"type": "Recreate"})
    old = replica_set("old", replicas=3)
    first = planned(of, [old], lingering=True)
    assert (sizes(first), first.create) == ({"old": 0}, None)
    shrunk = replica_set("old", replicas=0, available=0)
    assert planned(of, [shrunk], lingering=True).create is None
    assert planned(of, [shrunk], lingering=False).create["spec"]["replicas"] == 3


def test_recreate_goes_on_when_it_is_scaled_with_several_replica_sets_alive():
    of = deployment(image="app:2", replicas=5, strategy={"type": "Recreate"})
    new = annotated("new", "2", image="app:2", replicas=1)
    old = annotated("old", "1", image="app:1", replicas=2)
    assert sizes(planned(of, [new, old], lingering=True)) == {"old": 0}


# --- going back ------------------------------------------------------------------------------------


def annotated(name, revision, **more):
    extra = more.pop("annotations", {})
    return replica_set(
        name, metadata={"annotations": {REVISION: revision, DESIRED: "3", MAXIMUM: "4", **extra}}, **more
    )


def test_going_back_reuses_the_old_replica_set_under_a_new_revision():
    of = deployment(image="app:1", metadata={"annotations": {REVISION: "2"}})
    back = annotated("one", "1", image="app:1", replicas=0, available=0)
    bad = annotated("two", "2", image="app:2", replicas=3)
    found = planned(of, [back, bad])
    assert found.create is None
    assert found.revision == "3"
    (resize,) = found.resize
    assert resize.after.metadata.annotations == {REVISION: "3", HISTORY: "1", DESIRED: "3", MAXIMUM: "4"}
    assert resize.after.spec.replicas == 1


def test_the_history_of_revisions_forgets_the_oldest_when_too_long():
    history = ",".join(str(n) for n in range(1, 560))
    after = revised_annotations(deployment(), {REVISION: "900", HISTORY: history}, 901)
    assert after[HISTORY].endswith(",559,900")
    assert len(after[HISTORY]) <= 2000
    assert not after[HISTORY].startswith("1,")
    assert revised_annotations(deployment(), {REVISION: "7"}, 3) == {REVISION: "7"}
    assert revised_annotations(deployment(), {REVISION: "x"}, 3) == {REVISION: "x"}


def test_of_two_alike_the_oldest_is_the_new_one():
    older = replica_set("b", metadata={"creationTimestamp": "2026-01-01T00:00:00Z"})
    younger = replica_set("a", metadata={"creationTimestamp": "2026-01-02T00:00:00Z"})
    new, old = split(deployment(), [younger, older])
    assert (new.metadata.name, [rs.metadata.name for rs in old]) == ("b", ["a"])


def test_history_beyond_the_limit_is_cleaned_up_when_the_rollout_is_complete():
    status = {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3, "observedGeneration": 1}
    of = deployment(image="app:9", revisionHistoryLimit=2, status=status)
    new = annotated("new", "9", image="app:9")
    old = [annotated(f"r{n}", str(n), image=f"app:{n}", replicas=0, available=0) for n in (4, 2, 8, 6)]
    assert [rs.metadata.name for rs in planned(of, [new, *old]).delete] == ["r2", "r4"]
    busy = annotated("r2", "2", image="app:2", replicas=0, available=0, status={"replicas": 1})
    assert [
        rs.metadata.name for rs in planned(of, [new, busy, *(o for o in old if o.metadata.name != "r2")]).delete
    ] == ["r4"]
    underway = deployment(image="app:9", revisionHistoryLimit=2)
    assert planned(underway, [new, *old]).delete == ()
    keep_all = deployment(image="app:9", revisionHistoryLimit=2**31 - 1, status=status)
    assert planned(keep_all, [new, *old]).delete == ()


# --- scaling ---------------------------------------------------------------------------------------


def test_scaling_a_complete_deployment_resizes_its_only_replica_set():
    found = planned(deployment(replicas=5), [annotated("web-1", "1", replicas=3)])
    assert sizes(found) == {"web-1": 5}
    assert found.resize[0].after.metadata.annotations == {REVISION: "1", DESIRED: "5", MAXIMUM: "7"}


@pytest.mark.parametrize(
    ("wanted", "before", "maximum", "expected"),
    [
        # A rollout of 10 with 3 surging, half way: each takes its share of the change.
        (20, (5, 8), 13, (9, 14)),
        (5, (5, 8), 13, (3, 5)),
        (12, (5, 8), 13, (6, 9)),
        (0, (5, 8), 13, (0, 0)),
        (11, (3, 3), 6, (7, 7)),
    ],
)
def test_scaling_in_the_middle_of_a_rollout_is_shared(wanted, before, maximum, expected):
    of = deployment(image="app:2", replicas=wanted, surge=3, unavailable=2)
    annotations = {DESIRED: "10", MAXIMUM: str(maximum)}
    new = annotated("new", "2", image="app:2", replicas=before[0], annotations=annotations)
    old = annotated("old", "1", image="app:1", replicas=before[1], annotations=annotations)
    found = planned(of, [new, old])
    assert sizes(found) == dict(zip(("new", "old"), expected, strict=True))
    assert sum(expected) == (wanted + of.surge if wanted else 0)


def test_a_paused_deployment_scales_but_does_not_roll():
    paused = deployment(image="app:2", replicas=5, paused=True)
    found = planned(paused, [annotated("old", "1", replicas=3)])
    assert found.create is None
    assert sizes(found) == {"old": 5}
    assert condition(found, "Progressing") == ("Unknown", "DeploymentPaused", "Deployment is paused")
    status = msgspec.to_builtins(found.status)
    resumed = planned(
        deployment(image="app:1", replicas=5, status=status),
        [annotated("old", "1", replicas=5, annotations={DESIRED: "5"}, available=2)],
    )
    assert condition(resumed, "Progressing")[1] in ("DeploymentResumed", "ReplicaSetUpdated")


# --- progress --------------------------------------------------------------------------------------


def progressing(reason, at, status="True"):
    moment = times.text(at)
    return {
        "type": "Progressing",
        "status": status,
        "reason": reason,
        "message": "",
        "lastUpdateTime": moment,
        "lastTransitionTime": moment,
    }


def test_a_rollout_that_does_not_move_times_out():
    status = {"replicas": 3, "updatedReplicas": 3, "conditions": [progressing("ReplicaSetUpdated", NOW)]}
    of = deployment(status=status)
    stuck = annotated("web-1", "1", available=0)
    waiting = planned(of, [stuck], now=NOW + 100)
    assert condition(waiting, "Progressing")[1] == "ReplicaSetUpdated"
    assert waiting.again == 501
    late = planned(of, [stuck], now=NOW + 601)
    assert condition(late, "Progressing") == (
        "False",
        "ProgressDeadlineExceeded",
        'ReplicaSet "web-1" has timed out progressing.',
    )
    assert late.again is None
    # It stays so until something moves.
    after = msgspec.structs.replace(of, status=late.status)
    assert planned(after, [stuck], now=NOW + 9000).status == late.status
    moving = annotated("web-1", "1", available=1)
    assert condition(planned(after, [moving], now=NOW + 9000), "Progressing")[:2] == ("True", "ReplicaSetUpdated")


def test_every_movement_renews_the_time_but_not_that_of_the_transition():
    status = {"replicas": 3, "updatedReplicas": 3, "conditions": [progressing("ReplicaSetUpdated", NOW)]}
    found = planned(deployment(status=status), [annotated("web-1", "1", available=1)], now=NOW + 60)
    got = condition_of(found.status.conditions, "Progressing")
    assert (got.last_update_time, got.last_transition_time) == (times.text(NOW + 60), times.text(NOW))


def test_a_pod_lost_after_success_is_no_failure_of_the_rollout():
    status = {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3, "readyReplicas": 3}
    of = deployment(status={**status, "conditions": [progressing("NewReplicaSetAvailable", NOW - 9000)]})
    found = planned(of, [annotated("web-1", "1", available=2)])
    assert condition(found, "Progressing")[1] == "NewReplicaSetAvailable"
    assert condition(found, "Available")[0] == "False"
    assert found.again is None


def test_without_a_deadline_nothing_is_said_about_progress():
    of = deployment(progressDeadlineSeconds=2**31 - 1, status={"conditions": [progressing("ReplicaSetUpdated", NOW)]})
    assert condition(planned(of, [annotated("web-1", "1", available=0)]), "Progressing") is None


def test_what_keeps_a_replica_set_from_getting_pods_is_passed_on():
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"}
    held = annotated("web-1", "1", available=0, status={"conditions": [failure]})
    assert condition(planned(deployment(), [held]), "ReplicaFailure") == ("True", "FailedCreate", "quota")
    before = msgspec.structs.replace(deployment(), status=planned(deployment(), [held]).status)
    assert condition(planned(before, [annotated("web-1", "1")]), "ReplicaFailure") is None


def test_a_deployment_on_its_way_out_only_counts():
    of = deployment(image="app:2", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    found = planned(of, [annotated("old", "1")])
    assert (found.create, found.resize, found.delete) == (None, (), ())
    assert found.status.replicas == 3


# --- whole rollouts --------------------------------------------------------------------------------

shares = st.sampled_from([0, 1, 2, 5, "0%", "10%", "25%", "100%"])
moves = st.lists(
    st.tuples(st.sampled_from(["deployment", "sets", "ready", "gone", "template"]), st.integers(0, 7)), max_size=60
)


def legal(surge, unavailable):
    return surge not in (0, "0%") or unavailable not in (0, "0%")


def take(model, action, number):
    match action:
        case "deployment":
            model.step_deployment()
        case "sets":
            model.step_set(sorted(model.sets)[number % len(model.sets)])
        case "ready" | "unready" | "gone" if model.pods:
            name = sorted(model.pods)[number % len(model.pods)]
            model.remove(name) if action == "gone" else model.set_ready(name, action == "ready")
        case "template":
            model.edit(image=f"app:{number % 3 + 1}")
        case "scale":
            model.edit(replicas=number)
        case "pause":
            model.edit(paused=bool(number % 2))
        case "strategy":
            kind = "Recreate" if number % 2 else "RollingUpdate"
            rolling = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}} if kind == "RollingUpdate" else {}
            model.edit(strategy={"type": kind, **rolling})


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 7), shares, shares, moves)
def test_never_too_many_and_never_too_few(replicas, surge, unavailable, actions):
    """However late each controller is, and however often the template changes."""
    if not legal(surge, unavailable):
        return
    model = Model(replicas=replicas, surge=surge, unavailable=unavailable)
    model.settle()
    assert model.available == replicas
    for action, number in actions:
        take(model, action, number)
        assert len(model.active) <= replicas + model.deployment.surge
        assert model.available >= replicas - model.deployment.unavailable


everything = st.lists(
    st.tuples(
        st.sampled_from(["deployment", "sets", "ready", "unready", "gone", "template", "scale", "pause", "strategy"]),
        st.integers(0, 7),
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 7), shares, shares, everything)
def test_whatever_happens_it_ends_well_and_then_rests(replicas, surge, unavailable, actions):
    if not legal(surge, unavailable):
        return
    model = Model(replicas=replicas, surge=surge, unavailable=unavailable)
    model.settle()
    for action, number in actions:
        take(model, action, number)
    model.edit(paused=False)
    model.settle()
    of = model.deployment
    new, old = split(of, model.sets.values())
    assert complete(of, of.status)
    assert new.spec.replicas == of.spec.replicas == len(model.active)
    assert not rollout_sizes.active(old)
    assert condition_of(of.status.conditions, "Progressing").reason == "NewReplicaSetAvailable"
    assert condition_of(of.status.conditions, "Available").status == "True"
    revisions = [int(rs.metadata.annotations[REVISION]) for rs in model.sets.values()]
    assert of.metadata.annotations[REVISION] == new.metadata.annotations[REVISION] == str(max(revisions))
    assert len(set(revisions)) == len(revisions)
    assert not model.step_deployment()
