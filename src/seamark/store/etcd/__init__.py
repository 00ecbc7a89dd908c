"""The engine over a real etcd, which several API servers may share.

- ``engine``: the store as the rest of Seamark sees it
- ``keys``: where in etcd's key space a store lives
- ``connection``: endpoints, TLS, log-in, and which failures may be tried again
- ``watching``: a watch that survives its connection
- ``messages``: the part of etcd's protocol that is used
"""

from seamark.store.etcd.engine import EtcdStore

__all__ = ["EtcdStore"]
