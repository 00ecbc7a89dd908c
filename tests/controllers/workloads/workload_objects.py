"""Workloads and Pods for tests, as the controllers see them; only what matters in a test is given."""

import msgspec

from seamark.controllers.workloads.daemonset import DaemonSet
from seamark.controllers.workloads.deployment import Deployment
from seamark.controllers.workloads.replicas import ReplicaSet
from seamark.controllers.workloads.statefulset import StatefulSet
from seamark.kinds.values import times
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod


def template(image="app:1", **labels):
    return {
        "metadata": {"labels": {"app": "web", **labels}},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }


def _object(as_, name, spec, status, metadata):
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1, **metadata}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, as_)


def deployment(*, replicas=3, image="app:1", surge="25%", unavailable="25%", status=None, metadata=None, **spec):
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    wanted = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template(image),
        "strategy": strategy,
        "progressDeadlineSeconds": 600,
        "revisionHistoryLimit": 10,
        **spec,
    }
    return _object(Deployment, "web", wanted, status or {}, metadata or {})


def replica_set(name="web-1", *, replicas=3, image="app:1", available=None, status=None, metadata=None, **spec):
    wanted = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template(image, **{"pod-template-hash": name}),
        **spec,
    }
    count = replicas if available is None else available
    counts = {"replicas": replicas, "readyReplicas": count, "availableReplicas": count, "observedGeneration": 1}
    return _object(ReplicaSet, name, wanted, {**counts, **(status or {})}, metadata or {})


def stateful_set(*, replicas=3, status=None, metadata=None, **spec):
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 1}}
    wanted = {
        "replicas": replicas,
        "serviceName": "web",
        "selector": {"matchLabels": {"app": "web"}},
        "template": template(),
        "updateStrategy": strategy,
        **spec,
    }
    return _object(StatefulSet, "web", wanted, status or {}, metadata or {})


def daemon_set(*, unavailable=1, surge=0, status=None, metadata=None, **spec):
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}}
    wanted = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": template(),
        "updateStrategy": strategy,
        **spec,
    }
    return _object(DaemonSet, "web", wanted, status or {}, metadata or {})


def node(name, labels=None, taints=()):
    return msgspec.convert({"metadata": {"name": name, "labels": labels or {}}, "spec": {"taints": taints}}, Node)


def pod(
    name,
    *,
    ready=True,
    phase="Running",
    node="node-a",
    labels=None,
    owner=None,
    created=0.0,
    since=0.0,
    restarts=0,
    terminating=False,
    cost=None,
    uid=None,
):
    """``owner`` is the uid of its controller; ``since`` is when it became ready."""
    meta = {
        "name": name,
        "namespace": "default",
        "uid": uid or f"uid-{name}",
        "labels": {"app": "web"} if labels is None else labels,
        "creationTimestamp": times.text(created),
    }
    if owner:
        name = owner.removeprefix("uid-")
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": owner, "controller": True}
        meta["ownerReferences"] = [reference]
    if terminating:
        meta["deletionTimestamp"] = times.text(created)
    if cost is not None:
        meta["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": cost, "another": "one"}
    status = {"phase": phase, "containerStatuses": [{"restartCount": restarts}]}
    if phase == "Running":
        condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": times.text(since)}
        status["conditions"] = [condition]
    return msgspec.convert({"metadata": meta, "spec": {"nodeName": node}, "status": status}, Pod)
