"""Admission policies: rules in CEL that writes have to satisfy, or that edit them.

- ``mutating`` is the step of admission that edits objects as MutatingAdmissionPolicies say
- ``plugin`` is the step of admission: which policies and bindings look at a request, and what follows from them
- ``policy``: a policy and a binding as they are evaluated, compiled once
- ``given``: what expressions are given of a request: the object, the request, the namespace, the authorizer
- ``params``: the objects that a binding names as the parameters of its policy
- ``rights``: who may name parameters, those who may read them
"""
