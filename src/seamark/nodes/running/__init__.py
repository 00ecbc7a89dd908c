"""Nodes that run Pods as ordinary processes, each Pod in a network of its own, without root and without containers.

- ``machine``: the helper process in which namespaces, sockets and processes are created
- ``spec``: what a kubelet reads of a Pod
- ``environment``: the variables and the command line of a container (pure)
- ``images``: what an image name stands for on this machine
- ``file_systems``: the plan of a container's file system
- ``network``: nodes and Pods as network namespaces, cables and routes
"""
