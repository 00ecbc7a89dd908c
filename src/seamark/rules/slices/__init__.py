"""The EndpointSlices of a Service.  Reading order:

- ``objects``: how a slice is made for a Service, and when two endpoints or two sets of ports are the same
- ``group``: the slices of one family that offer the same ports, and which of them a new endpoint goes into
- ``state``: all groups of a Service, kept Pod by Pod; its plan is what the controller writes
"""
