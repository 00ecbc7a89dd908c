"""Service, and the kinds around it.

- ``service``: Service: the kind, its warnings and its row
- ``types``: the types of Services: which fields each type uses
- ``defaults``: defaults of a Service, and values that an update keeps
- ``families``: IP families and cluster IPs
- ``allocation``: which cluster IPs and node ports a Service takes and frees; ``bands``: how a free one is found
- ``validation``: validation of Services
- ``endpoints``: Endpoints
- ``endpointslice``: EndpointSlice
- ``ipaddress``: IPAddress
- ``servicecidr``: ServiceCIDR
"""
