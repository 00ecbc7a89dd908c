"""What limits others: ResourceQuota, LimitRange, PodDisruptionBudget and PriorityClass, and what they do to writes.

- ``quota``, ``limit_range``, ``budget``, ``priority_class``: the kinds
- ``limits``: the step of admission that fills in and enforces LimitRanges
- ``usage``: what an object uses of a quota, and which quotas count it
- ``charging``: the step of admission that charges quotas, in the object's own transaction
- ``eviction``: whether the budgets of a Pod allow that it goes
- ``priority``: the step of admission that turns the class of a Pod into a number
"""
