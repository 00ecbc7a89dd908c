"""All workload controllers of a cluster of our own, sharing what they see."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from seamark.access.cluster import Cluster
from seamark.access.events import EventRecorder
from seamark.access.informers import Informers
from seamark.controllers.workloads.daemonset import DaemonSet
from seamark.controllers.workloads.daemonset_controller import DaemonSetController
from seamark.controllers.workloads.deployment import Deployment
from seamark.controllers.workloads.deployment_controller import DeploymentController
from seamark.controllers.workloads.history import Revision
from seamark.controllers.workloads.owners import Dependants
from seamark.controllers.workloads.replicas import ReplicaSet, ReplicationController
from seamark.controllers.workloads.replicaset_controller import ReplicasController
from seamark.controllers.workloads.statefulset import StatefulSet
from seamark.controllers.workloads.statefulset_controller import StatefulSetController
from seamark.kinds.resource import (
    CONTROLLER_REVISIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    NODES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod

# A burst of Pods that change is looked at once per so many seconds and workload; a single change does not wait.
BATCH_SECONDS = 0.05


class Workloads:
    """The controllers, each to be attached to a loop, and the recorders of what they tell people."""

    def __init__(self, cluster: Cluster, informers: Informers, *, now: Callable[[], float] = time.time) -> None:
        self._cluster = cluster
        self._now = now
        self._recorders: dict[str, EventRecorder] = {}
        revisions = Dependants(informers.of(CONTROLLER_REVISIONS, as_=Revision))
        pods = Dependants(informers.of(PODS, as_=Pod), same=Pod.same_replica)
        replica_sets = ReplicasController(
            cluster,
            informers.of(REPLICA_SETS, as_=ReplicaSet),
            pods,
            name="replicaset-controller",
            resource=REPLICA_SETS,
            recorder=self._recorder("replicaset-controller"),
            now=now,
        )
        replication_controllers = ReplicasController(
            cluster,
            informers.of(REPLICATION_CONTROLLERS, as_=ReplicationController),
            pods,
            name="replication-controller",
            resource=REPLICATION_CONTROLLERS,
            recorder=self._recorder("replication-controller"),
            now=now,
        )
        deployments = DeploymentController(
            cluster,
            informers.of(DEPLOYMENTS, as_=Deployment),
            Dependants(informers.of(REPLICA_SETS, as_=ReplicaSet)),
            pods,
            recorder=self._recorder("deployment-controller"),
            now=now,
        )
        stateful_sets = StatefulSetController(
            cluster,
            informers.of(STATEFUL_SETS, as_=StatefulSet),
            pods,
            revisions,
            recorder=self._recorder("statefulset-controller"),
            now=now,
        )
        daemon_sets = DaemonSetController(
            cluster,
            informers.of(DAEMON_SETS, as_=DaemonSet),
            pods,
            revisions,
            informers.of(NODES, as_=Node),
            recorder=self._recorder("daemonset-controller"),
            now=now,
        )
        self.controllers = (deployments, replica_sets, replication_controllers, stateful_sets, daemon_sets)

    def recording(self) -> Sequence[tuple[str, Coroutine[Any, Any, None]]]:
        """Named tasks that write events."""
        return [(f"events of the {name}", recorder.run()) for name, recorder in self._recorders.items()]

    def _recorder(self, component: str) -> EventRecorder:
        recorder = self._recorders[component] = EventRecorder(self._cluster, component=component, now=self._now)
        return recorder
