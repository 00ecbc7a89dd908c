"""The cluster's names: which exist, which records they have, and why.  No sockets and no bytes.

- ``names``: the grammar of names: parses a name into what it could be the name of
- ``state``: the zone: Services, endpoints, Pods and namespaces, indexed by name and address, updated per change
- ``feed``: keeps the state in step with a cluster through informers
- ``lookup``: whether a name exists, what it points to, and why
- ``records``: questions and records
- ``answers``: the records to answer a question with
- ``static``: fixed names from the configuration
"""
