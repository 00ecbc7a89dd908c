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
- ``hooks``: what is asked of a container after its start and before its end
- ``checks``: carries out one action of a probe or a hook
- ``life``: carries out the decisions about one Pod
- ``host``: what the life of a Pod needs of its node
- ``home``: what all containers of a Pod share: its network, its directory, its volumes
- ``attempts``: starts that failed, and when each is tried again
- ``endings``: how containers are asked to end, and what is said of those that ended
- ``disk``: evicts Pods that use too much of the disk, and removes images that no Pod uses
- ``hosting``: the ``host`` of all nodes: the machine, its network, images, and what Pods refer to
- ``kubelet``: begins and ends the lives of Pods, and writes their status
"""
