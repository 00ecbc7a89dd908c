"""``seamark why``, ``doctor``, ``audit`` and ``resolve``: questions, which change nothing in a cluster unless told to.

- ``why``: why a Service has no endpoints; over :mod:`seamark.why`
- ``names``: ``why dns NAME``, the same for a name
- ``exporter``: ``why --serve``, metrics for Prometheus
- ``doctor``: whether controllers, DNS, nodes and proxies are well
- ``audit``: Endpoints and EndpointSlices that are orphaned, duplicated, stale or foreign
- ``resolve``: look a name up as a Pod would
"""
