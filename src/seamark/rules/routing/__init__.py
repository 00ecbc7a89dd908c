"""Where a connection to a Service goes, seen from one node: everything a service proxy decides (pure).

Services, EndpointSlices and the node itself lead to *routes*: plain data which says what each address, protocol and
port leads to.  Three readers use them and decide nothing on their own: the nftables engine, the userspace engine, and
``why svc/x --from node|pod|outside``.

Reading order:

- ``model``: the data: a frontend, a backend, a choice of backends with the reasons of those left out, a route
- ``endpoints``: the endpoints of a Service port in all slices: each once, and in which state
- ``selection``: which of them get the connections: readiness, traffic policies, hints
- ``frontends``: the addresses and ports a Service asks for, and which Service gets one that several ask for
- ``host_ports``: the ports of the node that Pods ask for by ``hostPort``
- ``decision``: one connection from one place: admitted or not, by which choice, with whose address
- ``table``: all routes, kept change by change; a change costs as much as the Service it is about
- ``surroundings``: this node, and on which of its addresses node ports answer
"""
