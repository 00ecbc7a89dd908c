"""The stable reason codes of ``why``: what can be wrong, one code each.

A code never changes its meaning and is never reused.  Within a family the more specific codes come before the more
general ones, as an operator would name them.  ``docs/why.md`` lists them all.
"""

from __future__ import annotations

from enum import Enum


class Family(Enum):
    """Groups of causes.  A cause that makes others irrelevant comes before them."""

    OBJECT = "the Service itself"
    EXTERNAL = "ExternalName"
    SELECTOR = "the selector"
    HAND_MADE = "hand-made endpoints"
    FAMILIES = "addresses and families"
    PODS = "Pods"
    PORTS = "ports"
    BOOKKEEPING = "what the controllers wrote"
    NAMES = "DNS names"
    POLICIES = "traffic policies"
    REACH = "ways to it"
    HINTS = "hints"
    RANGES = "address ranges"


class Code(Enum):
    """A reason code, with its family and its meaning in a sentence."""

    family: Family
    about: str

    def __new__(cls, value: str, family: Family, about: str) -> Code:
        code = object.__new__(cls)
        code._value_ = value
        code.family = family
        code.about = about
        return code

    # --- the Service itself
    SERVICE_NOT_FOUND = "ServiceNotFound", Family.OBJECT, "there is no such Service"
    POD_NOT_FOUND = "PodNotFound", Family.OBJECT, "there is no such Pod"
    NAME_NOT_FOUND = "NameNotFound", Family.OBJECT, "the DNS name is not found anywhere on the search path"
    NAMESPACE_TERMINATING = (
        "NamespaceTerminating",
        Family.OBJECT,
        "the namespace is being deleted, nothing new is made in it",
    )
    SERVICE_TERMINATING = "ServiceTerminating", Family.OBJECT, "the Service is being deleted and waits for a finalizer"
    MANIFEST_REFUSED = "ManifestRefused", Family.OBJECT, "the API server would refuse a manifest"
    # --- ExternalName
    EXTERNAL_NAME_IS_ADDRESS = (
        "ExternalNameIsAddress",
        Family.EXTERNAL,
        "externalName is an IP address, DNS cannot alias that",
    )
    EXTERNAL_NAME_LOOP = "ExternalNameLoop", Family.EXTERNAL, "externalName leads back to the Service itself"
    EXTERNAL_NAME_TARGET_MISSING = (
        "ExternalNameTargetMissing",
        Family.EXTERNAL,
        "externalName names a Service that does not exist",
    )
    EXTERNAL_NAME_TARGET_EMPTY = (
        "ExternalNameTargetEmpty",
        Family.EXTERNAL,
        "externalName names a Service that has no ready endpoint",
    )
    EXTERNAL_NAME_IGNORES_SELECTOR = (
        "ExternalNameIgnoresSelector",
        Family.EXTERNAL,
        "an ExternalName Service has a selector, which does nothing",
    )
    EXTERNAL_NAME_LEFTOVERS = (
        "ExternalNameLeftovers",
        Family.EXTERNAL,
        "endpoints are left over from before it became ExternalName",
    )
    # --- the selector
    SELECTOR_VALUE_TYPO = (
        "SelectorValueTypo",
        Family.SELECTOR,
        "the selector's value is a typo away from a label Pods have",
    )
    SELECTOR_KEY_TYPO = (
        "SelectorKeyTypo",
        Family.SELECTOR,
        "the selector's key is a typo away from a label key Pods have",
    )
    SELECTOR_OTHER_KEY = "SelectorOtherKey", Family.SELECTOR, "Pods have the value under another key"
    SELECTOR_ONE_LABEL_OFF = "SelectorOneLabelOff", Family.SELECTOR, "Pods match all of the selector but one label"
    LABELS_ON_WORKLOAD_ONLY = (
        "LabelsOnWorkloadOnly",
        Family.SELECTOR,
        "the selector matches a workload's own labels, but not those of its Pods",
    )
    WORKLOAD_SCALED_TO_ZERO = "WorkloadScaledToZero", Family.SELECTOR, "the workload that would match has no replicas"
    WORKLOAD_CANNOT_CREATE_PODS = (
        "WorkloadCannotCreatePods",
        Family.SELECTOR,
        "the workload that would match fails to create Pods",
    )
    WORKLOAD_WITHOUT_PODS = "WorkloadWithoutPods", Family.SELECTOR, "the workload that would match has no Pods yet"
    PODS_IN_OTHER_NAMESPACE = (
        "PodsInOtherNamespace",
        Family.SELECTOR,
        "the Pods it would select are in another namespace",
    )
    SELECTOR_MATCHES_NOTHING = "SelectorMatchesNothing", Family.SELECTOR, "no Pod matches the selector, or comes close"
    POD_NOT_SELECTED = "PodNotSelected", Family.SELECTOR, "no Service selects the Pod"
    # --- hand-made endpoints
    SLICE_WITHOUT_SERVICE_NAME = (
        "SliceWithoutServiceName",
        Family.HAND_MADE,
        "a hand-made EndpointSlice lacks the label kubernetes.io/service-name",
    )
    SLICE_FOR_OTHER_SERVICE = (
        "SliceForOtherService",
        Family.HAND_MADE,
        "a hand-made EndpointSlice names a Service that does not exist",
    )
    SLICE_MANAGED_BY_CONTROLLER = (
        "SliceManagedByController",
        Family.HAND_MADE,
        "a hand-made EndpointSlice claims to be a controller's",
    )
    SLICE_OF_OTHER_FAMILY = (
        "SliceOfOtherFamily",
        Family.HAND_MADE,
        "an EndpointSlice is of an address type the Service does not use",
    )
    SLICE_PORT_MISMATCH = (
        "SlicePortMismatch",
        Family.HAND_MADE,
        "an EndpointSlice's ports have none of the Service's port names",
    )
    ENDPOINTS_PORT_MISMATCH = (
        "EndpointsPortMismatch",
        Family.HAND_MADE,
        "the Endpoints' ports have none of the Service's port names",
    )
    MIRRORING_SKIPPED_BY_LABEL = (
        "MirroringSkippedByLabel",
        Family.HAND_MADE,
        "Endpoints are not mirrored: the skip-mirror label",
    )
    MIRRORING_SKIPPED_FOR_LEADER = (
        "MirroringSkippedForLeader",
        Family.HAND_MADE,
        "Endpoints are not mirrored: a leader election's annotation",
    )
    ENDPOINTS_INVALID_ADDRESS = (
        "EndpointsInvalidAddress",
        Family.HAND_MADE,
        "Endpoints have addresses that are none, they are not mirrored",
    )
    ENDPOINTS_TOO_MANY_TO_MIRROR = (
        "EndpointsTooManyToMirror",
        Family.HAND_MADE,
        "more than 1000 addresses in one subset, the rest are not mirrored",
    )
    ENDPOINTS_NAMED_OTHERWISE = (
        "EndpointsNamedOtherwise",
        Family.HAND_MADE,
        "Endpoints exist under a name that is not the Service's",
    )
    ENDPOINTS_IN_OTHER_NAMESPACE = (
        "EndpointsInOtherNamespace",
        Family.HAND_MADE,
        "the Endpoints or EndpointSlice written for it are in another namespace",
    )
    ENDPOINTS_TARGET_GONE = (
        "EndpointsTargetGone",
        Family.HAND_MADE,
        "hand-made endpoints point at Pods that do not exist any more",
    )
    ENDPOINTS_NOT_MIRRORED = (
        "EndpointsNotMirrored",
        Family.HAND_MADE,
        "Endpoints and their mirrored EndpointSlices disagree",
    )
    ENDPOINT_IS_CLUSTER_IP = (
        "EndpointIsClusterIP",
        Family.HAND_MADE,
        "a hand-made endpoint is the cluster IP of a Service, not of a server",
    )
    FOREIGN_SLICE = (
        "ForeignSlice",
        Family.HAND_MADE,
        "a hand-made EndpointSlice beside the controller's sends part of the traffic elsewhere",
    )
    PROBE_INVALID = (
        "ProbeInvalid",
        Family.HAND_MADE,
        "the annotation for health checks is not valid, nothing is checked",
    )
    PROBE_KEEPS_OUT = "ProbeKeepsOut", Family.HAND_MADE, "a health check keeps hand-made addresses out"
    ENDPOINTS_NOT_READY = "EndpointsNotReady", Family.HAND_MADE, "every hand-made address is marked not ready"
    ENDPOINTS_EMPTY = "EndpointsEmpty", Family.HAND_MADE, "the hand-made Endpoints or slices hold no address"
    SELECTORLESS_WITHOUT_ENDPOINTS = (
        "SelectorlessWithoutEndpoints",
        Family.HAND_MADE,
        "no selector, and no endpoints were written for it",
    )
    LEFTOVER_SLICES = (
        "LeftoverSlices",
        Family.HAND_MADE,
        "the controller's slices are left over from before the selector was removed",
    )
    # --- addresses and families
    NO_ADDRESS_OF_FAMILY = "NoAddressOfFamily", Family.FAMILIES, "Pods have no address of the Service's family"
    SECOND_FAMILY_EMPTY = "SecondFamilyEmpty", Family.FAMILIES, "one family of a dual-stack Service has no endpoints"
    # --- Pods
    POD_EVICTED = "PodEvicted", Family.PODS, "the Pod was evicted"
    POD_FINISHED = "PodFinished", Family.PODS, "the Pod has ended, and will not run again"
    POD_TERMINATING = "PodTerminating", Family.PODS, "the Pod is being deleted"
    POD_UNSCHEDULABLE = "PodUnschedulable", Family.PODS, "no node can take the Pod"
    POD_SCHEDULING_GATED = "PodSchedulingGated", Family.PODS, "the Pod waits for a scheduling gate"
    SCHEDULER_MISSING = (
        "SchedulerMissing",
        Family.PODS,
        "the Pod waits for a scheduler of another name, which has said nothing",
    )
    POD_NOT_SCHEDULED = "PodNotScheduled", Family.PODS, "the Pod has no node yet"
    NODE_MISSING = "NodeMissing", Family.PODS, "the Pod's node does not exist"
    NODE_NOT_READY = "NodeNotReady", Family.PODS, "the Pod's node is not ready"
    INIT_CONTAINER_FAILING = "InitContainerFailing", Family.PODS, "an init container fails, so the others never start"
    INIT_CONTAINER_RUNNING = "InitContainerRunning", Family.PODS, "an init container is still at work"
    IMAGE_PULL_FAILED = "ImagePullFailed", Family.PODS, "a container's image cannot be pulled"
    CONTAINER_CONFIG_ERROR = (
        "ContainerConfigError",
        Family.PODS,
        "a container cannot be configured; often a ConfigMap, Secret or key is missing",
    )
    CONTAINER_START_ERROR = "ContainerStartError", Family.PODS, "a container cannot be started"
    CONTAINER_OUT_OF_MEMORY = "ContainerOutOfMemory", Family.PODS, "a container is killed for using too much memory"
    CONTAINER_CRASHING = "ContainerCrashing", Family.PODS, "a container starts and ends again and again"
    CONTAINER_ENDED = "ContainerEnded", Family.PODS, "a container has ended while others run"
    SIDECAR_NOT_STARTED = (
        "SidecarNotStarted",
        Family.PODS,
        "a sidecar among the init containers has not started, so the others wait",
    )
    VOLUME_NOT_MOUNTED = "VolumeNotMounted", Family.PODS, "a volume of the Pod cannot be mounted, as an Event says"
    POD_NETWORK_FAILED = (
        "PodNetworkFailed",
        Family.PODS,
        "the Pod's sandbox or network cannot be set up, as an Event says",
    )
    LIVENESS_PROBE_FAILING = (
        "LivenessProbeFailing",
        Family.PODS,
        "a container is killed because its liveness probe fails, as an Event says",
    )
    STARTUP_PROBE_FAILING = "StartupProbeFailing", Family.PODS, "a container's startup probe has not succeeded"
    READINESS_PROBE_FAILING = "ReadinessProbeFailing", Family.PODS, "a container's readiness probe fails"
    PROBE_PENDING = "ProbePending", Family.PODS, "a probe may not have been asked yet, or not often enough to fail"
    READINESS_GATE_NOT_MET = "ReadinessGateNotMet", Family.PODS, "a readiness gate's condition is not True"
    POD_STARTING = "PodStarting", Family.PODS, "the Pod is being started"
    POD_HAS_NO_ADDRESS = "PodHasNoAddress", Family.PODS, "the Pod has no address yet"
    POD_NOT_REPORTED = "PodNotReported", Family.PODS, "the kubelet has not reported whether the Pod is ready"
    POD_STATUS_STUCK = (
        "PodStatusStuck",
        Family.PODS,
        "the Pod is not ready although all of its containers are",
    )
    POD_NOT_READY = "PodNotReady", Family.PODS, "the Pod is not ready"
    PUBLISHED_NOT_READY = (
        "PublishedNotReady",
        Family.PODS,
        "publishNotReadyAddresses sends traffic to Pods that are not ready",
    )
    # --- ports
    SERVICE_WITHOUT_PORTS = "ServiceWithoutPorts", Family.PORTS, "a Service with a cluster IP has no ports"
    TARGET_PORT_PROTOCOL_MISMATCH = "TargetPortProtocolMismatch", Family.PORTS, "the port exists, for another protocol"
    TARGET_PORT_NAME_NOT_FOUND = "TargetPortNameNotFound", Family.PORTS, "no container declares a port of that name"
    TARGET_PORT_NOT_DECLARED = (
        "TargetPortNotDeclared",
        Family.PORTS,
        "containers declare ports, but not the one it sends to",
    )
    SELECTOR_TAKES_OTHERS = (
        "SelectorTakesOthers",
        Family.PORTS,
        "the selector also takes Pods of another workload, which do not declare the port that the others do",
    )
    # --- what the controllers wrote
    CONTROLLER_NOT_RUNNING = "ControllerNotRunning", Family.BOOKKEEPING, "no controller keeps the endpoints current"
    ENDPOINT_SLICES_EDITED = (
        "EndpointSlicesEdited",
        Family.BOOKKEEPING,
        "EndpointSlices were edited by hand and not repaired",
    )
    ENDPOINTS_EDITED = "EndpointsEdited", Family.BOOKKEEPING, "the controller's Endpoints were edited by hand"
    ENDPOINTS_STALE = (
        "EndpointsStale",
        Family.BOOKKEEPING,
        "Endpoints and EndpointSlices disagree, Endpoints are behind",
    )
    ENDPOINTS_OVER_CAPACITY = (
        "EndpointsOverCapacity",
        Family.BOOKKEEPING,
        "more than 1000 addresses, Endpoints are truncated",
    )
    # --- DNS names
    SUBDOMAIN_MISMATCH = (
        "SubdomainMismatch",
        Family.NAMES,
        "Pods' subdomain names no Service, so they have no names of their own",
    )
    # --- traffic policies
    INTERNAL_LOCAL_WITHOUT_ENDPOINT = (
        "InternalLocalWithoutEndpoint",
        Family.POLICIES,
        "internalTrafficPolicy Local, and nodes without a ready Pod",
    )
    EXTERNAL_LOCAL_WITHOUT_ENDPOINT = (
        "ExternalLocalWithoutEndpoint",
        Family.POLICIES,
        "externalTrafficPolicy Local, and nodes without a ready Pod",
    )
    # --- ways to it
    NOT_PROXIED = "NotProxied", Family.REACH, "a label on the Service makes proxies leave it alone"
    ADDRESS_TAKEN = "AddressTaken", Family.REACH, "another Service gets what comes to one of its addresses"
    NODE_PORT_NOT_SERVED = (
        "NodePortNotServed",
        Family.REACH,
        "a proxy could not serve one of its ports, as an Event says, for example because another program has it",
    )
    SOURCE_RANGES_EXCLUDE = (
        "SourceRangesExclude",
        Family.REACH,
        "loadBalancerSourceRanges keep out the client that was asked about",
    )
    PORT_NOT_OFFERED = "PortNotOffered", Family.REACH, "the Service has no such port as was asked about"
    NOT_EXPOSED = "NotExposed", Family.REACH, "nothing leads to the Service from outside the cluster"
    POLICY_CLOSES_PORT = (
        "PolicyClosesPort",
        Family.REACH,
        "NetworkPolicies let nothing in on a port it sends to",
    )
    POLICY_KEEPS_OUT = (
        "PolicyKeepsOut",
        Family.REACH,
        "NetworkPolicies keep out the client that was asked about",
    )
    POLICY_KEEPS_IN = (
        "PolicyKeepsIn",
        Family.REACH,
        "NetworkPolicies do not let the client out to it",
    )
    POLICY_CLOSES_DNS = "PolicyClosesDNS", Family.REACH, "NetworkPolicies do not let the client ask DNS"
    LOAD_BALANCER_PENDING = (
        "LoadBalancerPending",
        Family.REACH,
        "no load balancer has given the Service an address",
    )
    INGRESS_PORT_MISSING = (
        "IngressPortMissing",
        Family.REACH,
        "an Ingress sends to a port that the Service does not have",
    )
    INGRESS_SERVICE_MISSING = (
        "IngressServiceMissing",
        Family.REACH,
        "an Ingress sends to a Service that does not exist, and this one may be meant",
    )
    INGRESS_CLASS_MISSING = (
        "IngressClassMissing",
        Family.REACH,
        "an Ingress that leads to it names an IngressClass that does not exist",
    )
    # --- hints
    HINTS_NODES_INCOMPLETE = "HintsNodesIncomplete", Family.HINTS, "topology hints are off: nodes lack a zone or CPUs"
    HINTS_ONE_ZONE = "HintsOneZone", Family.HINTS, "topology hints are off: the nodes are in one zone"
    HINTS_TOO_FEW_ENDPOINTS = (
        "HintsTooFewEndpoints",
        Family.HINTS,
        "topology hints are off: fewer ready endpoints than zones",
    )
    HINTS_UNBALANCED = "HintsUnbalanced", Family.HINTS, "topology hints are off: a zone would be overloaded"
    HINTS_ENDPOINT_WITHOUT_ZONE = (
        "HintsEndpointWithoutZone",
        Family.HINTS,
        "some endpoints have no zone, so all hints are ignored",
    )
    HINTS_MISSING = "HintsMissing", Family.HINTS, "hints are asked for and possible, but not written"
    # --- address ranges
    CLUSTER_IP_OUT_OF_RANGE = "ClusterIPOutOfRange", Family.RANGES, "the cluster IP lies outside all ServiceCIDRs"
    CLUSTER_IP_SHARED = "ClusterIPShared", Family.RANGES, "another Service has the same cluster IP"


_FAMILIES = {family: position for position, family in enumerate(Family)}
_CODES = {code: position for position, code in enumerate(Code)}


def weight(code: Code) -> tuple[int, int]:
    """Sorts codes, weightiest first: by family, then in the order above."""
    return _FAMILIES[code.family], _CODES[code]
