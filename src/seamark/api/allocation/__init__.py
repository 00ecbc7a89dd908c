"""Cluster IPs and node ports, reserved in the transaction of the object that takes them.

- ``reserve`` turns what a kind plans (``seamark.kinds.allocation``) into writes
- ``repair`` compares Services with the reservations of node ports now and then
"""
