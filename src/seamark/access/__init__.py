"""How everyone but the API server sees the cluster.

- ``cluster``: the seam, Kubernetes' verbs as async Python
- ``kubeconfig``: where the server is and who we are
- ``remote``: the seam over HTTPS, against any Kubernetes API server
- ``informer``: a local, indexed copy of what a reader needs, following the server; ``informers`` shares them
- ``labels``: inverted indexes of labels and selectors
- ``backoff``: how long to wait before trying again
- ``leader``: leader election on a Lease
- ``events``: telling people what happened, with aggregation
"""
