"""A service proxy: what kube-proxy does, by nftables or without any rights in userspace.

All decisions are ``rules.routing``'s.  What is here follows the cluster and carries the routes out.

- ``engine``: what an engine is: it is given routes and carries them out
- ``feed``: follows a cluster and gives an engine what changes
- ``userspace``: the engine that forwards by itself
"""
