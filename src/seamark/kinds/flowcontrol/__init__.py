"""Kinds of flowcontrol.apiserver.k8s.io: stored and validated.  Here users take turns without them.

- ``flowschema``: FlowSchema
- ``prioritylevel``: PriorityLevelConfiguration
"""
