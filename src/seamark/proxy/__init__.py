"""A service proxy: what kube-proxy does, by nftables or without any rights in userspace.

All decisions are ``rules.routing``'s.  What is here follows the cluster and carries the routes out.

- ``engine``: what an engine is: it is given routes and carries them out
- ``feed``: follows a cluster and gives an engine what changes
- ``events``: Events about what cannot be served
- ``nftables``: the engine that has the kernel do it
- ``userspace``: the engine that forwards by itself
- ``settings``: the settings of ``seamark proxy``
- ``server``: ``seamark proxy``: an engine and a feed, with health and metrics
- ``health``: what load balancers and probes are told
- ``pages``: the small HTTP server for that
"""
