"""Routes carried out by the kernel: nftables, told over netlink (``seamark.linux``).

Every decision that differs between Services is an *element* of a map or a set.  The rules themselves are few and fixed:
they look up where a packet goes, so its cost does not grow with the number of Services, and a change of a Service
changes elements only.  One netlink message carries a whole change, and the kernel carries it out as a whole or not at
all.

Reading order:

- ``expressions``: the expressions that rules are made of
- ``ruleset``: what a table holds, and the messages that turn what is there into what should be
- ``layout``: our two tables: which sets, chains and rules there are, for each family
- ``elements``: the elements that a Service's routes ask for
- ``kernel``: reads tables from the kernel and sends changes to it
- ``conntrack``: ends UDP flows to endpoints that are gone
- ``engine``: the engine: what changed since the last time, sent as one transaction
"""
