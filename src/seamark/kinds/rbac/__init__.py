"""The kinds that say who may do what.

- ``role``: Role and ClusterRole, lists of rules
- ``binding``: RoleBinding and ClusterRoleBinding, which give a role to users, groups and ServiceAccounts
- ``aggregation``: the rules of a ClusterRole that gathers those of others
"""
