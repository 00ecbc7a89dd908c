"""Kinds by which parts of a cluster register with the API server.

- ``apiservice``: APIService: which server answers for a version of a group
"""
