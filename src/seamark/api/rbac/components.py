"""Who Seamark's own parts are when roles decide: each is a ServiceAccount of kube-system with the rights it needs.

A part that does what a controller of Kubernetes does has the role of that controller
(:data:`seamark.api.rbac.controller_roles.CONTROLLERS`), and a role ``seamark:NAME`` for what it does besides.  Shared
informers read for all parts, as those of kube-controller-manager do.  The API server itself may do everything.
"""

from __future__ import annotations

import msgspec

from seamark.api.authorization import AUTHENTICATED, User, component
from seamark.api.rbac.controller_roles import CONTROLLERS
from seamark.api.rbac.lines import binding, role
from seamark.errors import Object

LABEL = {"app.kubernetes.io/part-of": "seamark"}


class Rights(msgspec.Struct, frozen=True):
    """A part's rights beyond those of the ServiceAccount it uses; that has the part's own name unless one is given."""

    rules: str = ""
    account: str = ""


PARTS = {
    "api-priority-and-fairness-config-consumer-v1": Rights(
        "patch | flowcontrol.apiserver.k8s.io | flowschemas/status", "flow-schema-status"
    ),
    "certificate-approver": Rights(account="certificate-controller"),
    "certificate-cleaner": Rights(account="certificate-controller"),
    "certificate-signer": Rights(account="certificate-controller"),
    "cronjob-controller": Rights("patch | batch | cronjobs/status"),
    "daemonset-controller": Rights("get | core | pods\npatch | apps | daemonsets/status", "daemon-set-controller"),
    "deployment-controller": Rights("patch | apps | deployments/status"),
    "dns": Rights(
        "list watch | core | namespaces pods services\nlist watch | discovery.k8s.io | endpointslices", "kube-dns"
    ),
    "event-expiry": Rights("delete | core | events"),
    "ipallocator-repair-controller": Rights("""
        get | core | services
        create delete get | networking.k8s.io | ipaddresses
        create patch | core | events
    """),
    "job-controller": Rights("get | core | pods\npatch | batch | jobs/status"),
    "leader-election": Rights("create get update | coordination.k8s.io | leases", "leader-election-controller"),
    "kubelets": Rights(
        """
        get | core | configmaps persistentvolumeclaims persistentvolumes pods secrets
        create | core | serviceaccounts/token
        create patch | core | events
        """,
        "seamark-kubelets",
    ),
    "nodes": Rights(
        """
        create delete patch read | core | nodes
        patch | core | nodes/status
        create delete patch read | coordination.k8s.io | leases
        list watch | core | namespaces
        delete read | core | pods
        create | core | pods/binding
        patch | core | pods/status
        patch | core | persistentvolumeclaims persistentvolumes
        create patch | core | events
        """,
        "simulated-nodes",
    ),
    "persistent-volume-binder": Rights("""
        patch | core | persistentvolumeclaims persistentvolumeclaims/status persistentvolumes persistentvolumes/status
    """),
    "portallocator-repair-controller": Rights("create patch | core | events"),
    "probes": Rights(
        "patch | core | endpoints\npatch | discovery.k8s.io | endpointslices\ncreate patch | core | events",
        "seamark-probes",
    ),
    "pvc-protection-controller": Rights("patch | core | persistentvolumeclaims persistentvolumes"),
    "replicaset-controller": Rights("get | core | pods\npatch | apps | replicasets/status"),
    "replication-controller": Rights("get | core | pods\npatch | core | replicationcontrollers/status"),
    "resourcequota-controller": Rights("get | core | resourcequotas"),
    "root-ca-certificate-publisher-controller": Rights("get | core | configmaps", "root-ca-cert-publisher"),
    "seamark-proxy": Rights("create patch | core | events"),
    "service-cidr-controller": Rights(account="service-cidrs-controller"),
    "service-lb-controller": Rights("patch | core | services", "service-controller"),
    "serviceaccount-controller": Rights(account="service-account-controller"),
    "statefulset-controller": Rights("patch | core | persistentvolumeclaims\npatch | apps | statefulsets/status"),
    "why": Rights(
        """
        list watch | core | endpoints nodes pods services
        list watch | discovery.k8s.io | endpointslices
        get list | core | namespaces
        list | core | replicationcontrollers
        list | apps | daemonsets deployments replicasets statefulsets
        list | batch | cronjobs jobs
        list | networking.k8s.io | ingressclasses ingresses networkpolicies servicecidrs
        create delete list patch | core | events
        """,
        "seamark-why",
    ),
    "tokens-controller": Rights("get update | core | secrets serviceaccounts\ndelete | core | secrets"),
}


def user_of(name: str) -> User:
    """The user that a part of this process is; LookupError for a part without rights."""
    if name == "apiserver":
        return component(name)
    if name == "informers":
        return User("system:kube-controller-manager", (AUTHENTICATED,))
    if name not in PARTS and name not in CONTROLLERS:
        raise LookupError(f"the component {name} has no rights: give it some in seamark.api.rbac.components")
    groups = ("system:serviceaccounts", "system:serviceaccounts:kube-system", AUTHENTICATED)
    return User(f"system:serviceaccount:kube-system:{_account(name)}", groups)


_MANAGERS = {"apiserver": "kube-apiserver", "nodes": "kubelet", "kubelets": "kubelet"}


def field_manager(name: str) -> str:
    """The name under which a part's changes of fields are kept: that of the program which makes them in Kubernetes."""
    return "kube-controller-manager" if _account(name) in CONTROLLERS else _MANAGERS.get(name, name)


def _account(name: str) -> str:
    return (PARTS[name].account if name in PARTS else "") or name


def cluster_roles() -> list[Object]:
    return [role(f"seamark:{name}", part.rules, LABEL) for name, part in PARTS.items() if part.rules]


def cluster_role_bindings() -> list[Object]:
    return [
        binding(f"seamark:{name}", f"seamark:{name}", (f"ServiceAccount {_account(name)}",), LABEL)
        for name, part in PARTS.items()
        if part.rules
    ]
