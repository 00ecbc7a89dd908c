"""Claims of devices (``resource.k8s.io``), as far as they have to do with the lives of Pods.

- ``claims_controller``: makes the ResourceClaims for which Pods name a template, and reserves allocated ones for Pods
- ``release_controller``: takes claims back from Pods that are done, and deletes those that were made for them

Nothing here allocates devices: that is for a scheduler that knows drivers.
"""
