"""The engine over a real etcd, which several API servers may share.

- ``engine``: implements the ``Store`` protocol
- ``keys``: maps the store's keys to etcd's and back
- ``connection``: endpoints, TLS, log-in, and which failed calls may be retried
- ``watching``: a watch that reconnects without losing events
- ``messages``: the part of etcd's gRPC protocol that Seamark uses
"""

from seamark.store.etcd.engine import EtcdStore

__all__ = ["EtcdStore"]
