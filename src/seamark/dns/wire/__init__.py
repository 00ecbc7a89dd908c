"""DNS messages as bytes.

- ``message``: reads queries (also their EDNS options), and writes the parts that every reply has
- ``replies``: writes replies with records: in full, truncated, or in several forms
- ``transfer``: writes whole zones (AXFR, IXFR)
"""
