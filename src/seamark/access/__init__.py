"""How everyone but the API server sees the cluster.

- ``cluster``: the seam, Kubernetes' verbs as async Python
- ``kubeconfig`` (``kubeconfig_file``, ``credentials``): where the server is and who we are
- ``remote`` (over ``transport``): the seam over HTTPS, against any Kubernetes API server
- ``informer``: a local, indexed copy of what a reader needs, following the server; ``informers`` shares them
- ``labels``: inverted indexes of labels and selectors
- ``backoff``, ``ratelimit``, ``clock``: how long to wait before trying again, how fast to go on, and by whose time
- ``leader``: leader election on a Lease
- ``events`` (by the rules of ``correlation``): telling people what happened
"""
