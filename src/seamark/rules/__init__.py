"""What follows from objects: pure decisions, shared by the controllers, DNS, the simulated nodes and ``why``.

Nothing here reads or writes a cluster.  Reading order:

- ``objects``: one view per kind of object, which all components decode into
- ``membership``: whether a Pod is an endpoint of a Service, how, and why
- ``trigger_time``: the time of the change that endpoints are written for
- ``changes``: what a plan wants written
- ``subsets``: the one canonical form of the subsets of an Endpoints
- ``endpoints``: the Endpoints of a Service, decided from all of its Pods
- ``endpoints_state``: the same, kept Pod by Pod; this is what the controller runs
- ``hints``: which zones or nodes should use an endpoint
- ``slices``: the EndpointSlices of a Service, kept Pod by Pod
- ``mirroring``: EndpointSlices for Endpoints that a user wrote by hand
"""
