"""What can be wrong with a Service.  Each module but the first two has ``findings(case)``.  Reading order:

- ``near``: labels that a selector almost matches
- ``pods``: why one Pod does not serve
- ``standing``: the Service itself: whether it is being deleted, and its cluster IPs
- ``external``: ExternalName Services
- ``selecting``: a selector that matches no Pod
- ``handmade``: Services without a selector, and the EndpointSlices that users wrote for them
- ``mirrored``: Endpoints that users wrote by hand, and whether they are mirrored
- ``probed``: hand-made members that health checks keep out
- ``strays``: Endpoints and slices of no Service, which may be meant for this one
- ``members``: the selected Pods that get no traffic
- ``porting``: ports that lead nowhere
- ``written``: what the controllers wrote, compared with what they should have written
- ``names``: DNS names
- ``traffic``: traffic policies and hints
- ``reaching``: what keeps proxies from serving a Service that has endpoints
"""
