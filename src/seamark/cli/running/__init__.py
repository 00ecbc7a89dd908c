"""The verbs that run Seamark, or parts of it.

- ``up``: everything in one process; ``apiserver``: the API server alone; ``serving`` is what the two share,
  ``memory`` how they treat their memory, ``worker`` a further process of either (``--workers``)
- ``limits``: what the system must allow every process that serves
- ``kubeconfig_merge``: the context that ``up --merge-kubeconfig`` adds to the user's kubeconfig
- ``run``: a program of this machine as a Deployment and a Service
- ``status``, ``logs``, ``down``, ``node``: look after the Seamark of a data directory
- ``demo``: plays the ``scenes`` of service discovery
- ``controllers``, ``dns``, ``proxy``: the same controllers, DNS and proxy for any Kubernetes API
"""
