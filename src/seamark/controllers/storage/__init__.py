"""Volumes for the claims of Pods.

- ``matching``: which volume a claim takes, and the volume that is made for it.  Pure
- ``binding_controller``: gives claims their volumes, and reclaims volumes whose claims are gone
- ``ephemeral_controller``: makes the claims that Pods describe among their volumes
- ``expansion_controller``: lets volumes grow to what their claims ask for
- ``protection_controller``: lets go of claims and volumes that are deleted, once nothing uses them
"""
