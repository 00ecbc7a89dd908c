"""Names and numbers that Kubernetes has fixed and that more than one module needs: each is written here once.

Names that only one module reads stay in that module.
"""

from __future__ import annotations

KUBERNETES_MINOR = "38"  # of the version that this server is like

# --- labels ----------------------------------------------------------------------------------------

SERVICE_NAME_LABEL = "kubernetes.io/service-name"  # on an EndpointSlice: the Service it belongs to
SLICE_MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by"
SKIP_MIRROR_LABEL = "endpointslice.kubernetes.io/skip-mirror"
ADDRESS_MANAGED_BY_LABEL = "ipaddress.kubernetes.io/managed-by"
ENDPOINTS_MANAGED_BY_LABEL = "endpoints.kubernetes.io/managed-by"
HEADLESS_LABEL = "service.kubernetes.io/headless"
PROXY_NAME_LABEL = "service.kubernetes.io/service-proxy-name"  # the one proxy that should serve a Service

HOSTNAME_LABEL = "kubernetes.io/hostname"
ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
CONTROL_PLANE_LABELS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
JOB_UID_LABEL = "batch.kubernetes.io/controller-uid"
JOB_INDEX_LABEL = "batch.kubernetes.io/job-completion-index"  # also an annotation
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"
TEMPLATE_HASH_LABEL = "pod-template-hash"
REVISION_HASH_LABEL = "controller-revision-hash"

# --- values of the managed-by labels ---------------------------------------------------------------

SLICE_CONTROLLER = "endpointslice-controller.k8s.io"
MIRROR_CONTROLLER = "endpointslicemirroring-controller.k8s.io"
ENDPOINTS_CONTROLLER = "endpoint-controller"
ADDRESS_ALLOCATOR = "ipallocator.k8s.io"

# --- annotations -----------------------------------------------------------------------------------

TRIGGER_TIME_ANNOTATION = "endpoints.kubernetes.io/last-change-trigger-time"
OVER_CAPACITY_ANNOTATION = "endpoints.kubernetes.io/over-capacity"
LEADER_ANNOTATION = "control-plane.alpha.kubernetes.io/leader"
# kubectl's client-side apply keeps its last configuration here; its server-side apply takes over from that.
LAST_APPLIED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
TOPOLOGY_ANNOTATION = "service.kubernetes.io/topology-mode"
OLD_TOPOLOGY_ANNOTATION = "service.kubernetes.io/topology-aware-hints"

SIMULATED_ANNOTATION = "seamark.dev/simulated"  # on the Nodes that Seamark simulates
READINESS_ANNOTATION = "seamark.dev/ready"  # on Pods that such Nodes shall `never` make ready
# On a Pod as annotation, on a Node as label: `processes` or `simulated`.  A RuntimeClass says it as its handler.
HOW_PODS_ARE = "seamark.dev/pods"
STOPPED_ANNOTATION = "seamark.dev/stopped"  # on a simulated Node that a user has switched off

# --- taints ----------------------------------------------------------------------------------------

NOT_READY_TAINT = "node.kubernetes.io/not-ready"
UNREACHABLE_TAINT = "node.kubernetes.io/unreachable"
UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
DISK_PRESSURE_TAINT = "node.kubernetes.io/disk-pressure"
MEMORY_PRESSURE_TAINT = "node.kubernetes.io/memory-pressure"
PID_PRESSURE_TAINT = "node.kubernetes.io/pid-pressure"
NETWORK_UNAVAILABLE_TAINT = "node.kubernetes.io/network-unavailable"

KUBELET_PORT = 10250  # of a node; the proxy of the node uses it if a request names none

# --- words -----------------------------------------------------------------------------------------

TRAFFIC_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
FINISHED_PHASES = ("Succeeded", "Failed")

# --- limits ----------------------------------------------------------------------------------------

ENDPOINTS_PER_SLICE = 100  # that the EndpointSlice controller puts into one slice; the API allows 1000
ENDPOINTS_CAPACITY = 1000  # addresses in one Endpoints; the controller leaves out the rest
MIRRORED_ADDRESSES = 1000  # of one subset of hand-made Endpoints; the rest is not mirrored
MIRRORED_BYTES = 32 << 20  # of the slices that mirror one Endpoints, about; the rest is not mirrored

# The image that stands for the machine's own file system, for Pods that run as processes; `seamark run` uses it.
THIS_MACHINE = "seamark.dev/this-machine"
