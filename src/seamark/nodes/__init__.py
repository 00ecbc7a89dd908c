"""Simulated nodes: Nodes without machines, Pods without processes, everything else as in a cluster.

- ``simulation``: all of it together; ``settings``: how many nodes, how large, how fast
- ``registration`` (by ``node_objects``, ``sites``): the Nodes are there; ``roster``: which are ours
- ``heartbeats``, ``lifecycle``: Leases, and what becomes of a node whose Lease is not renewed
- ``schedule`` (by ``requests``, over ``occupancy``): which node a Pod goes to, pure;
  ``scheduler``: doing it
- ``pod_life`` (by ``orders``, ``containers``, ``pod_conditions``): what a Pod's status should be, pure; ``kubelet``:
  writing it, with ``addresses`` from the node's range
- ``evictions``, ``orphans``: Pods that a taint drives away, and Pods whose node is gone
- ``control``: switching nodes off and on from another process
- ``views``: the objects as all of these see them; ``work``: keys to be looked at, now or later
"""
