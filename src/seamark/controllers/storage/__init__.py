"""Volumes for the claims of Pods.

- ``matching``: which volume a claim takes, and the volume that is made for it.  Pure
- ``binding_controller``: gives claims their volumes, and reclaims volumes whose claims are gone
- ``protection_controller``: lets go of claims and volumes that are deleted, once nothing uses them
"""
