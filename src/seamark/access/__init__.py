"""How controllers, DNS, nodes, ``why`` and the command line see a cluster.

- ``cluster``: the ``Cluster`` protocol: Kubernetes' verbs as async Python
- ``remote``: implements it over HTTPS, against any Kubernetes API server
- ``sending``: who asks, how often a request is sent again, and what a refusal means
- ``transport``: sends the requests of ``remote`` in an event loop, watches and WebSockets included
- ``blocking``: sends those of a command that asks a few questions, without an event loop
- ``kubeconfig``: finds the server and the credentials as kubectl does
- ``kubeconfig_file``: the format of kubeconfig files
- ``credentials``: tokens, certificates and exec plugins, renewed when they expire
- ``portforward``: connections to the ports of Pods, through the API server
- ``spdy``: the protocol in which Kubernetes carries several streams in one connection
- ``remote_command``: a command in a Pod, through the API server
- ``pod_streams``: what an API server asks of the kubelets of its own process: logs, commands, connections
- ``informer``: a local, indexed copy of one resource, kept up to date by a watch
- ``informers``: shares the informers of one process
- ``labels``: inverted indexes from selectors to objects and back
- ``events``: writes Kubernetes Events
- ``correlation``: decides which Events are written, counted or combined (pure)
- ``leader``: leader election on a Lease
- ``backoff``: growing, jittered delays between retries
- ``ratelimit``: a token bucket
- ``grpc_health``: asks a server for its health by gRPC
- ``status``: ``/health``, ``/ready`` and ``/metrics`` of a process
"""
