"""Kinds of flowcontrol.apiserver.k8s.io.  ``api.http.levels`` says what of them the server follows.

- ``flowschema``: FlowSchema
- ``prioritylevel``: PriorityLevelConfiguration
- ``defaults``: those that every cluster has
"""
