"""One process with all its parts: builds them, starts them, supervises them and stops them.

- ``composition``: the composition root: a ``Daemon`` gives each part what it needs, and starts and stops them in order
- ``controlling``: which controllers run beside the API server, and the election where several servers share a store
- ``attaching``: connects the API server, DNS and the proxy to the machine that Pods run on
- ``kubeconfig``: the file by which clients find the cluster
- ``requirements``: the store, files, keys and names that a start requires
- ``serving``: the API server of one process, as the settings say
- ``workers``: further processes that serve the API, for ``--workers``
- ``running``: runs a daemon until a signal stops it
"""

from seamark.daemon.composition import EVERYTHING, Component, Daemon
from seamark.daemon.requirements import StartError
from seamark.daemon.running import PartFailed, run

__all__ = ["EVERYTHING", "Component", "Daemon", "PartFailed", "StartError", "run"]
