"""Aggregated API servers: versions of groups that another server answers for, because an APIService says so.

- ``backends``: what an APIService says (which server, how to trust it), and whether that server is available
- ``reaching``: connections to such a server: where its Service leads, TLS both ways, one request
- ``relaying``: a client's request goes there and the answer comes back, piece by piece, upgrades included
- ``clusters``: the same for components of this process, as a ``Cluster``
- ``asking``: what such a server says it serves: discovery and OpenAPI
- ``following``: follows the APIServices: who answers for which version, and the ``Available`` conditions
- ``front_proxy``: the certificate by which those servers know that a request comes from here
"""
