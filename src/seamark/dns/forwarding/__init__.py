"""Forwarding: names outside the cluster's zones, answered by upstream resolvers.

- ``forward``: chooses the resolvers by zone, and asks only once for concurrent identical questions
- ``upstream``: one upstream resolver: how it is asked, and whether it is healthy
- ``cache``: their replies, kept for their TTL
"""
