"""What limits others: ResourceQuota (``quota``), LimitRange (``limit_range``), PodDisruptionBudget (``budget``) and
PriorityClass (``priority_class``)."""
