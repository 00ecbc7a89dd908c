"""The roles and bindings that every cluster of Kubernetes 1.38 has, in the words of :mod:`~seamark.api.rbac.lines`."""

from __future__ import annotations

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

# The roles ``system:controller:NAME`` of the controllers, each bound to the ServiceAccount of its name.
CONTROLLERS = {
    "attachdetach-controller": """
        list watch | core | persistentvolumeclaims persistentvolumes
        read | core | nodes
        patch update | core | nodes/status
        list watch | core | pods
        events
        create delete read | storage.k8s.io | volumeattachments
        read | storage.k8s.io | csidrivers
        read | storage.k8s.io | csinodes
    """,
    "certificate-controller": """
        delete read | certificates.k8s.io | certificatesigningrequests
        update | certificates.k8s.io | certificatesigningrequests/approval certificatesigningrequests/status
        approve | certificates.k8s.io | signers | kubernetes.io/kube-apiserver-client-kubelet
        sign | certificates.k8s.io | signers | kubernetes.io/kube-apiserver-client \
kubernetes.io/kube-apiserver-client-kubelet kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown
        create | authorization.k8s.io | subjectaccessreviews
        events
    """,
    "clusterrole-aggregation-controller": """
        escalate read patch update | rbac.authorization.k8s.io | clusterroles
    """,
    "cronjob-controller": """
        read update | batch | cronjobs
        create delete read patch update | batch | jobs
        update | batch | cronjobs/status
        update | batch | cronjobs/finalizers
        delete list watch | core | pods
        events
    """,
    "daemon-set-controller": """
        read | apps extensions | daemonsets
        update | apps extensions | daemonsets/status
        update | apps extensions | daemonsets/finalizers
        list watch | core | nodes
        create delete list patch watch | core | pods
        create | core | pods/binding
        create delete read patch update | apps | controllerrevisions
        events
    """,
    "deployment-controller": """
        read update | apps extensions | deployments
        update | apps extensions | deployments/status
        update | apps extensions | deployments/finalizers
        create delete read patch update | apps extensions | replicasets
        read update | core | pods
        events
    """,
    "device-taint-eviction-controller": """
        delete read | core | pods
        patch update | core | pods/status
        read | resource.k8s.io | resourceclaims
        read | resource.k8s.io | resourceslices
        read | resource.k8s.io | deviceclasses
        events
    """,
    "disruption-controller": """
        read | apps extensions | deployments
        read | apps extensions | replicasets
        read | core | replicationcontrollers
        read | policy | poddisruptionbudgets
        read | apps | statefulsets
        update | policy | poddisruptionbudgets/status
        patch update | core | pods/status
        get | * | */scale
        events
    """,
    "endpoint-controller": """
        read | core | pods services
        create delete read update | core | endpoints
        create | core | endpoints/restricted
        events
    """,
    "endpointslice-controller": """
        read | core | nodes pods services
        update | core | services/finalizers
        create delete read update | discovery.k8s.io | endpointslices
        events
    """,
    "endpointslicemirroring-controller": """
        read | core | endpoints services
        update | core | services/finalizers
        update | core | endpoints/finalizers
        create delete read update | discovery.k8s.io | endpointslices
        events
    """,
    "ephemeral-volume-controller": """
        read | core | pods
        update | core | pods/finalizers
        create read | core | persistentvolumeclaims
        events
    """,
    "expand-controller": """
        read patch update | core | persistentvolumes
        patch update | core | persistentvolumeclaims/status
        read | core | persistentvolumeclaims
        events
    """,
    "generic-garbage-collector": """
        delete read patch update | * | *
        events
    """,
    "horizontal-pod-autoscaler": """
        read | autoscaling | horizontalpodautoscalers
        update | autoscaling | horizontalpodautoscalers/status
        get update | * | */scale
        list watch | core | pods
        list watch | metrics.k8s.io | pods
        read | custom.metrics.k8s.io | *
        read | external.metrics.k8s.io | *
        events
    """,
    "job-controller": """
        read patch update | batch | jobs
        update | batch | jobs/status
        update | batch | jobs/finalizers
        create delete list patch watch | core | pods
        events
    """,
    "kube-apiserver-serving-clustertrustbundle-publisher": """
        attest | certificates.k8s.io | signers | kubernetes.io/kube-apiserver-serving
        create delete list update watch | certificates.k8s.io | clustertrustbundles
        events
    """,
    "legacy-service-account-token-cleaner": """
        get | core | configmaps | kube-apiserver-legacy-service-account-token-tracking
        delete patch | core | secrets
    """,
    "namespace-controller": """
        delete read | core | namespaces
        update | core | namespaces/finalize namespaces/status
        delete deletecollection read | * | *
    """,
    "node-controller": """
        delete read patch update | core | nodes
        patch update | core | nodes/status
        patch update | core | pods/status
        delete read | core | pods
        events
    """,
    "persistent-volume-binder": """
        create delete read update | core | persistentvolumes
        update | core | persistentvolumes/status
        read update | core | persistentvolumeclaims
        update | core | persistentvolumeclaims/status
        create delete read | core | pods
        read | storage.k8s.io | storageclasses
        list watch | core | nodes
        events
        watch | core | events
    """,
    "pod-garbage-collector": """
        delete list watch | core | pods
        read | core | nodes
        patch | core | pods/status
    """,
    "podcertificaterequestcleaner": """
        delete read | certificates.k8s.io | podcertificaterequests
    """,
    "pv-protection-controller": """
        read update | core | persistentvolumes
        events
    """,
    "pvc-protection-controller": """
        read update | core | persistentvolumeclaims
        update | core | persistentvolumeclaims/status
        read | core | pods
        events
    """,
    "replicaset-controller": """
        read update | apps extensions | replicasets
        update | apps extensions | replicasets/status
        update | apps extensions | replicasets/finalizers
        create delete list patch watch | core | pods
        events
    """,
    "replication-controller": """
        read update | core | replicationcontrollers
        update | core | replicationcontrollers/status
        update | core | replicationcontrollers/finalizers
        create delete list patch watch | core | pods
        events
    """,
    "resource-claim-controller": """
        read | core | pods
        update | core | pods/finalizers
        create delete read | resource.k8s.io | resourceclaims
        patch update | resource.k8s.io | resourceclaims resourceclaims/status
        patch update | core | pods/status
        events
        patch update | resource.k8s.io | resourceclaims/binding
    """,
    "resourcequota-controller": """
        list watch | * | *
        update | core | resourcequotas/status
        events
    """,
    "root-ca-cert-publisher": """
        create update | core | configmaps
        events
    """,
    "route-controller": """
        list watch | core | nodes
        patch | core | nodes/status
        events
    """,
    "selinux-warning-controller": """
        events
        read | core | persistentvolumes
        read | core | persistentvolumeclaims
        read | core | pods
        read | storage.k8s.io | csidrivers
    """,
    "service-account-controller": """
        create | core | serviceaccounts
        events
    """,
    "service-cidrs-controller": """
        read patch update | networking.k8s.io | servicecidrs
        patch update | networking.k8s.io | servicecidrs/finalizers
        patch update | networking.k8s.io | servicecidrs/status
        read | networking.k8s.io | ipaddresses
        events
    """,
    "service-controller": """
        read | core | services
        patch update | core | services/status
        list watch | core | nodes
        events
    """,
    "statefulset-controller": """
        list watch | core | pods
        read | apps | statefulsets
        update | apps | statefulsets/status
        update | apps | statefulsets/finalizers
        create delete get patch update | core | pods
        create delete read patch update | apps | controllerrevisions
        create read | core | persistentvolumeclaims
        delete update | core | persistentvolumeclaims
        update | core | pods/finalizers
        events
    """,
    "storage-version-migrator-controller": """
        create list patch | * | *
        update | storagemigration.k8s.io | storageversionmigrations/status
    """,
    "ttl-after-finished-controller": """
        delete read | batch | jobs
        events
    """,
    "ttl-controller": """
        list patch update watch | core | nodes
        events
    """,
    "validatingadmissionpolicy-status-controller": """
        read | admissionregistration.k8s.io | validatingadmissionpolicies
        get patch update | admissionregistration.k8s.io | validatingadmissionpolicies/status
        events
    """,
    "volumeattributesclass-protection-controller": """
        read | core | persistentvolumeclaims
        read | core | persistentvolumes
        read update | storage.k8s.io | volumeattributesclasses
        events
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
