"""Cluster DNS: answers questions about a cluster's names directly from the cluster's state.

- ``config``: the settings
- ``server``: the DNS server of one process: connects all the parts below
- ``workers``: runs several processes on one port
- ``worker``: one of these processes
- ``sockets``: reads queries from UDP and TCP sockets
- ``ready``: a cache of complete replies; most queries are answered from it
- ``responder``: answers the others: from static records, the cluster's zones, or upstream resolvers
- ``wire``: reads queries and writes replies
- ``zone``: the cluster's names: which exist, which records they have, and why
- ``forwarding``: asks upstream resolvers about other names
- ``measures``: the metrics
- ``resolve``: resolves a name as a Pod does, for ``seamark resolve`` and ``seamark why``

A query goes from ``sockets`` through ``ready``, ``responder``, ``wire.message``, ``zone.answers`` and ``wire.replies``.
A change of the cluster goes through ``zone.feed`` into ``zone.state``, and ``ready`` drops the replies it makes stale.
"""
