"""Objects as Seamark's components read them: one frozen view per kind, decoded straight from the wire.

A view names the fields that some component decides by and drops the rest.  All components of a process use the same
view of a kind, so its informer decodes each event once for all of them.

Reading order:

- ``metadata``: what every object has, and what objects refer to each other by
- ``conditions``: status conditions, and how a controller changes one
- ``pod``: Pod
- ``service``: Service
- ``node``: Node, and the Lease that shows that it is alive
- ``endpoints``: Endpoints
- ``endpointslice``: EndpointSlice
- ``network``: IPAddress and ServiceCIDR
- ``networkpolicy``: NetworkPolicy
- ``namespace``: Namespace
- ``storage``: PersistentVolume, PersistentVolumeClaim and StorageClass
- ``devices``: ResourceClaim and ResourceClaimTemplate
- ``budget``: PodDisruptionBudget
- ``workloads``: what Deployments, ReplicaSets, StatefulSets and DaemonSets have in common

Endpoints and EndpointSlices are written back from their views.  Those views hold everything that an update would
otherwise remove.

These modules do not postpone their annotations (``from __future__``): msgspec would have to evaluate each of them from
its text, and a short command would spend a twentieth of its time on that.
"""
