"""The verbs that keep a cluster's state safe, while it runs or not.

- ``stores``: which store file is meant
- ``archive``: the file of a backup: the store, the certificates, and checksums of both
- ``backup``, ``restore``: write and read one
- ``export``: objects as manifests; ``manifests``: which of them, and without what
- ``fsck``: check a store
- ``rotate``: a new key for tokens, a new token for the admin, or a new certificate authority
"""
