"""Nodes that run Pods as ordinary processes, each Pod in a network of its own, without root and without containers.

- ``machine``: the helper process in which namespaces, sockets and processes are created
- ``network``: nodes and Pods as network namespaces, cables and routes
- ``settings``: whether Pods run, and what images are
- ``spec``: what a kubelet reads of a Pod
- ``decisions``: which containers to start and to stop next, and when a Pod is over (pure)
- ``pod_status``: the status of a Pod from the records of its containers (pure)
- ``preparing``: what a container is given: image, variables, rights, file system, volumes
- ``network_files``: ``resolv.conf`` and ``hosts`` of a Pod (pure)
- ``streaming``: what goes into containers and comes out: input, output, logs, commands, connections
- ``probes``: when the probes of a container are asked, and what their answers mean for it
- ``checks``: carries out one action of a probe or a hook
- ``life``: carries out the decisions about one Pod
- ``disk``: evicts Pods that use too much of the disk, and removes images that no Pod uses
- ``hosting``: what all nodes share: the machine, its network, images, and what Pods refer to
- ``kubelet``: begins and ends the lives of Pods, and writes their status
"""
