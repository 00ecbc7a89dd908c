"""The kinds of ``batch/v1``: work that ends.

- ``job``: Job: defaults, the generated selector, what may change, the row
- ``job_spec``: what is wrong with the spec of a Job, also inside of a CronJob
- ``job_policies``: what is wrong with its policies for failure and success
- ``job_status``: what is wrong with its status
- ``indexes``: sets of indexes as text (``1,3-5,7``), for any number of them
- ``cronjob``: CronJob
- ``schedule``: cron expressions: parsed, and when they are due next
"""
