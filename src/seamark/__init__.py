"""Kubernetes service discovery as a Python package.  *Run it. Test against it. Ask it why.*

The tour, from a request to an answer:

- :mod:`seamark.api` takes ``POST …/services``: parses, defaults, allocates an address, validates (by the rules of
  :mod:`seamark.kinds`) and commits to
- :mod:`seamark.store`, a revisioned key-value log on SQLite or etcd, whose changes flow back into the API server's
  memory and on to every watcher.
- :mod:`seamark.access` is how everyone else sees a cluster, this one or any other: the verbs, informers, kubeconfig.
- :mod:`seamark.rules.membership` decides whether a Pod is an endpoint of a Service, and why;
- :mod:`seamark.controllers` write Endpoints and EndpointSlices by it, and run what feeds Services: Deployments and the
  rest;
- :mod:`seamark.dns` answers names straight from that state;
- :mod:`seamark.why` shows the same decisions to a person.
- :mod:`seamark.nodes` pretends to run Pods, so that all of it works on one machine.

:mod:`seamark.daemon` composes them, :mod:`seamark.cli` is the command line, :mod:`seamark.testing` the pytest plugin.
``docs/architecture.md`` has the picture and the reasons.
"""

__version__ = "0.1.0"
