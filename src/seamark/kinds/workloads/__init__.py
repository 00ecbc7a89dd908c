"""Kinds that make Pods from a template.

- ``workload``: the rules that all of them share
- ``deployment``: Deployment
- ``replicaset``: ReplicaSet and ReplicationController
- ``statefulset``: StatefulSet
- ``daemonset``: DaemonSet
- ``controllerrevision``: ControllerRevision
- ``podtemplate``: PodTemplate
- ``scale``: the Scale subresource
"""
