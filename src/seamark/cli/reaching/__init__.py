"""The verbs that bring Services and Pods of any cluster to this machine.

- ``port_forward``: ``seamark port-forward``
- ``forward``: ``seamark forward``
- ``shell``: ``seamark shell``
- ``session``: what both need of a cluster
"""
