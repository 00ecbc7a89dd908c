"""What can be wrong with a Service.  Each module but the first four has ``findings(case)``.  Reading order:

- ``near``: labels that a selector almost matches
- ``patient``: a Pod with all that is known of it, and the trouble it may be in
- ``containers``: what keeps the containers of a Pod from being ready
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
- ``exposing``: load balancers and Ingresses that do not lead to it
- ``policies``: NetworkPolicies that close it
- ``refused``: manifests that the API server would refuse
"""
