"""Simulated nodes: Nodes without machines and Pods without processes; everything else is as in a real cluster.

- ``settings``: how many nodes, how large, how fast
- ``simulation``: creates all the parts below, and the scheduler
- ``registration``: creates, completes and removes the Nodes
- ``node_objects``: what a simulated Node contains (pure)
- ``sites``: gives each node its Pod ranges and its own addresses
- ``roster``: the simulated nodes that exist, and whether each is running
- ``control``: switches a node off and on, from any process
- ``heartbeats``: renews the Leases of nodes that are switched on
- ``lifecycle``: marks a node as not ready when its Lease is not renewed, and its Pods too
- ``evictions``: deletes Pods that do not tolerate a taint of their node
- ``orphans``: deletes Pods of nodes that no longer exist
- ``kubelet``: writes the status of Pods, and gives them addresses
- ``acceptance``: whether a node takes a Pod that was bound to it
- ``addresses``: the Pod addresses of one node, taken and free
- ``pods``: what the status of a Pod should be now, and when it changes next (pure)
"""
