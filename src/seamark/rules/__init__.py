"""What follows from objects: pure decisions, shared by controllers, DNS, proxy, simulated nodes and ``why``.

Nothing here reads or writes a cluster.  Reading order:

- ``objects``: one view per kind of object, which all components decode into
- ``membership``: whether a Pod is an endpoint of a Service, how, and why
- ``changes``: what a plan asks for: objects to write, Events to record, and the time of the change behind them
- ``subsets``: the one canonical layout of the subsets of an Endpoints
- ``endpoints``: the Endpoints of a Service, kept Pod by Pod; its plan is what the controller writes
- ``hints``: which zones or nodes should use an endpoint
- ``slices``: the EndpointSlices of a Service, kept Pod by Pod; its plan is what the controller writes
- ``mirroring``: EndpointSlices for Endpoints that a user wrote by hand
- ``probing``: health checks of hand-made endpoints: what annotations ask for, and what follows from results
- ``container_probes``: what can be said about a probe of a container that is not ready
- ``isolation``: which connections NetworkPolicies let through
- ``placement``: on which nodes a Pod may run
- ``volumes``: which volume a claim takes, and the volume that is made for it
- ``routing``: where a connection to a Service goes, seen from one node
"""
