"""WHERE state lives: a revisioned key-value log, the smallest part of etcd's model that an API server needs.

- ``protocol``: the seam itself, and the errors it raises
- ``sqlite``: the embedded engine, one file
- ``history``: how long history is kept
- ``etcd``: the same over a real etcd, shared by several API servers
- ``opening``: a ``--store`` URL becomes an engine
- ``metered``: a store whose use is counted

Only ``seamark.api`` talks to a store.
"""
