"""The controllers of work that ends: Jobs and CronJobs.

Modules marked pure decide; the ``…_controller`` modules follow the cluster and carry the decisions out.  Reading order:

- ``job``: Jobs as data (pure)
- ``policies``: what a Job's policies say of a failed Pod, and of the indexes that succeeded (pure)
- ``tally``: what the Pods of a Job come to: active, failed, succeeded, by index (pure)
- ``job_plan``: what to do next: finish, delete Pods, create Pods, or wait (pure)
- ``books``: how finished Pods get into the status exactly once (pure)
- ``job_pods``: makes the Pods of a Job from its template (pure)
- ``job_controller``: carries this out
- ``tracked_pods``: frees Pods whose Job is gone from the finalizer by which they were counted
- ``cronjob``: CronJobs as data, and when they are due (pure)
- ``cronjob_controller``: makes their Jobs
"""
