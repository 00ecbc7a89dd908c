"""The controllers: each watches objects, decides what should exist, and writes the difference.  ``runtime`` runs them.

- ``discovery``: writes the Endpoints and EndpointSlices of Services, in our own cluster or in any other
- ``probes``: keeps hand-made endpoints ready or not ready by health checks, in our own cluster or in any other
- ``workloads``: creates and deletes the Pods of Deployments, StatefulSets, DaemonSets and the like
- ``storage``: gives PersistentVolumeClaims their volumes
- ``devices``: gives Pods the ResourceClaims that templates describe, and takes claims back
- ``policy``: counts for ResourceQuotas, and says what PodDisruptionBudgets allow
- ``batch``: runs the Pods of Jobs, and makes the Jobs of CronJobs
- ``autoscaling``: follows what Pods use, for HorizontalPodAutoscalers
- ``housekeeping``: what else a cluster of our own needs: garbage collection, namespaces, addresses, Event expiry
- ``identity``: the tokens that are kept in Secrets, and CertificateSigningRequests
- ``settings``: the settings of all controllers

The decisions are pure functions: those that ``why`` and DNS share are in ``seamark.rules``, the others are here, in
modules of their own beside the controller that carries them out.
"""
