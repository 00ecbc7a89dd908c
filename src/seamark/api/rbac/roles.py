"""The roles and bindings that every cluster of Kubernetes 1.38 has, in the words of :mod:`~seamark.api.rbac.lines`."""

from __future__ import annotations

from seamark.api.rbac.controller_roles import CONTROLLERS
from seamark.api.rbac.lines import binding, metadata, role, rules_of
from seamark.errors import Object

LABEL = {"kubernetes.io/bootstrapping": "rbac-defaults"}

_DISCOVERY = """
    get | /api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/
"""
_NODE = """
    create | authentication.k8s.io | tokenreviews
    create | authorization.k8s.io | localsubjectaccessreviews subjectaccessreviews
    read | core | services
    create read | core | nodes
    patch update | core | nodes/status
    patch update | core | nodes
    create patch update | core | events
    read | core | pods
    create delete | core | pods
    patch update | core | pods/status
    create | core | pods/eviction
    read | core | configmaps secrets
    get | core | persistentvolumeclaims persistentvolumes
    get | core | endpoints
    create read | certificates.k8s.io | certificatesigningrequests
    create delete get patch update | coordination.k8s.io | leases
    get | storage.k8s.io | volumeattachments
    create | core | serviceaccounts/token
    get patch update | core | persistentvolumeclaims/status
    read | storage.k8s.io | csidrivers
    create delete get patch update | storage.k8s.io | csinodes
    read | node.k8s.io | runtimeclasses
    get | resource.k8s.io | resourceclaims
    deletecollection | resource.k8s.io | resourceslices
    read | certificates.k8s.io | clustertrustbundles
    get | core | serviceaccounts
    create read | certificates.k8s.io | podcertificaterequests
"""

CLUSTER_ROLES = {
    "cluster-admin": """
        * | * | *
        * | *
    """,
    "system:aggregate-to-admin": """
        create | authorization.k8s.io | localsubjectaccessreviews
        read write | rbac.authorization.k8s.io | rolebindings roles
    """,
    "system:aggregate-to-edit": """
        read | core | pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy
        impersonate | core | serviceaccounts
        write | core | pods pods/attach pods/exec pods/portforward pods/proxy
        create | core | pods/eviction
        write | core | configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets \
serviceaccounts services services/proxy
        create | core | serviceaccounts/token
        write | core events.k8s.io | events
        write | apps | daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale \
statefulsets statefulsets/scale
        write | autoscaling | horizontalpodautoscalers
        write | batch | cronjobs jobs
        write | extensions | daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies \
replicasets replicasets/scale replicationcontrollers/scale
        write | policy | poddisruptionbudgets
        write | networking.k8s.io | ingresses networkpolicies
        read write | coordination.k8s.io | leases
        write | resource.k8s.io | resourceclaims resourceclaimtemplates
    """,
    "system:aggregate-to-view": """
        read | core | configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods \
replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status
        read | core | bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status \
resourcequotas resourcequotas/status
        read | core | namespaces
        read | core events.k8s.io | events
        read | discovery.k8s.io | endpointslices
        read | apps | controllerrevisions daemonsets daemonsets/status deployments deployments/scale \
deployments/status replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status
        read | autoscaling | horizontalpodautoscalers horizontalpodautoscalers/status
        read | batch | cronjobs cronjobs/status jobs jobs/status
        read | extensions | daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses \
ingresses/status networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale
        read | policy | poddisruptionbudgets poddisruptionbudgets/status
        read | networking.k8s.io | ingresses ingresses/status networkpolicies
        read | resource.k8s.io | resourceclaims resourceclaims/status resourceclaimtemplates
    """,
    "system:auth-delegator": """
        create | authentication.k8s.io | tokenreviews
        create | authorization.k8s.io | subjectaccessreviews
    """,
    "system:basic-user": """
        create | authorization.k8s.io | selfsubjectaccessreviews selfsubjectrulesreviews
        create | authentication.k8s.io | selfsubjectreviews
    """,
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient": """
        create | certificates.k8s.io | certificatesigningrequests/nodeclient
    """,
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": """
        create | certificates.k8s.io | certificatesigningrequests/selfnodeclient
    """,
    "system:certificates.k8s.io:kube-apiserver-client-approver": """
        approve | certificates.k8s.io | signers | kubernetes.io/kube-apiserver-client
    """,
    "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver": """
        approve | certificates.k8s.io | signers | kubernetes.io/kube-apiserver-client-kubelet
    """,
    "system:certificates.k8s.io:kubelet-serving-approver": """
        approve | certificates.k8s.io | signers | kubernetes.io/kubelet-serving
    """,
    "system:certificates.k8s.io:legacy-unknown-approver": """
        approve | certificates.k8s.io | signers | kubernetes.io/legacy-unknown
    """,
    "system:cluster-trust-bundle-discovery": """
        read | certificates.k8s.io | clustertrustbundles
    """,
    "system:discovery": _DISCOVERY,
    "system:heapster": """
        read | core | events namespaces nodes pods
        read | extensions | deployments
    """,
    "system:kube-aggregator": """
        read | core | endpoints services
    """,
    "system:kube-controller-manager": """
        events
        create | coordination.k8s.io | leases
        get update | coordination.k8s.io | leases | kube-controller-manager
        create | core | secrets serviceaccounts
        delete | core | secrets
        get | core | configmaps namespaces secrets serviceaccounts
        update | core | secrets serviceaccounts
        create | authentication.k8s.io | tokenreviews
        create | authorization.k8s.io | subjectaccessreviews
        list watch | * | *
        create | core | serviceaccounts/token
    """,
    "system:kube-dns": """
        list watch | core | endpoints services
    """,
    "system:kube-scheduler": """
        events
        create | coordination.k8s.io | leases
        get update | coordination.k8s.io | leases | kube-scheduler
        read | core | nodes
        delete read | core | pods
        create | core | bindings pods/binding
        patch update | core | pods/status
        read | core | replicationcontrollers services
        read | apps extensions | replicasets
        read | apps | statefulsets
        read | policy | poddisruptionbudgets
        read | core | persistentvolumeclaims persistentvolumes
        create | authentication.k8s.io | tokenreviews
        create | authorization.k8s.io | subjectaccessreviews
        read | storage.k8s.io | csinodes
        read | core | namespaces
        read | storage.k8s.io | csidrivers
        read | storage.k8s.io | csistoragecapacities
        read | storage.k8s.io | volumeattachments
        read | resource.k8s.io | deviceclasses
        read patch update | resource.k8s.io | resourceclaims
        patch update | resource.k8s.io | resourceclaims/status
        patch update | core | pods/finalizers
        read | resource.k8s.io | resourceslices
    """,
    "system:kubelet-api-admin": """
        read | core | nodes
        proxy | core | nodes
        * | core | nodes/configz nodes/healthz nodes/log nodes/metrics nodes/pods nodes/proxy nodes/stats
    """,
    "system:monitoring": """
        get | /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*
    """,
    "system:node": _NODE,
    "system:node-bootstrapper": """
        create read | certificates.k8s.io | certificatesigningrequests
    """,
    "system:node-problem-detector": """
        get | core | nodes
        patch | core | nodes/status
        events
    """,
    "system:node-proxier": """
        list watch | core | endpoints services
        read | core | nodes
        events
        list watch | discovery.k8s.io | endpointslices
        list watch | networking.k8s.io | servicecidrs
    """,
    "system:persistent-volume-provisioner": """
        create delete read | core | persistentvolumes
        read update | core | persistentvolumeclaims
        read | storage.k8s.io | storageclasses
        watch | core | events
        events
    """,
    "system:public-info-viewer": """
        get | /healthz /livez /readyz /version /version/
    """,
    "system:service-account-issuer-discovery": """
        get | /.well-known/openid-configuration /openid/v1/jwks
    """,
    "system:volume-scheduler": """
        read patch update | core | persistentvolumes
        read | storage.k8s.io | storageclasses
        read patch update | core | persistentvolumeclaims
    """,
}

# The subjects of the ClusterRoleBindings, which have the names of their roles.
CLUSTER_BINDINGS: dict[str, tuple[str, ...]] = {
    "cluster-admin": ("Group system:masters",),
    "system:basic-user": ("Group system:authenticated",),
    "system:cluster-trust-bundle-discovery": ("Group system:serviceaccounts",),
    "system:discovery": ("Group system:authenticated",),
    "system:kube-controller-manager": ("User system:kube-controller-manager",),
    "system:kube-dns": ("ServiceAccount kube-dns",),
    "system:kube-scheduler": ("User system:kube-scheduler",),
    "system:monitoring": ("Group system:monitoring",),
    "system:node": (),  # nodes get their rights by :mod:`seamark.api.rbac.nodes`
    "system:node-proxier": ("User system:kube-proxy",),
    "system:public-info-viewer": ("Group system:authenticated", "Group system:unauthenticated"),
    "system:service-account-issuer-discovery": ("Group system:serviceaccounts",),
    "system:volume-scheduler": ("User system:kube-scheduler",),
}

# Which roles gather which, by the label that the gathered ones have.
AGGREGATED = {
    "admin": "rbac.authorization.k8s.io/aggregate-to-admin",
    "edit": "rbac.authorization.k8s.io/aggregate-to-edit",
    "view": "rbac.authorization.k8s.io/aggregate-to-view",
}
GATHERED_BY = {
    "edit": "admin",
    "view": "edit",
    "system:aggregate-to-admin": "admin",
    "system:aggregate-to-edit": "edit",
    "system:aggregate-to-view": "view",
}

_LEADING = """
    create list update watch get | coordination.k8s.io | leases
    create list update watch get | coordination.k8s.io | leasecandidates
"""

# Roles in namespaces: the name, the rules, the name of the binding and its subjects.
ROLES: dict[str, tuple[tuple[str, str, str, tuple[str, ...]], ...]] = {
    "kube-system": (
        (
            "extension-apiserver-authentication-reader",
            "read | core | configmaps | extension-apiserver-authentication",
            "system::extension-apiserver-authentication-reader",
            ("User system:kube-controller-manager", "User system:kube-scheduler"),
        ),
        (
            "system::leader-locking-kube-controller-manager",
            _LEADING,
            "system::leader-locking-kube-controller-manager",
            (
                "User system:kube-controller-manager",
                "ServiceAccount kube-controller-manager",
                "ServiceAccount leader-election-controller",
            ),
        ),
        (
            "system::leader-locking-kube-scheduler",
            _LEADING,
            "system::leader-locking-kube-scheduler",
            ("User system:kube-scheduler", "ServiceAccount kube-scheduler"),
        ),
        (
            "system:controller:bootstrap-signer",
            "read | core | secrets",
            "system:controller:bootstrap-signer",
            ("ServiceAccount bootstrap-signer",),
        ),
        (
            "system:controller:cloud-provider",
            "create read | core | configmaps",
            "system:controller:cloud-provider",
            ("ServiceAccount cloud-provider",),
        ),
        (
            "system:controller:token-cleaner",
            "delete read | core | secrets\nevents",
            "system:controller:token-cleaner",
            ("ServiceAccount token-cleaner",),
        ),
    ),
    "kube-public": (
        (
            "system:controller:bootstrap-signer",
            "read | core | configmaps\nupdate | core | configmaps | cluster-info\nevents",
            "system:controller:bootstrap-signer",
            ("ServiceAccount bootstrap-signer",),
        ),
    ),
}

NODE_RULES = rules_of(_NODE)


def cluster_roles() -> list[Object]:
    made = [
        {
            "metadata": metadata(name, _labels(name)),
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]},
            "rules": None,
        }
        for name, label in AGGREGATED.items()
    ]
    made += [role(name, lines, _labels(name)) for name, lines in CLUSTER_ROLES.items()]
    made += [role(f"system:controller:{name}", lines, LABEL) for name, lines in CONTROLLERS.items()]
    return made


def _labels(name: str) -> dict[str, str]:
    gatherer = GATHERED_BY.get(name)
    return LABEL | ({AGGREGATED[gatherer]: "true"} if gatherer else {})


def cluster_role_bindings() -> list[Object]:
    made = [binding(name, name, subjects, LABEL) for name, subjects in CLUSTER_BINDINGS.items()]
    for name in CONTROLLERS:
        full = f"system:controller:{name}"
        made.append(binding(full, full, (f"ServiceAccount {name}",), LABEL))
    return made
