"""Creates the controllers of all workloads, Jobs among them, which share their indexes of Pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seamark.access.cluster import Cluster
from seamark.controllers.batch.cronjob import CronJob
from seamark.controllers.batch.cronjob_controller import CronJobController
from seamark.controllers.batch.job import Job
from seamark.controllers.batch.job_controller import JobController
from seamark.controllers.batch.tracked_pods import TrackedPods
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
from seamark.controllers.workloads.workload import BATCH_SECONDS, WorkloadController, Workplace
from seamark.kinds.resource import (
    CONTROLLER_REVISIONS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod
from seamark.runtime.manager import Manager


def add_workloads(manager: Manager, cluster_for: Callable[[str], Cluster], *, batch: float = BATCH_SECONDS) -> None:
    """Add all workload controllers to the manager; each writes to the cluster for its name."""
    informers, place = manager.informers, Workplace(manager, cluster_for, batch)
    pods = Dependants(informers.of(PODS, as_=Pod), same=Pod.same_replica)
    sets = Dependants(informers.of(REPLICA_SETS, as_=ReplicaSet))
    revisions = Dependants(informers.of(CONTROLLER_REVISIONS, as_=Revision))
    counted = informers.of(REPLICATION_CONTROLLERS, as_=ReplicationController)
    jobs = informers.of(JOBS, as_=Job)
    job_controller = JobController(jobs, pods, place)
    controllers: tuple[WorkloadController[Any], ...] = (
        DeploymentController(informers.of(DEPLOYMENTS, as_=Deployment), sets, pods, place),
        ReplicasController("replicaset-controller", REPLICA_SETS, sets.informer, pods, place),
        ReplicasController("replication-controller", REPLICATION_CONTROLLERS, counted, pods, place),
        StatefulSetController(informers.of(STATEFUL_SETS, as_=StatefulSet), pods, revisions, place),
        DaemonSetController(
            informers.of(DAEMON_SETS, as_=DaemonSet),
            pods,
            revisions,
            informers.of(NODES, as_=Node),
            place,
        ),
        job_controller,
    )
    # The indexes come first, so that they contain a change before a controller handles it.
    tracked = TrackedPods(jobs, job_controller.owners, pods, place)
    manager.add(*(each.owners for each in controllers), pods, sets, revisions, *controllers, tracked)
    manager.add(CronJobController(informers.of(CRON_JOBS, as_=CronJob), jobs, place))
