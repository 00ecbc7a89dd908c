"""How everyone but the API server sees the cluster.

- ``cluster``: the seam, Kubernetes' verbs as async Python
- ``kubeconfig``: where the server is and who we are
- ``remote``: the seam over HTTPS, against any Kubernetes API server
- ``informer``: a local, indexed, always current copy of what a reader needs
- ``labels``: inverted indexes of labels and selectors
- ``leader``: leader election on a Lease
- ``events``: telling people what happened, with aggregation
"""
