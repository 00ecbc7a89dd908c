"""Volumes for the claims of Pods, as :mod:`seamark.rules.volumes` decides.

- ``binding_controller``: gives claims their volumes, and reclaims volumes whose claims are gone
- ``ephemeral_controller``: makes the claims that Pods describe among their volumes
- ``expansion_controller``: lets volumes grow to what their claims ask for
- ``protection_controller``: lets go of claims and volumes that are deleted, once nothing uses them
"""
