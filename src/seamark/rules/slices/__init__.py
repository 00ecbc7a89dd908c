"""The EndpointSlices of a Service.  Reading order:

- ``matching``: when two endpoints, or the ports of two slices, are the same
- ``objects``: how a slice is made for a Service, and when it is the Service's own
- ``packing``: which slice an endpoint goes into
- ``group``: the slices that offer the same ports, and what they should hold
- ``state``: all groups of a Service, kept Pod by Pod; its plan is what the controller writes
- ``planning``: the same plan from everything at once
"""
