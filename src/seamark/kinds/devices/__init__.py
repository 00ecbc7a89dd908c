"""Kinds of resource.k8s.io, by which Pods ask for devices.  They are stored; nothing here allocates devices.

- ``devices``: DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice
- ``claims``, ``slices``, ``capacities``: what is wrong with them
- ``parts``, ``expressions``: what these have in common; ``printed``: how messages show them
- ``admission``: which namespaces may have admin access to devices
"""
