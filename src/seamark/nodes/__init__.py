"""Nodes and the scheduler, so that Pods run on one machine without containers.

- ``scheduling``: chooses a node for each Pod, as kube-scheduler does
- ``choosing``: which Pods run as processes, and which are simulated
- ``simulated``: Nodes without machines, with kubelets that write the status of Pods without running anything
- ``pod_conditions``: the conditions of a Pod, as both kinds of nodes report them (pure)
- ``resizing``: Pods whose resources are changed while they run (pure)
- ``good_news``: Events about Pods that do well, up to a rate
- ``pod_writes``: how kubelets write the status of a Pod
- ``running``: Pods as ordinary processes, each in a network of its own
"""
