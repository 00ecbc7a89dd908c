"""SPDY/3.1, in which Kubernetes carries several streams of bytes in one connection.

Port-forwarding speaks it in both directions, as a client (:mod:`seamark.access.portforward`) and as a server; so do
commands in Pods, as a server (:mod:`seamark.api.streaming`).

- ``frames``: the frames of a session, from and to bytes (pure)
- ``dictionary``: the words that the headers of its streams are compressed by
"""
