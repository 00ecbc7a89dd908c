"""The audit log: who asked for what, and what became of it, in Kubernetes' format and by its policy files.

- ``policy``: reads a policy file and decides how much is logged of a request (pure)
- ``events``: what is logged of a request at one stage of it (pure)
- ``log``: the file
- ``measuring`` counts answers, whether or not there is a log
"""
