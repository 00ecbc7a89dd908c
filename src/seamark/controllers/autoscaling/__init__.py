"""HorizontalPodAutoscalers: how many Pods a workload has follows from what they are measured to use.

- ``autoscaler``: the views of an autoscaler and of measurements
- ``sizing``: how many replicas a measurement asks for.  Pure
- ``limits``: how far and how fast the number may change.  Pure
- ``proposals``: what one metric says about a workload
- ``measuring``: reads what the Pods of a workload use
- ``custom_metrics``: reads metrics of the custom and external APIs
- ``autoscaler_controller``: looks at every autoscaler each 15 seconds, scales its workload and writes its status
"""
