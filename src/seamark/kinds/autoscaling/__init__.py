"""HorizontalPodAutoscaler: how many Pods a workload has follows from what they are measured to do.

- ``autoscaler``: the kind in autoscaling/v2, as it is stored
- ``metrics``: the metrics it follows: validation, and how tables show them
- ``behaviour``: how fast it follows them: defaults and validation
- ``autoscaler_v1``: the same objects in the words of autoscaling/v1
- ``usage``: what nodes and Pods use, as ``metrics.k8s.io`` tells it
"""
