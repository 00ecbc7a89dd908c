"""Nodes that run Pods as ordinary processes, each Pod in a network of its own, without root and without containers.

- ``machine``: the helper process in which namespaces, sockets and processes are created
- ``network``: nodes and Pods as network namespaces, cables and routes
"""
