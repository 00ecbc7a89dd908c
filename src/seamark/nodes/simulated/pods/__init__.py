"""The Pods of simulated nodes: which status each should have now, and when that changes next.  All of it is pure.

- ``life``: the status of a Pod that should run, one step after the other
- ``stopping``: the status of a Pod that is being deleted
- ``steps``: what a step is given and what comes of it, and where another process left off
- ``timing``: when containers end by themselves and when they are ready
- ``orders``: annotations that tell the simulated kubelet what to do with a Pod, for example to fail
- ``commands``: how containers end by their command, where it tells: ``sleep 300``, ``exit 1``
- ``containers``: the status of one container, and how it changes
"""
