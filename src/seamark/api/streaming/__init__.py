"""Subresources that lead into Pods: log, exec, attach, portforward, proxy.

- ``connecting``: finds the Pod or Service that a request is about, and who answers
- ``choosing``: which container, which run of it, which part of its log; the sentences of refusals (pure)
- ``sockets``: WebSockets whose messages tasks read and write
- ``commands``: exec and attach: the streams of a command as channels of a WebSocket
- ``log_messages``: a log as messages of a WebSocket
- ``forwarding``: port-forward: connections to ports of a Pod in one WebSocket
- ``proxying``: requests that a Pod or the endpoint of a Service answers
- ``kubelet_pages``: requests about a node that its kubelet would answer (pure)
"""
