"""Controllers of what limits others, for a cluster of our own.

- ``quotas``: counts anew what is used of ResourceQuotas when something goes or changes
- ``disruption``: what a PodDisruptionBudget allows at the moment (pure)
- ``budgets``: keeps the status of PodDisruptionBudgets
- ``stale_targets``: takes back that a Pod is about to go, if it does not
"""
