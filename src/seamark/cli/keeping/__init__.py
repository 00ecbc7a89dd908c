"""The verbs that keep a cluster's state safe, while it runs or not.

- ``stores``: which store file is meant
- ``archive``: the file of a backup: the store, the certificates, and checksums of both
- ``backup``, ``restore``: write and read one
- ``fsck``: check a store
"""
