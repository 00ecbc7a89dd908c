"""``seamark why``, ``audit`` and ``resolve``: questions about a cluster, which change nothing unless told to.

- ``why``: why a Service has no endpoints; over :mod:`seamark.why`
- ``names``: ``why dns NAME``, the same for a name
- ``exporter``: ``why --serve``, metrics for Prometheus
- ``audit``: Endpoints and EndpointSlices that are orphaned, duplicated, stale or foreign
- ``resolve``: look a name up as a Pod would
"""
