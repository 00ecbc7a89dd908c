"""The store: a key-value log with revisions, the smallest part of etcd's model that an API server needs.

- ``protocol``: the interface that every engine implements, and the errors it raises
- ``opening``: turns a ``--store`` URL into an engine
- ``sqlite``: the embedded engine: one file
- ``etcd``: the engine over a real etcd, which several API servers can share
- ``relayed``: the engine of a process whose store is open in another process of this machine
- ``history``: compacts old history periodically; both engines use it
- ``wrapping``: what wrappers of a store derive from
- ``metered``: wraps a store and counts commits and batches for ``/metrics``

Only ``seamark.api`` talks to a store.
"""
