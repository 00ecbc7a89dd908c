"""Kinds of networking.k8s.io that other parts of a cluster act on: here they are stored, validated and shown.

- ``ingress``: Ingress
- ``ingressclass``: IngressClass, and the admission that gives an Ingress the default class
- ``networkpolicy``: NetworkPolicy
"""
