"""Connections to the ports of Pods through the API server, as ``kubectl port-forward`` makes them.

The protocol is ``SPDY/3.1+portforward.k8s.io``: a WebSocket whose messages, joined, are a SPDY/3.1 session
(:mod:`seamark.access.spdy`).  API servers tunnel it since Kubernetes 1.30, and kubelets themselves since 1.36.

- ``tunnel``: one such WebSocket to one Pod, which carries one connection at a time
- ``tunnels``: the tunnels of one process; an idle one carries the next connection to its Pod
"""
