"""Kubernetes service discovery as a Python package.  *Run it. Test against it. Ask it why.*

The tour, from a request to an answer:

- ``api``: the API server: decodes ``POST …/services``, fills in defaults, allocates an address, validates and commits
- ``kinds``: what objects are: the rules of every kind, which ``api`` applies
- ``cel``: expressions in the Common Expression Language, which users put into definitions and policies
- ``store``: a revisioned key-value log on SQLite or etcd; ``api`` passes its changes on to every watcher
- ``access``: how the other packages see a cluster, this one or any other: verbs, informers, kubeconfig
- ``rules``: what follows from objects, for example whether a Pod is an endpoint of a Service, and why
- ``controllers``: write Endpoints and EndpointSlices by these rules, and run Deployments and the other workloads
- ``runtime``: the queue and the loop of every controller
- ``dns``: answers names directly from the cluster's state
- ``proxy``: routes connections to Services, as kube-proxy does
- ``forwarding``: brings Services of any cluster to this machine's loopback addresses
- ``nodes``: simulates nodes that run Pods, so that all of this works on one machine
- ``why``: explains the decisions of the rules to a person
- ``daemon``: builds, starts and stops all the parts in one process
- ``cli``: the command line
- ``testing``: the pytest plugin
- ``config``: all settings together, from flags, environment and a file; ``settings``: how a part declares its own
- ``linux``: what is asked of the Linux kernel itself: netlink, namespaces, mounts
- ``errors``: the errors of API requests
- ``metrics``: counters, gauges and histograms for Prometheus
- ``haste``: how what takes long leaves the event loop
- ``clock``: the time and timers, so that tests can replace them
- ``private_files``: files that only their owner may read
- ``temporary``: directories that go with their process, however it ends
- ``channel``: questions and answers between processes that work as one
- ``remembering``: what is remembered of texts that users send: nothing of long ones
- ``presence``: locks a data directory, and tells which process holds it

``docs/architecture.md`` has the picture and the reasons.
"""

__version__ = "0.1.0"
