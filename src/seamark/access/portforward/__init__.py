"""Connections to the ports of Pods through the API server, as ``kubectl port-forward`` makes them.

The protocol is ``SPDY/3.1+portforward.k8s.io``: a WebSocket whose messages, joined, are a SPDY/3.1 session.  API
servers tunnel it since Kubernetes 1.30, and kubelets themselves since 1.36.

- ``spdy``: the frames of SPDY, from and to bytes (pure); ``dictionary``: the words that its headers are compressed by
- ``tunnel``: one such WebSocket to one Pod, which carries one connection at a time
- ``tunnels``: the tunnels of one process; an idle one carries the next connection to its Pod
"""
