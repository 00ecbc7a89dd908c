"""The userspace engine: forwards connections and datagrams itself, for any user on any system.

Reading order:

- ``engine``: carries routes out: one socket per place, opened, changed and closed as Services change
- ``places``: where that is, and who decides about a connection there (pure)
- ``balancing``: which backend a connection gets; session affinity (pure)
- ``tcp``: accepts connections and limits them; ``link``: carries one of them: both directions, half-closed, back
  pressure, another backend if one does not answer
- ``udp``, ``flows``: flows: a client's datagrams to one backend and back, until there is silence (``flows`` is pure)
- ``sockets``, ``addresses``: opening sockets; the machine's addresses, and taking those of Services, as root
- ``settings``: how much it takes on
"""
