"""Expressions over Kubernetes' objects: what ``seamark.cel`` does not know of them.

- ``quantities``: the library of quantities
- ``formats``: the library of named formats, such as ``format.dns1123Label()``
- ``schema_types``: the type of a schema, and what names of fields are called in expressions
- ``shape_types``: the type of a built-in kind, from its shape
- ``environments``: an environment with all of Kubernetes' libraries
"""
