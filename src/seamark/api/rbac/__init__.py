"""Rights by roles (RBAC), as in Kubernetes: what a user may do is what the roles bound to it allow, and nothing else.

- ``authorizer``: decides about requests; it follows the objects of a server's cache
- ``policy``: roles and bindings, indexed by who they are for
- ``rules``: what a single rule allows, whether rights cover others, how rules are written in messages
- ``nodes``: what the user of a node may do besides: what its own Pods need
- ``escalation``: refuses roles and bindings that give away rights which their writer does not have
- ``roles``: the roles and bindings that every cluster has; ``controller_roles``: those of them that controllers have
- ``components``: the roles and bindings of Seamark's own parts
- ``lines``: the short lines in which these three write them
- ``keeping``: makes them at the start and puts back what is missing
"""
