"""Subresources that lead into Pods: log, exec, attach, portforward, proxy.

- ``connecting``: finds the Pod or Service that a request is about, and who answers
- ``choosing``: which container, which run of it, which part of its log; the sentences of refusals (pure)
- ``upgrading``: how a connection goes on after its request: as a WebSocket or in SPDY, and in which protocol
- ``sockets``: such connections, which tasks read and write at the pace of the slower side
- ``spdy_streams``: the streams of a SPDY session, in either kind of connection
- ``channels``: the channels of a command, as messages of a WebSocket or as streams of SPDY
- ``commands``: exec and attach: the conversation between a client and a command
- ``log_messages``: a log as messages of a WebSocket
- ``forwarding``: port-forward: connections to ports of a Pod in one connection of the client
- ``proxying``: requests that a Pod or the endpoint of a Service answers
- ``kubelet_pages``: requests about a node that its kubelet would answer (pure)
"""
