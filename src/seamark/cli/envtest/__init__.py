"""A directory for ``KUBEBUILDER_ASSETS``: programs named as those that envtest starts, which start Seamark.

envtest (of controller-runtime) starts ``etcd`` and ``kube-apiserver`` from that directory, asks ``/health`` and
``/healthz`` until they answer, and ends them by SIGTERM.  It makes the certificates itself and says in flags where they
are.

- ``assets``: ``seamark envtest-assets DIR`` writes the directory
- ``flags``: from the flags of kube-apiserver to a configuration
- ``apiserver``: what ``kube-apiserver`` runs
- ``etcd``: what ``etcd`` runs: it says that it is healthy, and keeps nothing
"""
