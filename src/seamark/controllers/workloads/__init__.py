"""The workload controllers: ReplicaSets, ReplicationControllers, Deployments, StatefulSets and DaemonSets.

Modules marked pure decide; the ``…_controller`` modules follow the cluster and carry the decisions out.  Reading order:

- ``controllers``: creates all of them over shared indexes of Pods
- ``workload``: what all these controllers have in common
- ``owners``: which objects a workload owns, adopts and releases
- ``pods``: creates and deletes Pods, each exactly once
- ``templates``: makes Pods from a workload's template, and hashes templates
- ``shares``: turns numbers and percentages into numbers of Pods (pure)
- ``replicas``, ``replicaset_controller``: keep the number of Pods of ReplicaSets and ReplicationControllers
- ``deployment``: Deployments and their ReplicaSets as data (pure)
- ``rollout``, ``rollout_sizes``, ``rollout_status``: the next step of a rollout, the sizes and the status (pure)
- ``deployment_controller``: carries out these steps
- ``history``: keeps the earlier templates of StatefulSets and DaemonSets as ControllerRevisions
- ``statefulset``, ``statefulset_controller``: numbered Pods, created and updated in order
- ``daemonset``, ``daemonset_controller``: one Pod on every node that should have one
"""
