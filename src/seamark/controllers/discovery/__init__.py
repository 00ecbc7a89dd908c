"""The three controllers that write the Endpoints and EndpointSlices of Services.

They only do the I/O; ``seamark.rules`` decides what should be written.  Reading order:

- ``discovery``: creates the three controllers over one set of informers
- ``members``: tracks which Pods each Service selects, and tells the controllers which Services a change affects
- ``endpoints_controller``: writes one Endpoints per Service, for clients that do not read EndpointSlices
- ``endpointslices_controller``: writes the EndpointSlices of every Service with a selector
- ``mirroring_controller``: writes EndpointSlices for Endpoints that a user wrote by hand
- ``slices``: reads and writes EndpointSlices for the last two, and remembers writes that informers do not show yet
- ``process``: runs the three controllers as a separate process, with leader election and status pages
"""
